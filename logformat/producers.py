"""Producer state: what a partition knows of all its producers (docs/format.md, 10).

What it knows of each (`producer`) says which transactions are open, and which are complete but not
yet below the high watermark; from these follows the last stable offset. Snapshots hold the state.
(Kafka's `ProducerStateManager`.)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from klog.logformat import batch as v2
from klog.logformat.batch import NONE_SET
from klog.logformat.producer import EXPIRATION_MS, BatchMetadata, Origin, Producer
from klog.logformat.producer_batch import ProducerBatch, producer_batches
from klog.logformat.snapshot import SnapshotEntry

LATE_BUFFER_MS = 300_000


@dataclass(frozen=True, slots=True)
class CompletedTransaction:
    """A transaction that a marker ended: `last_offset` is the marker's own.

    `last_stable_offset` is what a `.txnindex` entry records (docs/format.md, 8.3): the first offset
    of the earliest other transaction still open, else the offset behind the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int


@dataclass(slots=True)
class ProducerState:
    """All producers of a partition up to `end_offset`, exclusive; fed batch by batch.

    `open_transactions` gives producer id to first offset, in order of the latter: an `OrderedDict`
    gives its first at once, however many before it are gone. `unreplicated` gives first offset to
    marker offset of those that are complete, but not yet known to be below the high watermark.
    """

    end_offset: int = 0
    producers: dict[int, Producer] = field(default_factory=dict)
    open_transactions: OrderedDict[int, int] = field(default_factory=OrderedDict)
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
            one = Producer.from_entry(entry)
            if now_ms is None or not one.is_expired(now_ms, expiration_ms):
                state.producers[one.producer_id] = one
        firsts = {one: known.transaction_first_offset for one, known in state.producers.items()}
        opened = {one: first for one, first in firsts.items() if first != NONE_SET}
        state.open_transactions = _in_order(opened)
        return state

    def snapshot(self) -> tuple[SnapshotEntry, ...]:
        """Give what a snapshot at `end_offset` holds, in order of producer id."""
        return tuple(self.producers[one].entry() for one in sorted(self.producers))

    def copy(self) -> ProducerState:
        """Give a state of its own, to try what may be refused."""
        return ProducerState(
            self.end_offset,
            dict(self.producers),
            self.open_transactions.copy(),
            dict(self.unreplicated),
        )

    def duplicate_of(self, batch: ProducerBatch) -> BatchMetadata | None:
        """Give the batch that a client's `batch` repeats (docs/format.md, 10).

        Ask before `append`.
        """
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
        """Give the first offset of the earliest transaction open or unreplicated.

        No offset below the log start is given (docs/format.md, 10).
        """
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
        """Tell whether the earliest open transaction outlived any timeout (docs/format.md, 10)."""
        if not self.open_transactions:
            return False
        earliest = next(iter(self.open_transactions))
        since_ms = self.producers[earliest].timestamp_ms
        return since_ms > 0 and now_ms - since_ms > max_timeout_ms + LATE_BUFFER_MS

    def _completed(
        self, known: Producer, batch: ProducerBatch, *, is_aborted: bool
    ) -> CompletedTransaction | None:
        """Say what a marker completes; a transaction without data is none."""
        if known.transaction_first_offset == NONE_SET:
            return None
        others = (o for p, o in self.open_transactions.items() if p != known.producer_id)
        return CompletedTransaction(
            known.producer_id,
            known.transaction_first_offset,
            batch.base_offset,
            is_aborted,
            next(others, batch.base_offset + 1),
        )

    def _put(self, producer: Producer) -> None:
        self.producers[producer.producer_id] = producer
        opened, first = self.open_transactions, producer.transaction_first_offset
        if first == NONE_SET:
            opened.pop(producer.producer_id, None)
        elif producer.producer_id not in opened:
            before = next(reversed(opened.values()), NONE_SET)
            opened[producer.producer_id] = first
            if first < before:
                # No log is in such disorder, but a snapshot may know of offsets behind its own.
                self.open_transactions = _in_order(opened)


def _in_order(opened: Mapping[int, int]) -> OrderedDict[int, int]:
    """Sort open transactions by first offset."""
    return OrderedDict(sorted(opened.items(), key=itemgetter(1)))
