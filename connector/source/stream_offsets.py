"""The offsets of a stream as its checkpoint has them.

The rule: as in Spark's Kafka connector, the next offset of each partition by topic, keys sorted;
and under `#ids`, a name that no topic can have, the id of each topic that has one, so that a topic
that was deleted and created again is noticed. Offsets without `#ids` are accepted.

    {"#ids": {"orders": "oLU2KAuJTQu3f_SSptKlOA"}, "orders": {"0": 200, "1": 40}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from klog.connector.snapshot import PartitionSnapshot
from klog.logformat.topic_partition import TopicPartition

IDS = "#ids"


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The next offset of each partition, and the id of each topic that has one."""

    next_offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]

    @classmethod
    def from_logs(
        cls,
        next_offsets: Mapping[TopicPartition, int],
        logs: Mapping[TopicPartition, PartitionSnapshot],
    ) -> StreamOffsets:
        """Return offsets with the ids of the topics that the partitions have.

        Args:
            next_offsets: The next offset of each partition.
            logs: The partitions, open.
        """
        return cls(
            next_offsets, {name.topic: log.topic_id for name, log in logs.items() if log.topic_id}
        )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> StreamOffsets:
        """Return the offsets of a checkpoint.

        Args:
            values: The offsets as a checkpoint has them.
        """
        next_offsets = {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, by_partition in values.items()
            if topic != IDS
            for partition, offset in by_partition.items()
        }
        return cls(next_offsets, values.get(IDS, {}))

    def to_json(self) -> dict[str, Any]:
        """Return the offsets as a checkpoint has them."""
        topics = {name.topic for name in self.next_offsets}
        ids = {topic: self.topic_ids[topic] for topic in sorted(self.topic_ids) if topic in topics}
        values: dict[str, Any] = {IDS: ids} if ids else {}
        for name, offset in sorted(self.next_offsets.items()):
            values.setdefault(name.topic, {})[str(name.partition)] = offset
        return values

    def is_another_topic(self, topic: str, earlier: StreamOffsets) -> bool:
        """Return whether a topic was created again after earlier offsets were taken.

        Args:
            topic: The name of the topic.
            earlier: The earlier offsets.
        """
        topic_id, earlier_id = self.topic_ids.get(topic), earlier.topic_ids.get(topic)
        return topic_id is not None and earlier_id is not None and topic_id != earlier_id
