"""What is told of offsets that are gone before they were read, and what to do then.

The rule: a batch that is run again plans anew and reads what is left. A stream plans the same
offsets again, so its user goes on from what is left, or starts with a new checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.log.partition import PartitionLog


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets of a partition that are gone.

    `what` names them and says why, `count` is how many they are, and `rest` says what a reader with
    `failOnDataLoss=false` goes on with.
    """

    what: str
    count: int
    rest: str

    def of_a_batch(self) -> str:
        """Say what happened to a read that was planned."""
        return f"{self.what} since the read was planned"

    def of_a_stream(self) -> str:
        """Say what happened behind a checkpoint."""
        return f"{self.what}: {self.count:,} that the stream has not read"

    def step_of_a_batch(self) -> str:
        """Say what to do about a batch."""
        return f"read again, or set failOnDataLoss=false to go on with {self.rest}"

    def step_of_a_stream(self) -> str:
        """Say what to do about a stream, which cannot read again."""
        return step_of_a_stream(self.rest)


def step_of_a_stream(rest: str) -> str:
    """Say what to do about a stream that would go on with `rest`."""
    return (
        f"set failOnDataLoss=false to go on with {rest}, or start the query with a new checkpoint"
    )


def loss_of(log: PartitionLog | None, topic_id: str, start: int, end: int) -> Loss | None:
    """Find what of a range that was counted on is gone; None if all is there."""
    count, offsets = end - start, f"offsets {start} to {end - 1}"
    if log is None:
        return Loss(f"the partition was deleted, with {offsets}", count, "the other partitions")
    if topic_id and log.topic_id != topic_id:
        return Loss(f"the topic was deleted and made anew, without {offsets}", count, "the new one")
    if log.log_start > start:
        behind = min(log.log_start, end)
        return Loss(
            f"offsets {start} to {behind - 1} were deleted",
            behind - start,
            f"the log start, offset {log.log_start}",
        )
    if log.readable_end < end:
        first = max(log.readable_end, start)
        return Loss(
            f"offsets {first} to {end - 1} were cut off",
            end - first,
            f"offset {end}, which leaves out what is written before it",
        )
    return None
