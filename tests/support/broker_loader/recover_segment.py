"""What a broker makes of a segment after an unclean stop; Kafka's `LogSegment.recover`.

It reads the segment from its first byte and cuts it at the first batch that is cut short or
damaged. From what is before the cut it rebuilds the indexes, leader epochs and producer state
(docs/format.md, 14, step 4). Where klog and a broker differ, this follows klog: batches whose
offsets fall are damage, as offsets lie outside the CRC (docs/format.md, seen 26), and an intact
batch above klog's size limit is an error, as klog must not cut what it cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import google_crc32c
import numpy as np
from zlib_ng import zlib_ng

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.batches import legacy_messages
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.broker_files.leader_epochs import NO_EPOCHS, LeaderEpochs
from klog.logformat.indexes.abstract_index import MAX_RELATIVE_OFFSET
from klog.logformat.indexes.index_building import (
    INDEX_INTERVAL_BYTES,
    batches_as_appends,
    empty_indexes,
)
from klog.logformat.indexes.offset_index import MAX_POSITION, encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index
from klog.logformat.indexes.transaction_index import (
    NO_ABORTED_TRANSACTIONS,
    AbortedTransaction,
    encode_aborted,
)
from klog.logformat.producers.producer_batch import producer_batches
from klog.logformat.segments.torn_tail import scan_to_damage
from tests.support.broker_loader.producer_state_manager import ProducerStateManager


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """A segment after recovery: its log up to `position`, and what is built from that.

    `next_offset` is the offset after the last batch. `index`, `time_index` and `transaction_index`
    are the files' bytes, trimmed. `reason` says why bytes were cut, and is empty if none were. With
    `overflows` the next batch is intact, but its offsets are too large for this base offset: the
    segment must be split first (docs/format.md, 14, step 2).
    """

    position: int
    next_offset: int
    largest_timestamp_ms: int
    index: bytes
    time_index: bytes
    transaction_index: bytes
    epochs: LeaderEpochs
    producers: ProducerStateManager
    overflows: bool
    reason: str = field(compare=False)


def recover(
    data: bytes,
    base_offset: int,
    *,
    producers: ProducerStateManager | None = None,
    epochs: LeaderEpochs = NO_EPOCHS,
    interval_bytes: int = INDEX_INTERVAL_BYTES,
) -> RecoveredSegment:
    """Recover a segment whose log is `data`; see `SegmentRecovery`."""
    recovery = SegmentRecovery(
        base_offset, producers=producers, epochs=epochs, interval_bytes=interval_bytes
    )
    recovery.feed(data)
    return recovery.finish()


class SegmentRecovery:
    """Recover one segment from its bytes, fed in chunks of any size.

    It buffers one chunk and one batch of at most `MAX_BATCH_BYTES`. Raises `CorruptRecordError`
    only if intact batches contradict each other (data outside the producer's open transaction,
    which stops a broker as well), `UnsupportedFormatError` at an intact batch above the limit.
    """

    def __init__(
        self,
        base_offset: int,
        *,
        producers: ProducerStateManager | None = None,
        epochs: LeaderEpochs = NO_EPOCHS,
        interval_bytes: int = INDEX_INTERVAL_BYTES,
    ) -> None:
        """Start at `base_offset`, with the producers and epochs of the log before it."""
        self._base_offset = base_offset
        self._producers = (
            ProducerStateManager(base_offset) if producers is None else producers.copy()
        )
        self._epochs = epochs
        self._interval_bytes = interval_bytes
        self._indexes = empty_indexes(base_offset)
        self._aborted: list[AbortedTransaction] = []
        self._next_offset = base_offset
        self._min_offset = 0
        self._buffer: list[bytes] = []
        self._buffered_bytes = 0
        self._needed_bytes = v2.HEADER_BYTES
        self._large_batch: _LargeBatch | None = None
        self._overflows = False
        self._reason = ""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the segment's log; bytes after a cut are ignored."""
        if self._large_batch is not None:
            data = self._skip(self._large_batch, data)
        if self._reason:
            return
        self._buffer.append(data)
        self._buffered_bytes += len(data)
        if self._buffered_bytes >= self._needed_bytes:
            self._advance()

    def finish(self) -> RecoveredSegment:
        """Return the segment, after all its bytes were fed."""
        if not self._reason:
            self._advance()
        if not self._reason and (self._buffered_bytes or self._large_batch is not None):
            self._reason = "a batch is cut short"
        offset_index, time_index = self._indexes.closed()
        return RecoveredSegment(
            self._indexes.size_bytes,
            self._next_offset,
            self._indexes.largest.timestamp_ms,
            encode_offset_index(offset_index),
            encode_time_index(time_index),
            encode_aborted(NO_ABORTED_TRANSACTIONS.with_entries(self._aborted)),
            self._epochs,
            self._producers,
            self._overflows,
            self._reason,
        )

    def _advance(self) -> None:
        """Take the complete batches of the buffer, and keep the bytes of one that is not."""
        data = b"".join(self._buffer)
        batches, damage = self._intact(data)
        position = self._indexes.size_bytes
        try:
            self._take(data, batches)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, position + exc.position) from exc
        remaining = data[int(batches.ends[-1]) :] if len(batches) else data
        if damage is None and len(remaining) >= v2.HEADER_BYTES:
            length = int.from_bytes(remaining[8:12], "big", signed=True)
            self._needed_bytes = v2.FRAME_BYTES + length
            if self._needed_bytes > MAX_BATCH_BYTES:
                self._large_batch = _LargeBatch(remaining, self._needed_bytes)
                remaining = b""
        else:
            self._needed_bytes = v2.HEADER_BYTES
        self._reason = damage.reason if damage is not None else ""
        self._buffer, self._buffered_bytes = [remaining], len(remaining)

    def _skip(self, batch: _LargeBatch, data: bytes) -> bytes:
        """Skip bytes of a batch above the limit, and return those after it."""
        after = batch.take(data)
        if batch.missing_bytes:
            return b""
        if batch.is_intact:
            raise UnsupportedFormatError(_too_large(batch.size_bytes), self._indexes.size_bytes)
        self._reason = f"a batch of {batch.size_bytes} bytes fails its CRC"
        return after

    def _intact(self, data: bytes) -> tuple[v2.Batches, CorruptRecordError | None]:
        """Return the batches before the first damage, and that damage."""
        batches, damage = scan_to_damage(data)
        for check in (
            check_batch_crcs,
            self._check_rising,
            _check_markers,
            self._check_base_offset,  # Last: only what is intact can be split off.
        ):
            try:
                check(data, batches)
            except CorruptRecordError as exc:
                damage = exc
                batches = batches.slice(0, int(np.searchsorted(batches.starts, exc.position)))
        sizes = batches.ends - batches.starts
        if (sizes > MAX_BATCH_BYTES).any():
            first = int(np.argmax(sizes > MAX_BATCH_BYTES))
            position = self._indexes.size_bytes + int(batches.starts[first])
            raise UnsupportedFormatError(_too_large(int(sizes[first])), position)
        return batches, damage

    def _check_rising(self, _: bytes, batches: v2.Batches) -> None:
        """Compare the first batch with the one before it; `scan` compared the others."""
        if len(batches) and int(batches.base_offsets[0]) < self._min_offset:
            raise CorruptRecordError(
                f"batch at offset {int(batches.base_offsets[0])} after offset "
                f"{self._min_offset - 1}"
            )

    def _check_base_offset(self, _: bytes, batches: v2.Batches) -> None:
        below = batches.base_offsets < self._base_offset
        above = batches.next_offsets - 1 - self._base_offset > MAX_RELATIVE_OFFSET
        outside = np.flatnonzero(below | above)
        self._overflows = bool(len(outside) and not below[outside[0]])
        if len(outside):
            raise CorruptRecordError(
                f"a batch at offset {int(batches.base_offsets[outside[0]])} in the segment of "
                f"offset {self._base_offset}",
                int(batches.starts[outside[0]]),
            )

    def _take(self, data: bytes, batches: v2.Batches) -> None:
        """Index intact batches, and replay their epochs and producers."""
        if not len(batches):
            return
        indexes = self._indexes.with_appends(batches_as_appends(batches), self._interval_bytes)
        if indexes.size_bytes > MAX_POSITION:
            raise CorruptRecordError(f"a log of more than {MAX_POSITION} bytes fits no segment")
        self._epochs = self._epochs.assign_batches(batches)
        self._aborted += [
            transaction.index_entry()
            for transaction in self._producers.replay(data, batches)
            if transaction.is_aborted
        ]
        self._indexes = indexes
        self._next_offset = self._min_offset = int(batches.next_offsets[-1])


