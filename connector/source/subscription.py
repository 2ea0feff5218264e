"""Which partitions a read means: `subscribe`, `subscribePattern` or `assign` against a root.

A pattern is searched for in the name, as Spark's connector does, and never takes Kafka's internal
topics. A topic or partition that was named and is not there is an error that lists what is.
"""

from __future__ import annotations

from collections.abc import Iterable

from klog.connector.log.partition import TopicPartition
from klog.connector.options import ReadOptions
from klog.errors import OptionError

INTERNAL_TOPICS = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
)
_SHOWN = 20
_NO_PARTITION = (
    "no directory here is named <topic>-<partition>; give the broker's log directory itself"
)


def subscribed(options: ReadOptions, there: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Give the partitions a read is about, in order. Raises `OptionError`."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for name in sorted(there):
        by_topic.setdefault(name.topic, []).append(name)
    if options.pattern is not None:
        wanted = [
            topic
            for topic in by_topic
            if options.pattern.search(topic) and topic not in INTERNAL_TOPICS
        ]
        return [name for topic in wanted for name in by_topic[topic]]
    if options.assigned is not None:
        return sorted(_assigned(options.assigned, by_topic))
    for topic in options.topics or ():
        _check_topic("subscribe", topic, by_topic)
    return [name for topic in sorted(options.topics or ()) for name in by_topic[topic]]


def _assigned(
    assigned: Iterable[tuple[str, int]], by_topic: dict[str, list[TopicPartition]]
) -> Iterable[TopicPartition]:
    for topic, partition in assigned:
        _check_topic("assign", topic, by_topic)
        name = TopicPartition(topic, partition)
        if name not in by_topic[topic]:
            numbers = ", ".join(str(n.partition) for n in by_topic[topic])
            raise OptionError(f"assign: topic {topic} has no partition {partition}, but {numbers}")
        yield name


def _check_topic(option: str, topic: str, by_topic: dict[str, list[TopicPartition]]) -> None:
    if topic in by_topic:
        return
    topics = sorted(by_topic)
    listed = ", ".join(topics[:_SHOWN]) + (", ..." if len(topics) > _SHOWN else "")
    here = f"the topics here are {listed}" if topics else _NO_PARTITION
    raise OptionError(f"{option}: there is no topic {topic}; {here}")
