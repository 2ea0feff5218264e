"""What a broker does with producer state beyond replaying it; Kafka's `ProducerStateManager`.

A broker loads a snapshot, checks what clients append (epochs, order of sequences), answers whether
a batch is a duplicate of one of a producer's last five, and bounds the last stable offset by the
transactions that are open or not yet below the high watermark (docs/format.md, 10).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import islice
from operator import itemgetter

from klog.errors import OutOfOrderSequenceError, ProducerFencedError
from klog.logformat.batches.record_batch import UNSET
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.producers.producer_batch import ProducerBatch
from klog.logformat.producers.producer_snapshot import NO_BATCH, ProducerEntry
from klog.logformat.producers.producer_state import (
    EXPIRATION_MS,
    CompletedTransaction,
    ProducerState,
    is_expired,
    no_batches,
)

CACHED_BATCHES = 5
LATE_BUFFER_MS = 300_000


class AppendOrigin(Enum):
    """Who appends: that decides which checks apply."""

    CLIENT = auto()
    REPLICATION = auto()
    COORDINATOR = auto()


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """One of a producer's last batches."""

    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_sequence(self) -> int:
        return increment_sequence(self.last_sequence, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass
class ProducerStateManager(ProducerState):
    """Producer state of a running broker.

    `batches` are the last batches of each producer in its epoch. `unreplicated` maps the first
    offset to the marker's offset of the completed transactions that are not yet known to be below
    the high watermark.
    """

    batches: dict[int, tuple[BatchMetadata, ...]] = field(default_factory=dict)
    unreplicated: dict[int, int] = field(default_factory=dict)

    @classmethod
    def from_snapshot(
        cls,
        entries: Iterable[ProducerEntry],
        end_offset: int,
        now_ms: int | None = None,
        expiration_ms: int = EXPIRATION_MS,
    ) -> ProducerStateManager:
        """Load a snapshot, without the producers that are expired at `now_ms` if that is given."""
        state = cls(end_offset)
        for loaded in entries:
            entry = _without_negatives(loaded)
            if now_ms is not None and is_expired(entry, now_ms, expiration_ms):
                continue
            state.producers[entry.producer_id] = entry
            if entry.last_offset >= 0:
                state.batches[entry.producer_id] = (_last_batch(entry),)
            if entry.transaction_first_offset != UNSET:
                state.open_transactions[entry.producer_id] = entry.transaction_first_offset
        state.open_transactions = _by_offset(state.open_transactions)
        return state

    def copy(self) -> ProducerStateManager:
        """Return a state of its own, to try a batch that may be refused."""
        return ProducerStateManager(
            self.end_offset,
            dict(self.producers),
            self.open_transactions.copy(),
            dict(self.batches),
            dict(self.unreplicated),
        )

    def duplicate_of(self, batch: ProducerBatch) -> BatchMetadata | None:
        """Return the batch that a client's `batch` repeats; ask before `append`."""
        entry = self.producers.get(batch.producer_id)
        if entry is None or batch.epoch != entry.epoch or batch.is_control:
            return None
        sequences = batch.base_sequence, batch.last_sequence
        for cached in self.batches.get(batch.producer_id, ()):
            if (cached.first_sequence, cached.last_sequence) == sequences:
                return cached
        return None

    def append(
        self, batch: ProducerBatch, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> CompletedTransaction | None:
        """Check a batch and apply it; an error changes nothing."""
        entry = self.producers.get(batch.producer_id) or no_batches(batch.producer_id)
        if batch.marker is not None or not batch.is_control:
            _check_epochs(entry, batch, origin)
        if not batch.is_control and origin is AppendOrigin.CLIENT:
            _check_sequence(entry, batch)
        return self.apply(batch)

    def apply(self, batch: ProducerBatch) -> CompletedTransaction | None:
        """Apply one batch of the log, and remember what only a running broker needs."""
        before = self.producers.get(batch.producer_id)
        completed = super().apply(batch)
        if batch.marker is not None or not batch.is_control:
            is_same_epoch = before is not None and before.epoch == batch.epoch
            cached = self.batches.get(batch.producer_id, ()) if is_same_epoch else ()
            if not batch.is_control:
                cached = (*cached, _last_batch(self.producers[batch.producer_id]))
            self.batches[batch.producer_id] = cached[-CACHED_BATCHES:]
        # A log has transactions in order, but a snapshot may have later ones.
        last_two = list(islice(reversed(self.open_transactions.values()), 2))
        if last_two != sorted(last_two, reverse=True):
            self.open_transactions = _by_offset(self.open_transactions)
        if completed is not None:
            self.unreplicated[completed.first_offset] = completed.last_offset
        return completed

    def raise_high_watermark(self, high_watermark: int) -> None:
        """Drop the completed transactions whose markers are below the high watermark."""
        self.unreplicated = {
            first: last for first, last in self.unreplicated.items() if last >= high_watermark
        }

    def first_unstable_offset(self, log_start: int = 0) -> int | None:
        """Return the first offset of the earliest transaction open or unreplicated."""
        first_offsets = [*self.open_transactions.values(), *self.unreplicated]
        return max(min(first_offsets), log_start) if first_offsets else None

    def last_stable_offset(self, high_watermark: int, log_start: int = 0) -> int:
        """Return the offset below which every transaction is completed and replicated."""
        unstable = self.first_unstable_offset(log_start)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> None:
        """Remove the producers that have expired."""
        super().expire(now_ms, expiration_ms)
        self.batches = {
            producer_id: cached
            for producer_id, cached in self.batches.items()
            if producer_id in self.producers
        }

    def has_late_transaction(self, now_ms: int, max_timeout_ms: int) -> bool:
        """Return whether the earliest open transaction outlived any timeout."""
        if not self.open_transactions:
            return False
        earliest = next(iter(self.open_transactions))
        since_ms = self.producers[earliest].timestamp_ms
        return since_ms > 0 and now_ms - since_ms > max_timeout_ms + LATE_BUFFER_MS


def _without_negatives(entry: ProducerEntry) -> ProducerEntry:
    """Replace negative offsets, which mean that there is none."""
    if entry.transaction_first_offset < 0:
        entry = replace(entry, transaction_first_offset=UNSET)
    if entry.last_offset < 0:
        last_sequence, last_offset, offset_delta = NO_BATCH
        entry = replace(
            entry,
            last_sequence=last_sequence,
            last_offset=last_offset,
            offset_delta=offset_delta,
        )
    return entry


def _last_batch(entry: ProducerEntry) -> BatchMetadata:
    return BatchMetadata(entry.last_sequence, entry.last_offset, entry.offset_delta)


def _by_offset(open_transactions: Mapping[int, int]) -> OrderedDict[int, int]:
    return OrderedDict(sorted(open_transactions.items(), key=itemgetter(1)))


def _check_epochs(entry: ProducerEntry, batch: ProducerBatch, origin: AppendOrigin) -> None:
    if origin is AppendOrigin.REPLICATION:
        return
    if batch.epoch < entry.epoch:
        raise ProducerFencedError(
            f"producer {entry.producer_id}: epoch {batch.epoch} at offset {batch.base_offset}, "
            f"but epoch {entry.epoch} has written"
        )
    if batch.marker is not None and batch.marker.coordinator_epoch < entry.coordinator_epoch:
        raise ProducerFencedError(
            f"producer {entry.producer_id}: marker at offset {batch.base_offset} of coordinator "
            f"epoch {batch.marker.coordinator_epoch}, but epoch {entry.coordinator_epoch} has "
            "written"
        )


def _check_sequence(entry: ProducerEntry, batch: ProducerBatch) -> None:
    """Refuse a batch out of order; a producer without an epoch may start anywhere."""
    if entry.epoch == UNSET:
        return
    last_sequence = entry.last_sequence if batch.epoch == entry.epoch else UNSET
    expected = 0 if last_sequence == UNSET else increment_sequence(last_sequence, 1)
    if batch.base_sequence != expected:
        raise OutOfOrderSequenceError(
            f"producer {entry.producer_id} epoch {batch.epoch}: sequence {batch.base_sequence} "
            f"at offset {batch.base_offset}, must be {expected}"
        )