def _check_markers(data: bytes, batches: v2.Batches) -> None:
    producer_batches(data, batches.where((batches.attributes & v2.CONTROL) != 0))


class _LargeBatch:
    """A batch above the limit: its CRC is computed, and its bytes are dropped."""

    def __init__(self, head: bytes, size_bytes: int) -> None:
        """Start with its first bytes, at least a v2 header."""
        self.size_bytes = self.missing_bytes = size_bytes
        self._is_legacy = head[v2.MAGIC_AT] < v2.MAGIC
        crc_at = v2.FRAME_BYTES if self._is_legacy else v2.MAGIC_AT + 1
        self._stored_crc = int.from_bytes(head[crc_at : crc_at + 4], "big")
        self._unchecked_bytes = legacy_messages.CRC_START if self._is_legacy else v2.CRC_START
        self._crc = 0
        self.take(head)

    def take(self, data: bytes) -> bytes:
        """Take the next bytes, and return those after the batch."""
        own, after = data[: self.missing_bytes], data[self.missing_bytes :]
        self.missing_bytes -= len(own)
        checked = own[self._unchecked_bytes :]
        self._unchecked_bytes -= min(self._unchecked_bytes, len(own))
        extend = zlib_ng.crc32 if self._is_legacy else _extend_crc32c
        self._crc = extend(checked, self._crc)
        return after

    @property
    def is_intact(self) -> bool:
        """Return whether the bytes have the CRC that the batch stores."""
        return self._crc == self._stored_crc


def _extend_crc32c(data: bytes, crc: int) -> int:
    return int(google_crc32c.extend(crc, data))


def _too_large(size_bytes: int) -> str:
    return (
        f"a batch of {size_bytes} bytes is intact, but klog's limit is {MAX_BATCH_BYTES}; nothing "
        "was cut, let a broker recover this log"
    )
