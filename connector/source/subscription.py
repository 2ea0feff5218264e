"""Which partitions a read means: `subscribe`, `subscribePattern` or `assign` against a root.

The rule is that of Spark's Kafka connector. A pattern is searched for in the name, and never takes
Kafka's internal topics. A topic that is named and missing is an error, which lists the others. A
partition that is assigned and missing is left out, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from klog.connector.options.consumer_strategy import (
    Assign,
    ConsumerStrategy,
    Subscribe,
    SubscribePattern,
)
from klog.connector.snapshot import Snapshot
from klog.errors import CorruptRecordError, OptionError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import INTERNAL_TOPICS
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

_MAX_LISTED_TOPICS = 20


def subscribed_partitions(
    strategy: ConsumerStrategy, snapshot: Snapshot, warn: Callable[[str], None] = _log.warning
) -> list[TopicPartition]:
    """Return the partitions that a read subscribes to, in order.

    Only the partitions of topics that the strategy takes are looked up.

    Args:
        strategy: The topics or partitions that the options name.
        snapshot: A snapshot of the root.
        warn: Called with the warning about each assigned partition that is missing.

    Raises:
        OptionError: A topic that the strategy names is not in the snapshot, or a partition that
            must exist.
    """
    if isinstance(strategy, Assign):
        return sorted(_assigned_partitions(strategy, snapshot, warn))
    topics = snapshot.topics
    if isinstance(strategy, SubscribePattern):
        names = [name for name in sorted(topics) if _matches(strategy, name) and name in topics]
    else:
        names = _subscribed_topics(strategy, snapshot)
    return [TopicPartition(name, partition) for name in names for partition in topics[name]]


def takes_partition(strategy: ConsumerStrategy, name: TopicPartition) -> bool:
    """Return whether a read subscribes to a partition, if it exists.

    Args:
        strategy: The topics or partitions that the options name.
        name: The partition.
    """
    if isinstance(strategy, Assign):
        return name in strategy.partitions
    if isinstance(strategy, SubscribePattern):
        return _matches(strategy, name.topic)
    return name.topic in strategy.topics


def _matches(strategy: SubscribePattern, topic: str) -> bool:
    return strategy.pattern.search(topic) is not None and topic not in INTERNAL_TOPICS


def _subscribed_topics(strategy: Subscribe, snapshot: Snapshot) -> list[str]:
    for topic in strategy.topics:
        _check_topic("subscribe", topic, snapshot)
    return sorted(strategy.topics)


def _assigned_partitions(
    strategy: Assign, snapshot: Snapshot, warn: Callable[[str], None]
) -> Iterator[TopicPartition]:
    topics = snapshot.topics
    for name in strategy.partitions:
        _check_topic("assign", name.topic, snapshot)
        if name.partition not in topics[name.topic]:
            partitions = ", ".join(map(str, topics[name.topic]))
            if strategy.must_exist:
                raise OptionError(
                    f"there is no partition {name.partition} of topic {name.topic}. Use one of "
                    f"{partitions}"
                )
            warn(
                f"assign: there is no partition {name.partition} of topic {name.topic}, whose "
                f"partitions are {partitions}; left out"
            )
        else:
            yield name


def _check_topic(option: str, topic: str, snapshot: Snapshot) -> None:
    topics = snapshot.topics
    if topic in topics:
        return
    raise OptionError(
        f"{option}: {snapshot.missing_topic_reason(topic)}; {describe_topics(snapshot)}"
    )


def describe_topics(snapshot: Snapshot) -> str:
    """Return, for an error, which topics there are, the first ones of many.

    Args:
        snapshot: A snapshot of the root.
    """
    topics = snapshot.topics
    existing = (name for name in sorted(topics) if topic_exists(name, topics))
    names = list(islice(existing, _MAX_LISTED_TOPICS + 1))
    if not names:
        return snapshot.no_topics_hint
    listed = names[:_MAX_LISTED_TOPICS] + ["..."] * (len(names) > _MAX_LISTED_TOPICS)
    return f"the topics here are {', '.join(listed)}"


def topic_exists(topic: str, topics: Mapping[str, Sequence[int]]) -> bool:
    """Return whether a topic exists.

    A topic that cannot be read exists: the user may mean another topic.

    Args:
        topic: The name of the topic.
        topics: The topics of a snapshot, whose `in` may raise.
    """
    try:
        return topic in topics
    except (CorruptRecordError, UnsupportedFormatError):
        return True
