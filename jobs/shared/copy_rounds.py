"""Copy topics in rounds: one, or one after another until the process is interrupted.

The rule: the failure of one topic does not keep the others from being copied, and each round tries
it again. If there is only one topic, its failure is that of the job. A job that goes on also tries
its only topic again after an error that may end by itself (`is_retryable`). It has no report, so
what fails is logged, once until it changes.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence

from klog.connector.options.consumer_strategy import ConsumerStrategy, Subscribe, SubscribePattern
from klog.errors import KlogError, OptionError
from klog.jobs.shared.job_failures import FailedTopic, Failure
from klog.url_secrets import without_passwords

_log = logging.getLogger(__name__)


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
        KlogError: The only topic failed, or the topics cannot be listed.
        OSError: The same.
    """
    log = FailureLog()
    while True:
        errors: dict[str, KlogError | OSError] = {}
        try:
            errors = _copy_each(topics(), copy)
        except KlogError as exc:
            if not (is_continuous and exc.is_retryable):
                raise
            log.report({"": exc})
        else:
            log.report({f"topic {name}: ": exc for name, exc in errors.items()})
        if not is_continuous:
            return tuple(FailedTopic(name, Failure.of(exc, name)) for name, exc in errors.items())
        time.sleep(interval_seconds)


class FailureLog:
    """Logs the failures of each round of a job that goes on, once until they change."""

    def __init__(self) -> None:
        """Begin without failures."""
        self._logged: Mapping[str, str] = {}

    def report(self, failures: Mapping[str, KlogError | OSError]) -> None:
        """Log the failures of a round that the round before did not have.

        Args:
            failures: By what a message begins with.
        """
        reasons = {subject: without_passwords(str(exc)) for subject, exc in failures.items()}
        for subject, reason in reasons.items():
            if self._logged.get(subject) != reason:
                _log.warning("%snot copied, the next round tries again: %s", subject, reason)
        self._logged = reasons


def _copy_each(names: Sequence[str], copy: Callable[[str], None]) -> dict[str, KlogError | OSError]:
    """Copy topics, and return what kept some from being copied; the only one raises it."""
    errors: dict[str, KlogError | OSError] = {}
    for name in names:
        try:
            copy(name)
        except (KlogError, OSError) as exc:
            if len(names) == 1:
                raise
            errors[name] = exc
    return errors


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
