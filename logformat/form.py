"""What the batches of one write have in common: their size, codec, producer and timestamp type."""

from __future__ import annotations

from dataclasses import dataclass

from klog.logformat import batch as v2
from klog.logformat.batch import NONE_SET
from klog.logformat.codecs import MAX_BATCH_BYTES, NONE
from klog.logformat.compress import check_level
from klog.logformat.epochs import MAX_EPOCH
from klog.logformat.sequence import MAX_SEQUENCE

BATCH_BYTES = 512 << 10
"""A batch is the unit of random access; larger ones compress better and decode faster."""
MAX_LONG = (1 << 63) - 1
_MAX_PRODUCER_EPOCH = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class Form:
    """What the batches of one write have in common.

    `batch_bytes` counts uncompressed bytes, the header among them. `append_time_ms` makes them
    LogAppendTime: it is what every record reads as, while the producer's timestamps stay in the
    bytes. `delete_horizon_ms` takes the place of the base timestamp. `base_sequence` is that of
    the first record of the first batch. Raises `ValueError` for what Kafka's writer refuses
    (docs/format.md, 2, "A writer refuses").
    """

    batch_bytes: int = BATCH_BYTES
    codec: int = NONE
    level: int | None = None
    leader_epoch: int = NONE_SET
    producer_id: int = NONE_SET
    producer_epoch: int = NONE_SET
    base_sequence: int = NONE_SET
    transactional: bool = False
    control: bool = False
    append_time_ms: int | None = None
    delete_horizon_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no batch can say."""
        check_level(self.codec, self.level)
        check_range("batch_bytes", self.batch_bytes, 0, MAX_BATCH_BYTES)
        check_range("leader epoch", self.leader_epoch, NONE_SET, MAX_EPOCH)
        check_range("producer id", self.producer_id, NONE_SET, MAX_LONG)
        check_range("producer epoch", self.producer_epoch, NONE_SET, _MAX_PRODUCER_EPOCH)
        check_range("base sequence", self.base_sequence, NONE_SET, MAX_SEQUENCE)
        for name in ("append_time_ms", "delete_horizon_ms"):
            if (time_ms := getattr(self, name)) is not None:
                check_range(name, time_ms, 0, MAX_LONG)
        if self.control and self.codec != NONE:
            raise ValueError("a control batch is never compressed")
        if self.producer_id == NONE_SET:
            if self.transactional:
                raise ValueError("a transactional batch needs a producer id")
        elif self.producer_epoch == NONE_SET:
            raise ValueError(f"producer id {self.producer_id} needs a producer epoch")
        elif self.base_sequence == NONE_SET and not self.control:
            raise ValueError(f"producer id {self.producer_id} needs a base sequence")

    @property
    def attributes(self) -> int:
        """Give the attributes of a batch that has records."""
        return (
            self.codec | self.flags | (0 if self.delete_horizon_ms is None else v2.DELETE_HORIZON)
        )

    @property
    def flags(self) -> int:
        """Give the attributes of a batch without records: it has no codec and no horizon."""
        append_time = v2.LOG_APPEND_TIME if self.append_time_ms is not None else 0
        transactional = v2.TRANSACTIONAL if self.transactional else 0
        return append_time | transactional | (v2.CONTROL if self.control else 0)


def check_range(name: str, value: int, lowest: int, highest: int) -> None:
    """Raise `ValueError` that says from where to where a number may go."""
    if not lowest <= value <= highest:
        raise ValueError(f"{name} is {value}, it must be from {lowest} to {highest}")
