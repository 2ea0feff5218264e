"""The offsets of a stream as its checkpoint has them.

The rule: as in Spark's Kafka connector, the next offset of each partition by topic, keys sorted.
A key that begins with `#`, which no topic's name can, is klog's own, and offsets without such keys
are accepted; those of a key that this klog does not know are ignored:

* `#ids`: the id of each topic that has one, so that a topic that was deleted and created again is
  noticed.
* `#restored`: of each topic that was restored, the version of the commit that did so last. Offsets
  above what a later restore has taken back are noticed by it. It is there for a klog root, also if
  no topic was restored; offsets without it may be from before a restore or not.
* `#start`: where partitions start in the micro-batch that ends here, if the offsets of the
  micro-batch before do not say it: in the first one, and for a topic that was created again. Later
  micro-batches ignore it.

    {"#ids": {"orders": "oLU2KAuJTQu3f_SSptKlOA"}, "#restored": {}, "orders": {"0": 200, "1": 40}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klog.connector.snapshot import PartitionSnapshot
from klog.logformat.topic_partition import TopicPartition

OWN_KEY = "#"
IDS = "#ids"
RESTORED = "#restored"
START = "#start"


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    """The next offset of each partition, and the id of each topic that has one.

    Attributes:
        next_offsets: The next offset of each partition.
        topic_ids: The id of each topic that has one.
        batch_start: Where partitions start in the micro-batch that ends here, if the offsets before
            do not say it.
        restores: The last restore of each topic that was restored; None if it is not known.
    """

    next_offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    batch_start: Mapping[TopicPartition, int] = field(default_factory=dict)
    restores: Mapping[str, int] | None = None

    @classmethod
    def from_logs(
        cls,
        next_offsets: Mapping[TopicPartition, int],
        logs: Mapping[TopicPartition, PartitionSnapshot],
    ) -> StreamOffsets:
        """Return offsets with the ids and the last restores of the topics of the partitions.

        Args:
            next_offsets: The next offset of each partition.
            logs: The partitions, open.
        """
        restores = {name.topic: log.last_restore for name, log in logs.items()}
        return cls(
            next_offsets,
            {name.topic: log.topic_id for name, log in logs.items() if log.topic_id},
            restores=None
            if None in restores.values()
            else {topic: version for topic, version in restores.items() if version},
        )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> StreamOffsets:
        """Return the offsets of a checkpoint.

        Args:
            values: The offsets as a checkpoint has them.
        """
        by_topic = {
            topic: by_partition
            for topic, by_partition in values.items()
            if not topic.startswith(OWN_KEY)
        }
        return cls(
            offsets_from_json(by_topic),
            values.get(IDS, {}),
            offsets_from_json(values.get(START, {})),
            values.get(RESTORED),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the offsets as a checkpoint has them."""
        topics = {name.topic for name in self.next_offsets}
        ids = {topic: self.topic_ids[topic] for topic in sorted(self.topic_ids) if topic in topics}
        values: dict[str, Any] = {IDS: ids} if ids else {}
        if self.restores is not None:
            restores = sorted(self.restores.items())
            values[RESTORED] = {topic: version for topic, version in restores if topic in topics}
        if self.batch_start:
            values[START] = offsets_to_json(self.batch_start)
        return values | offsets_to_json(self.next_offsets)

    def has_same_end(self, other: StreamOffsets) -> bool:
        """Return whether other offsets are the same, wherever their micro-batches start.

        Args:
            other: The other offsets.
        """
        return (self.next_offsets, self.topic_ids, self.restores or {}) == (
            other.next_offsets,
            other.topic_ids,
            other.restores or {},
        )

    def seen_restore(self, topic: str) -> int | None:
        """Return the last restore of a topic, 0 if there was none; None if it is not known.

        Args:
            topic: The name of the topic.
        """
        return None if self.restores is None else self.restores.get(topic, 0)

    def is_another_topic(self, topic: str, earlier: StreamOffsets) -> bool:
        """Return whether a topic was created again after earlier offsets were taken.

        Args:
            topic: The name of the topic.
            earlier: The earlier offsets.
        """
        topic_id, earlier_id = self.topic_ids.get(topic), earlier.topic_ids.get(topic)
        return topic_id is not None and earlier_id is not None and topic_id != earlier_id


def offsets_from_json(values: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Return the offset of each partition, from Kafka's JSON.

    Args:
        values: Offset by partition, by topic.
    """
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, by_partition in values.items()
        for partition, offset in by_partition.items()
    }


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets as Kafka's JSON, sorted.

    Args:
        offsets: The offset of each partition.
    """
    values: dict[str, dict[str, int]] = {}
    for name, offset in sorted(offsets.items()):
        values.setdefault(name.topic, {})[str(name.partition)] = offset
    return values
