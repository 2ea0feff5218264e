"""Producer state: the producers that a partition knows, and which transactions are open.

The rule (docs/format.md, 10; Kafka's `ProducerStateManager`): each producer has an epoch, its last
batch, and the first offset of its open transaction. The first transactional batch of a producer
opens a transaction, the producer's next marker completes it. A snapshot holds all producers. A
producer expires when it has written nothing for `producer.id.expiration.ms` and has no transaction
open.

A log is replayed as a broker replays it when it loads one: order of sequences and fencing were
checked when the batches were appended, and are not checked again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.record_batch import UNSET
from klog.logformat.indexes.transaction_index import AbortedTransaction
from klog.logformat.producers.producer_batch import (
    EndTransactionMarker,
    ProducerBatch,
    producer_batches,
)
from klog.logformat.producers.producer_snapshot import NO_BATCH, ProducerEntry

EXPIRATION_MS = 86_400_000
"""Kafka's default of `producer.id.expiration.ms`."""


@dataclass(frozen=True, slots=True)
class CompletedTransaction:
    """A transaction that a marker ended; Kafka's `CompletedTxn`.

    Attributes:
        producer_id: Its producer.
        first_offset: Of its first batch.
        last_offset: Of the marker.
        is_aborted: Whether the marker is ABORT.
        last_stable_offset: As a `.txnindex` entry holds it (docs/format.md, 8.3): the first offset
            of the earliest other open transaction, else the offset after the marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int

    def index_entry(self) -> AbortedTransaction:
        """Return the entry of the `.txnindex` for a transaction that was aborted."""
        return AbortedTransaction(
            self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )


@dataclass(slots=True)
class ProducerState:
    """The producers of a partition before `end_offset`.

    Attributes:
        end_offset: Exclusive end of the batches that were replayed.
        producers: Producer id to what is known of the producer.
        open_transactions: Producer id to first offset, in the order of first offsets. An
            `OrderedDict`, as it returns its first item in constant time after any number of
            deletions.
    """

    end_offset: int = 0
    producers: dict[int, ProducerEntry] = field(default_factory=dict)
    open_transactions: OrderedDict[int, int] = field(default_factory=OrderedDict)

    def snapshot(self) -> tuple[ProducerEntry, ...]:
        """Return the entries of a snapshot at `end_offset`, in the order of producer ids."""
        return tuple(self.producers[producer_id] for producer_id in sorted(self.producers))

    def replay(self, data: bytes, batches: v2.Batches) -> list[CompletedTransaction]:
        """Apply the next batches of the log.

        Args:
            data: The bytes that `batches` were scanned from.
            batches: All batches, those without a producer id too.

        Returns:
            The transactions that they complete.

        Raises:
            CorruptRecordError: For a malformed control record, or for data outside the producer's
                open transaction; with the position in `data`.
        """
        completed = [self.apply(batch) for batch in producer_batches(data, batches)]
        if len(batches):
            self.end_offset = int(batches.next_offsets[-1])
        return [transaction for transaction in completed if transaction is not None]

    def apply(self, batch: ProducerBatch) -> CompletedTransaction | None:
        """Apply one batch; an error changes nothing.

        Args:
            batch: The next batch of the log that has a producer id.

        Returns:
            The transaction that it completes, if it is the marker of one with data.

        Raises:
            CorruptRecordError: For data outside the producer's open transaction.
        """
        entry = self.producers.get(batch.producer_id) or no_batches(batch.producer_id)
        completed = None
        if batch.marker is not None:
            completed = self._completed(entry, batch, batch.marker)
            self._put(_after_marker(entry, batch, batch.marker))
        elif not batch.is_control:
            self._put(_after_data(entry, batch))
        self.end_offset = batch.last_offset + 1
        return completed

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> None:
        """Remove the producers that have expired.

        Args:
            now_ms: The current time, in ms since the epoch.
            expiration_ms: The broker's `producer.id.expiration.ms`.
        """
        self.producers = {
            producer_id: entry
            for producer_id, entry in self.producers.items()
            if not is_expired(entry, now_ms, expiration_ms)
        }

    def _completed(
        self, entry: ProducerEntry, batch: ProducerBatch, marker: EndTransactionMarker
    ) -> CompletedTransaction | None:
        """Return the transaction that a marker completes; one without data does not count."""
        if entry.transaction_first_offset == UNSET:
            return None
        other_first_offsets = (
            first_offset
            for producer_id, first_offset in self.open_transactions.items()
            if producer_id != entry.producer_id
        )
        return CompletedTransaction(
            entry.producer_id,
            entry.transaction_first_offset,
            batch.base_offset,
            marker.is_abort,
            next(other_first_offsets, batch.base_offset + 1),
        )

    def _put(self, entry: ProducerEntry) -> None:
        self.producers[entry.producer_id] = entry
        if entry.transaction_first_offset == UNSET:
            self.open_transactions.pop(entry.producer_id, None)
        else:
            self.open_transactions.setdefault(entry.producer_id, entry.transaction_first_offset)


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> bool:
    """Return whether a broker drops a producer, as it wrote nothing for so long.

    Args:
        entry: The producer.
        now_ms: The current time, in ms since the epoch.
        expiration_ms: The broker's `producer.id.expiration.ms`.
    """
    is_idle = now_ms - entry.timestamp_ms >= expiration_ms
    return is_idle and entry.transaction_first_offset == UNSET


def no_batches(producer_id: int) -> ProducerEntry:
    """Return the entry of a producer that has not written yet.

    Args:
        producer_id: The producer.
    """
    return ProducerEntry(producer_id, UNSET, *NO_BATCH, UNSET, UNSET, UNSET)


def _after_data(entry: ProducerEntry, batch: ProducerBatch) -> ProducerEntry:
    first_offset = entry.transaction_first_offset
    if first_offset != UNSET and not batch.is_transactional:
        raise CorruptRecordError(
            f"producer {entry.producer_id}: data outside its transaction at offset "
            f"{batch.base_offset}, while the transaction of offset {first_offset} is open; end "
            "that first",
            batch.position,
        )
    if first_offset == UNSET and batch.is_transactional:
        first_offset = batch.base_offset
    return ProducerEntry(
        entry.producer_id,
        batch.epoch,
        batch.last_sequence,
        batch.last_offset,
        batch.last_offset - batch.base_offset,
        batch.timestamp_ms,
        entry.coordinator_epoch,
        first_offset,
    )


def _after_marker(
    entry: ProducerEntry, batch: ProducerBatch, marker: EndTransactionMarker
) -> ProducerEntry:
    last_batch = entry.last_sequence, entry.last_offset, entry.offset_delta
    return ProducerEntry(
        entry.producer_id,
        batch.epoch,
        *(last_batch if batch.epoch == entry.epoch else NO_BATCH),
        batch.timestamp_ms,
        marker.coordinator_epoch,
        UNSET,
    )
