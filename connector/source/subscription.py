"""Which partitions a read means: `subscribe`, `subscribePattern` or `assign` against a root.

A pattern is searched for in the name, as Spark's connector does, and never takes Kafka's internal
topics. A topic or partition that was named and is not there is an error that lists what is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from klog.connector.log.partition import Look, TopicPartition
from klog.connector.options import ReadOptions
from klog.errors import CorruptRecordError, OptionError, UnsupportedFormatError
from klog.logformat.names import INTERNAL_TOPICS

_SHOWN = 20


def subscribed(options: ReadOptions, look: Look) -> list[TopicPartition]:
    """Give the partitions a read is about, in order, of those that a look saw.

    Only topics that the options mean are asked for their partitions. Raises `OptionError`.
    """
    topics = look.topics
    if options.assigned is not None:
        return sorted(_assigned(options.assigned, look))
    if options.pattern is not None:
        wanted = [
            topic
            for topic in sorted(topics)
            if options.pattern.search(topic) and topic not in INTERNAL_TOPICS and topic in topics
        ]
    else:
        wanted = sorted(options.topics or ())
        for topic in options.topics or ():
            _check_topic("subscribe", topic, look)
    return [TopicPartition(topic, number) for topic in wanted for number in topics[topic]]


def _assigned(assigned: Iterable[tuple[str, int]], look: Look) -> Iterable[TopicPartition]:
    topics = look.topics
    for topic, partition in assigned:
        _check_topic("assign", topic, look)
        if partition not in topics[topic]:
            numbers = ", ".join(map(str, topics[topic]))
            raise OptionError(f"assign: topic {topic} has no partition {partition}, but {numbers}")
        yield TopicPartition(topic, partition)


def _check_topic(option: str, topic: str, look: Look) -> None:
    topics = look.topics
    if topic in topics:
        return
    there = sorted(name for name in topics if is_there(name, topics))
    listed = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
    here = f"the topics here are {listed}" if there else look.no_topics
    raise OptionError(f"{option}: {look.missing(topic)}; {here}")


def is_there(topic: str, topics: Mapping[str, Sequence[int]]) -> bool:
    """Tell whether a topic is there: so is one that cannot be read, where another is asked for."""
    try:
        return topic in topics
    except (CorruptRecordError, UnsupportedFormatError):
        return True
