"""A topic's partition, as Kafka names it: the key of everything that is kept by partition."""

from __future__ import annotations

from typing import NamedTuple

MAX_PARTITIONS = 100_000
"""Of one klog topic. Its state has two numbers for each: more would let one commit take all memory.
The names of a broker's directories allow more (`broker_files.file_names.MAX_PARTITION`)."""


class TopicPartition(NamedTuple):
    """A topic and the number of one of its partitions; printed as its directory is named."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"
