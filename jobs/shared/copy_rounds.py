"""Copy topics in rounds: one, or one after another until the process is interrupted.

The rule: the failure of one topic does not keep the others from being copied, and each round tries
it again. If there is only one topic, its failure is that of the job.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from klog.connector.options.consumer_strategy import ConsumerStrategy, Subscribe, SubscribePattern
from klog.errors import KlogError, OptionError
from klog.jobs.shared.job_failures import FailedTopic, Failure


def copy_in_rounds(
    topics: Callable[[], Sequence[str]],
    copy: Callable[[str], None],
    *,
    is_continuous: bool,
    interval_seconds: float,
) -> tuple[FailedTopic, ...]:
    """Copy each topic, and return those that failed in the last round.

    Args:
        topics: Returns the names of the topics, before each round.
        copy: Copies one topic, and keeps what it did.
        is_continuous: Whether another round follows.
        interval_seconds: The pause between two rounds.

    Raises:
        KlogError: The only topic failed.
        OSError: The same.
    """
    while True:
        names = topics()
        failed = []
        for name in names:
            try:
                copy(name)
            except (KlogError, OSError) as exc:
                if len(names) == 1:
                    raise
                failed.append(FailedTopic(name, Failure.of(exc, name)))
        if not is_continuous:
            return tuple(failed)
        time.sleep(interval_seconds)


def topic_strategy(topic: str | Sequence[str] | None, pattern: str | None) -> ConsumerStrategy:
    """Return which topics a copy means: named ones, those of a pattern, or all.

    Args:
        topic: A topic, or several.
        pattern: A regular expression that is searched for in names.

    Raises:
        OptionError: Both are given, or the pattern is not a regular expression.
    """
    if topic is not None and pattern is not None:
        raise OptionError("--topic, --topic-pattern: must give only one of them")
    if topic is not None:
        return Subscribe((topic,) if isinstance(topic, str) else tuple(topic))
    try:
        return SubscribePattern(re.compile(pattern or ".*"))
    except re.error as exc:
        raise OptionError(f"--topic-pattern: not a regular expression: {exc}") from exc
