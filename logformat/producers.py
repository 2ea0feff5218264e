"""Producer state: what a partition knows of each producer id, by Kafka's rules (format notes 6).

Of a producer it keeps the epoch, the epoch of the coordinator that ended its last transaction, its
last timestamp, the first offset of its open transaction and up to five last batches. From these
follow which batch is a duplicate, which does not come in turn, who has been fenced, which
transactions are open or not yet below the high watermark, and so the last stable offset. Snapshots
hold it with the last batch alone. (Kafka's `ProducerStateManager`, `ProducerAppendInfo`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from klog.errors import CorruptRecordError, OutOfOrderSequenceError, ProducerFencedError
from klog.logformat import batch as v2
from klog.logformat.batch import NONE_SET
from klog.logformat.producer_batch import ProducerBatch, producer_batches
from klog.logformat.sequence import advance
from klog.logformat.snapshot import SnapshotEntry

CACHED_BATCHES = 5
EXPIRATION_MS = 86_400_000
LATE_BUFFER_MS = 300_000


class Origin(Enum):
    """Who appends: that decides which checks apply (format notes 6.3)."""

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
class CompletedTransaction:
    """A transaction that a marker ended: `last_offset` is the marker's own.

    `last_stable_offset` is what a `.txnindex` entry records (format notes 4.5): the first offset of
    the earliest other transaction still open, else the offset behind the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class Producer:
    """One producer id. Its checks give the state after a batch, or raise and change nothing."""

    producer_id: int
    epoch: int = NONE_SET
    coordinator_epoch: int = NONE_SET
    timestamp_ms: int = NONE_SET
    transaction_first_offset: int = NONE_SET
    batches: tuple[BatchMetadata, ...] = ()

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
        """Take a batch of data (format notes 6.3)."""
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
        """Take a marker, which ends the open transaction if there is one (format notes 6.4)."""
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
        """Tell whether it may be forgotten (format notes 6.6)."""
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


