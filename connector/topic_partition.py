"""A topic's partition, as Kafka names it: the key of everything that is kept by partition."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PARTITIONS = 100_000
"""Of one topic. Its state has two numbers for each: more would let one commit take all memory."""


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A topic and the number of one of its partitions; printed as its directory is named."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"
