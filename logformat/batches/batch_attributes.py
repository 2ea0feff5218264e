"""What the batches of one write have in common: size, codec, producer and timestamp type.

The rule: what Kafka's writer refuses is refused here, before a batch is encoded (docs/format.md, 2;
Kafka's `MemoryRecordsBuilder`, `DefaultRecordBatch`).
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import DEFAULT_BATCH_BYTES, MAX_BATCH_BYTES
from klog.logformat.batches.record_batch import UNSET
from klog.logformat.batches.sequence_numbers import MAX_SEQUENCE
from klog.logformat.codecs.codec_names import NONE, check_level

MAX_LONG = (1 << 63) - 1
_MAX_PRODUCER_EPOCH = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class BatchAttributes:
    """What the batches of one write have in common.

    Attributes:
        batch_bytes: How many uncompressed bytes a batch may have, with its header.
        codec: A number of `codec_names`.
        level: The codec's level, None for its default.
        leader_epoch: The partition's leader epoch.
        producer_id: The producer's id.
        producer_epoch: The producer's epoch.
        base_sequence: The sequence of the first record of the first batch.
        is_transactional: Whether the batches are part of a transaction.
        is_control: Whether they are control batches.
        append_time_ms: Makes the timestamp type LogAppendTime: the timestamp that each record reads
            as, while the producer's timestamps stay in the bytes.
        delete_horizon_ms: Replaces the base timestamp.

    Raises:
        ValueError: Kafka's writer refuses such a batch (docs/format.md, 2, "A writer refuses").
    """

    batch_bytes: int = DEFAULT_BATCH_BYTES
    codec: int = NONE
    level: int | None = None
    leader_epoch: int = UNSET
    producer_id: int = UNSET
    producer_epoch: int = UNSET
    base_sequence: int = UNSET
    is_transactional: bool = False
    is_control: bool = False
    append_time_ms: int | None = None
    delete_horizon_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no batch can have."""
        check_level(self.codec, self.level)
        check_range("batch_bytes", self.batch_bytes, 0, MAX_BATCH_BYTES)
        check_range("leader epoch", self.leader_epoch, UNSET, v2.MAX_LEADER_EPOCH)
        check_range("producer id", self.producer_id, UNSET, MAX_LONG)
        check_range("producer epoch", self.producer_epoch, UNSET, _MAX_PRODUCER_EPOCH)
        check_range("base sequence", self.base_sequence, UNSET, MAX_SEQUENCE)
        for name in ("append_time_ms", "delete_horizon_ms"):
            if (time_ms := getattr(self, name)) is not None:
                check_range(name, time_ms, 0, MAX_LONG)
        if self.is_control and self.codec != NONE:
            raise ValueError("a control batch is never compressed")
        if self.producer_id == UNSET:
            if self.is_transactional:
                raise ValueError("a transactional batch needs a producer id")
        elif self.producer_epoch == UNSET:
            raise ValueError(f"producer id {self.producer_id} needs a producer epoch")
        elif self.base_sequence == UNSET and not self.is_control:
            raise ValueError(f"producer id {self.producer_id} needs a base sequence")

    @property
    def attribute_bits(self) -> int:
        """Return the `attributes` field of a batch that has records."""
        delete_horizon = 0 if self.delete_horizon_ms is None else v2.DELETE_HORIZON
        return self.codec | self.empty_batch_bits | delete_horizon

    @property
    def empty_batch_bits(self) -> int:
        """Return the `attributes` field of a batch without records: no codec, no horizon."""
        append_time = v2.LOG_APPEND_TIME if self.append_time_ms is not None else 0
        transactional = v2.TRANSACTIONAL if self.is_transactional else 0
        return append_time | transactional | (v2.CONTROL if self.is_control else 0)


def check_range(name: str, value: int, min_value: int, max_value: int) -> None:
    """Check that a number is within its bounds, both inclusive.

    Args:
        name: What the number is, for the error.
        value: The number.
        min_value: The lowest number allowed.
        max_value: The highest number allowed.

    Raises:
        ValueError: The number is out of bounds.
    """
    if not min_value <= value <= max_value:
        raise ValueError(f"{name} must be from {min_value} to {max_value}, got {value}")