@dataclass(slots=True)
class ProducerState:
    """All producers of a partition up to `end_offset`, exclusive; fed batch by batch.

    `open_transactions` gives producer id to first offset, `unreplicated` first offset to marker
    offset of those that are complete, but not yet known to be below the high watermark.
    """

    end_offset: int = 0
    producers: dict[int, Producer] = field(default_factory=dict)
    open_transactions: dict[int, int] = field(default_factory=dict)
    unreplicated: dict[int, int] = field(default_factory=dict)

    @classmethod
    def from_snapshot(
        cls,
        entries: Iterable[SnapshotEntry],
        end_offset: int,
        now_ms: int | None = None,
        expiration_ms: int = EXPIRATION_MS,
    ) -> ProducerState:
        """Load a snapshot, without the producers that are expired at `now_ms` if that is given."""
        state = cls(end_offset)
        for entry in entries:
            one = _loaded(entry)
            if now_ms is not None and one.is_expired(now_ms, expiration_ms):
                continue
            state._put(one)
        return state

    def snapshot(self) -> tuple[SnapshotEntry, ...]:
        """Give what a snapshot at `end_offset` holds, in order of producer id."""
        return tuple(_saved(self.producers[one]) for one in sorted(self.producers))

    def copy(self) -> ProducerState:
        """Give a state of its own, to try what may be refused."""
        return ProducerState(
            self.end_offset,
            dict(self.producers),
            dict(self.open_transactions),
            dict(self.unreplicated),
        )

    def duplicate_of(self, batch: ProducerBatch) -> BatchMetadata | None:
        """Give the batch that a client's `batch` repeats; ask before `append` (notes 6.2)."""
        known = self.producers.get(batch.producer_id)
        return None if known is None else known.duplicate_of(batch)

    def append(
        self, batch: ProducerBatch, origin: Origin = Origin.CLIENT
    ) -> CompletedTransaction | None:
        """Take one batch; give the transaction that it completes, if it is a marker of one.

        Raises `OutOfOrderSequenceError`, `ProducerFencedError`, or `CorruptRecordError` for data
        outside the producer's open transaction; then nothing has changed.
        """
        known = self.producers.get(batch.producer_id) or Producer(batch.producer_id)
        completed = None
        if batch.marker is not None:
            now = known.after_marker(batch, batch.marker.coordinator_epoch, origin)
            completed = self._completed(known, batch, is_aborted=batch.marker.is_abort)
            self._put(now)
        elif not batch.is_control:
            self._put(known.after_data(batch, origin))
        if completed is not None:
            self.unreplicated[completed.first_offset] = completed.last_offset
        self.end_offset = batch.last_offset + 1
        return completed

    def replay(self, data: bytes, batches: v2.Batches) -> list[CompletedTransaction]:
        """Carry the state over more batches of the log, as loading does; what they complete.

        Raises `CorruptRecordError` with the position in `data`.
        """
        completed = [
            self.append(one, Origin.REPLICATION) for one in producer_batches(data, batches)
        ]
        if len(batches):
            self.end_offset = int(batches.next_offsets[-1])
        return [one for one in completed if one is not None]

    def raise_high_watermark(self, high_watermark: int) -> None:
        """Let go of the complete transactions whose markers are below the high watermark."""
        self.unreplicated = {
            first: last for first, last in self.unreplicated.items() if last >= high_watermark
        }

    def first_unstable_offset(self, log_start: int = 0) -> int | None:
        """Give the first offset of the earliest transaction open or unreplicated (notes 6.5)."""
        firsts = [*self.open_transactions.values(), *self.unreplicated]
        return max(min(firsts), log_start) if firsts else None

    def last_stable_offset(self, high_watermark: int, log_start: int = 0) -> int:
        """Give the offset below which every transaction is decided and replicated."""
        unstable = self.first_unstable_offset(log_start)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> None:
        """Forget the producers that wrote nothing for so long and have no transaction open."""
        self.producers = {
            one: producer
            for one, producer in self.producers.items()
            if not producer.is_expired(now_ms, expiration_ms)
        }

    def has_late_transaction(self, now_ms: int, max_timeout_ms: int) -> bool:
        """Tell whether the earliest open transaction outlived any timeout (format notes 6.5)."""
        if not self.open_transactions:
            return False
        earliest = min(self.open_transactions, key=lambda one: self.open_transactions[one])
        since_ms = self.producers[earliest].timestamp_ms
        return since_ms > 0 and now_ms - since_ms > max_timeout_ms + LATE_BUFFER_MS

    def _completed(
        self, known: Producer, batch: ProducerBatch, *, is_aborted: bool
    ) -> CompletedTransaction | None:
        """Say what a marker completes; a transaction without data is none."""
        if known.transaction_first_offset == NONE_SET:
            return None
        others = [o for p, o in self.open_transactions.items() if p != known.producer_id]
        return CompletedTransaction(
            known.producer_id,
            known.transaction_first_offset,
            batch.base_offset,
            is_aborted,
            min(others, default=batch.base_offset + 1),
        )

    def _put(self, producer: Producer) -> None:
        self.producers[producer.producer_id] = producer
        if producer.transaction_first_offset == NONE_SET:
            self.open_transactions.pop(producer.producer_id, None)
        else:
            self.open_transactions[producer.producer_id] = producer.transaction_first_offset


def _loaded(entry: SnapshotEntry) -> Producer:
    last = BatchMetadata(
        entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp_ms
    )
    return Producer(
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        entry.timestamp_ms,
        entry.transaction_first_offset if entry.transaction_first_offset >= 0 else NONE_SET,
        (last,) if entry.last_offset >= 0 else (),
    )


def _saved(one: Producer) -> SnapshotEntry:
    last = one.batches[-1] if one.batches else BatchMetadata(NONE_SET, NONE_SET, 0, NONE_SET)
    return SnapshotEntry(
        one.producer_id,
        one.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        one.timestamp_ms,
        one.coordinator_epoch,
        one.transaction_first_offset,
    )
