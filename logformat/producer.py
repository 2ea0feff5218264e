"""One producer id, as a partition knows it, and what may come after it (docs/format.md, 10).

Of a producer a partition keeps the epoch, the epoch of the coordinator that ended its last
transaction, its last timestamp, the first offset of its open transaction and up to five last
batches. From these follow which batch is a duplicate, which does not come in turn and who has been
fenced. A snapshot holds it with the last batch alone. (Kafka's `ProducerStateEntry`,
`ProducerAppendInfo`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from klog.errors import CorruptRecordError, OutOfOrderSequenceError, ProducerFencedError
from klog.logformat.batch import NONE_SET
from klog.logformat.producer_batch import ProducerBatch
from klog.logformat.sequence import advance
from klog.logformat.snapshot import SnapshotEntry

CACHED_BATCHES = 5
EXPIRATION_MS = 86_400_000


class Origin(Enum):
    """Who appends: that decides which checks apply (docs/format.md, 10)."""

    CLIENT = auto()
    REPLICATION = auto()
    COORDINATOR = auto()


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """One of a producer's last batches."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        """Give the sequence of the batch's first offset."""
        return advance(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        """Give the batch's first offset."""
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True)
class Producer:
    """One producer id. Its checks give the state after a batch, or raise and change nothing."""

    producer_id: int
    epoch: int = NONE_SET
    coordinator_epoch: int = NONE_SET
    timestamp_ms: int = NONE_SET
    transaction_first_offset: int = NONE_SET
    batches: tuple[BatchMetadata, ...] = ()

    @classmethod
    def from_entry(cls, entry: SnapshotEntry) -> Producer:
        """Take a producer from a snapshot, which has its last batch alone."""
        last = BatchMetadata(
            entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp_ms
        )
        return cls(
            entry.producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.timestamp_ms,
            entry.transaction_first_offset if entry.transaction_first_offset >= 0 else NONE_SET,
            (last,) if entry.last_offset >= 0 else (),
        )

    def entry(self) -> SnapshotEntry:
        """Give the producer as a snapshot has it."""
        last = self.batches[-1] if self.batches else BatchMetadata(NONE_SET, NONE_SET, 0, NONE_SET)
        return SnapshotEntry(
            self.producer_id,
            self.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.timestamp_ms,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )

    @property
    def last_sequence(self) -> int:
        """Give the sequence of the last batch, `NONE_SET` if there is none in this epoch."""
        return self.batches[-1].last_sequence if self.batches else NONE_SET

    def duplicate_of(self, batch: ProducerBatch) -> BatchMetadata | None:
        """Give the cached batch that has exactly this epoch and these sequences."""
        if batch.epoch != self.epoch or batch.is_control:
            return None
        sequences = batch.base_sequence, batch.last_sequence
        for one in self.batches:
            if (one.first_sequence, one.last_sequence) == sequences:
                return one
        return None

    def after_data(self, batch: ProducerBatch, origin: Origin) -> Producer:
        """Take a batch of data (docs/format.md, 10)."""
        self._check_epoch(batch, origin)
        if origin is Origin.CLIENT:
            self._check_sequence(batch)
        first = self.transaction_first_offset
        if first != NONE_SET and not batch.is_transactional:
            raise CorruptRecordError(
                f"producer {self.producer_id}: data outside its transaction at offset "
                f"{batch.base_offset}, while the one of offset {first} is open; end that first",
                batch.position,
            )
        if first == NONE_SET and batch.is_transactional:
            first = batch.base_offset
        delta = batch.last_offset - batch.base_offset
        newest = BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.timestamp_ms)
        kept = self.batches if batch.epoch == self.epoch else ()
        return Producer(
            self.producer_id,
            batch.epoch,
            self.coordinator_epoch,
            batch.timestamp_ms,
            first,
            (*kept, newest)[-CACHED_BATCHES:],
        )

    def after_marker(
        self, batch: ProducerBatch, coordinator_epoch: int, origin: Origin
    ) -> Producer:
        """Take a marker, which ends the open transaction if there is one (docs/format.md, 10)."""
        self._check_epoch(batch, origin)
        if coordinator_epoch < self.coordinator_epoch and origin is not Origin.REPLICATION:
            raise ProducerFencedError(
                f"producer {self.producer_id}: marker at offset {batch.base_offset} of coordinator "
                f"epoch {coordinator_epoch}, but epoch {self.coordinator_epoch} has written; "
                "leave the transaction to the newer coordinator"
            )
        return Producer(
            self.producer_id,
            batch.epoch,
            coordinator_epoch,
            batch.timestamp_ms,
            batches=self.batches if batch.epoch == self.epoch else (),
        )

    def is_expired(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> bool:
        """Tell whether it may be forgotten (docs/format.md, 10)."""
        idle = now_ms - self.timestamp_ms >= expiration_ms
        return idle and self.transaction_first_offset == NONE_SET

    def _check_epoch(self, batch: ProducerBatch, origin: Origin) -> None:
        if batch.epoch < self.epoch and origin is not Origin.REPLICATION:
            raise ProducerFencedError(
                f"producer {self.producer_id}: epoch {batch.epoch} at offset {batch.base_offset}, "
                f"but epoch {self.epoch} has written; stop this one or begin a new epoch"
            )

    def _check_sequence(self, batch: ProducerBatch) -> None:
        """Refuse what does not come in turn; a producer without an epoch may begin anywhere."""
        if self.epoch == NONE_SET:
            return
        last = self.last_sequence if batch.epoch == self.epoch else NONE_SET
        wanted = 0 if last == NONE_SET else advance(last, 1)
        if batch.base_sequence != wanted:
            raise OutOfOrderSequenceError(
                f"producer {self.producer_id} epoch {batch.epoch}: sequence {batch.base_sequence} "
                f"at offset {batch.base_offset} where {wanted} must come; write what is missing, "
                "or begin a new epoch at sequence 0"
            )
