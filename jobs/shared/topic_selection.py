"""Which topics of a root a job works on: the named ones, or all.

The rule: a named topic that does not exist or cannot be read ends the job. Of all topics, one that
cannot be read is reported, and the job does the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.lost_commit_traces import topics_without_log
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.storage_options import StorageOptions
from klog.errors import KlogError, OptionError
from klog.jobs.shared.job_failures import FailedTopic, Failure


def open_root(path: str, storage: StorageOptions) -> KlogRoot:
    """Open a klog root.

    Args:
        path: The root, as the caller gave it.
        storage: The options of its store.

    Raises:
        OptionError: The directory has no commit logs.
    """
    root = find_root(path, storage)
    if root is None:
        raise not_a_klog_root(path)
    return root


def not_a_klog_root(path: str) -> OptionError:
    """Return the error for a directory that has no commit logs.

    Args:
        path: The directory, as the caller gave it.
    """
    return OptionError(
        f"{path} is not a klog root: it has no commit logs, and a broker keeps its own logs in "
        "order. Give a root that `klog topics create` or a write has made"
    )


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
