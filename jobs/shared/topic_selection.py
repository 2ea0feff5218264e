"""Which topics of a root a job works on: the named ones, or all.

The rule: a named topic that does not exist or cannot be read ends the job. Of all topics, one that
cannot be read is reported, and the job does the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.lost_commit_traces import topics_without_log
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import KlogError
from klog.jobs.shared.job_failures import FailedTopic, Failure


def select_topic_names(root: KlogRoot, topic: str | Sequence[str] | None) -> list[str]:
    """Return the named topics, or all, even those that have lost their whole log.

    Args:
        root: The klog root.
        topic: A topic, several, or None for all.

    Raises:
        OptionError: A named topic does not exist, and no file shows that it did.
    """
    names = [topic] if isinstance(topic, str) else topic
    topic_names = root.topic_names()
    if names is None:
        return topic_names + topics_without_log(root, topic_names)
    if unknown := set(names) - set(topic_names):
        for name in unknown - set(topics_without_log(root, topic_names)):
            root.load(root.log_to_read(name))  # raises
    return list(dict.fromkeys(names))


def select_topics(
    root: KlogRoot,
    topic: str | Sequence[str] | None,
    *,
    to_write: bool,
    failed: list[FailedTopic],
) -> Iterator[tuple[CommitLog, TopicState]]:
    """Yield the commit log and the state of the named topics, or of all.

    Args:
        root: The klog root.
        topic: A topic, several, or None for all.
        to_write: Whether the job commits to the topics.
        failed: Gets the topics that cannot be read, if no topic is named.

    Raises:
        OptionError: A named topic does not exist.
        KlogError: A named topic cannot be read.
    """
    names = [topic] if isinstance(topic, str) else topic
    for name in dict.fromkeys(root.topic_names() if names is None else names):
        try:
            log = root.log_to_write(name) if to_write else root.log_to_read(name)
            state = log.load() if names is None else root.load(log)
        except (KlogError, OSError) as exc:
            if names is not None:
                raise
            failed.append(FailedTopic(name, Failure.of(exc, name)))
            continue
        if state.topic_id:
            yield log, state
