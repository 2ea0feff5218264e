"""What a broker makes of a segment after an unclean stop, as a pure function of its bytes.

A broker that was not shut down cleanly reads each segment from its first byte and cuts it at the
first batch that is not whole and intact, and with it all that follows; on the way it makes the
indexes anew and carries leader epochs and producer state along (docs/format.md, 14, step 4; Kafka's
`LogSegment.recover`). `Recovery` does so over the bytes of one segment as they come, `recover` over
bytes at hand. Batches whose offsets fall are damage to klog, though a broker takes them: only
their order can tell, for offsets lie outside the CRC (docs/format.md, seen 26). A batch above
klog's limit stops it if it is intact: what cannot be followed may not be cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import google_crc32c
import numpy as np
from zlib_ng import zlib_ng

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat import legacy
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.epochs import NO_EPOCHS, LeaderEpochs
from klog.logformat.index import MAX_RELATIVE_OFFSET
from klog.logformat.indexing import INDEX_INTERVAL_BYTES, appends_of, no_entries
from klog.logformat.offset_index import MAX_POSITION, encode_offset_index
from klog.logformat.producer_batch import producer_batches
from klog.logformat.producers import ProducerState
from klog.logformat.time_index import encode_time_index
from klog.logformat.transaction_index import NONE_ABORTED, AbortedTransaction, encode_aborted


@dataclass(frozen=True, slots=True)
class Recovered:
    """A segment as recovery leaves it: its log up to `position`, and what is made from that.

    `next_offset` is the offset behind the last batch kept. `index`, `time_index` and
    `transaction_index` are the files' bytes, trimmed. `reason` says why bytes were cut, and is
    empty where none were. With `leaves_segment` what follows is intact, but its offsets are too
    large for a segment of this base, which must be split first (docs/format.md, 14, step 2).
    """

    position: int
    next_offset: int
    largest_timestamp_ms: int
    index: bytes
    time_index: bytes
    transaction_index: bytes
    epochs: LeaderEpochs
    producers: ProducerState
    leaves_segment: bool
    reason: str = field(compare=False)


def recover(
    data: bytes,
    base_offset: int,
    *,
    producers: ProducerState | None = None,
    epochs: LeaderEpochs = NO_EPOCHS,
    interval_bytes: int = INDEX_INTERVAL_BYTES,
) -> Recovered:
    """Recover a segment whose log is `data`; see `Recovery`."""
    recovery = Recovery(
        base_offset, producers=producers, epochs=epochs, interval_bytes=interval_bytes
    )
    recovery.feed(data)
    return recovery.finish()


class Recovery:
    """Recover one segment from its bytes, given in pieces of any size.

    No more is held than a piece and one batch of at most `MAX_BATCH_BYTES`. Raises
    `CorruptRecordError` only where intact batches contradict each other (data outside the
    producer's open transaction, which stops a broker as well), `UnsupportedFormatError` at an
    intact batch above the limit.
    """

    def __init__(
        self,
        base_offset: int,
        *,
        producers: ProducerState | None = None,
        epochs: LeaderEpochs = NO_EPOCHS,
        interval_bytes: int = INDEX_INTERVAL_BYTES,
    ) -> None:
        """Begin at `base_offset`, with the producers and epochs of the log before it."""
        self._base_offset = base_offset
        self._producers = ProducerState(base_offset) if producers is None else producers.copy()
        self._epochs = epochs
        self._interval_bytes = interval_bytes
        self._indexes = no_entries(base_offset)
        self._aborted: list[AbortedTransaction] = []
        self._next_offset = base_offset
        self._least_offset = 0
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._wanted_bytes = v2.HEADER_BYTES
        self._large: _LargeBatch | None = None
        self._leaves_segment = False
        self._reason = ""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the segment's log; what follows a cut is passed over."""
        if self._large is not None:
            data = self._pass_over(self._large, data)
        if self._reason:
            return
        self._parts.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= self._wanted_bytes:
            self._advance()

    def finish(self) -> Recovered:
        """Say what the segment is, now that all its bytes were given."""
        if not self._reason:
            self._advance()
        if not self._reason and (self._held_bytes or self._large is not None):
            self._reason = "a batch is cut short"
        offset_index, time_index = self._indexes.closed()
        return Recovered(
            self._indexes.size_bytes,
            self._next_offset,
            self._indexes.largest.timestamp_ms,
            encode_offset_index(offset_index),
            encode_time_index(time_index),
            encode_aborted(NONE_ABORTED.with_entries(self._aborted)),
            self._epochs,
            self._producers,
            self._leaves_segment,
            self._reason,
        )

    def _advance(self) -> None:
        """Take the whole batches at hand, and keep the bytes of one that is not whole yet."""
        data = b"".join(self._parts)
        batches, fault = self._intact(data)
        begin = self._indexes.size_bytes
        try:
            self._take(data, batches)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, begin + exc.position) from exc
        rest = data[int(batches.ends[-1]) :] if len(batches) else data
        if fault is None and len(rest) >= v2.HEADER_BYTES:
            self._wanted_bytes = v2.FRAME_BYTES + int.from_bytes(rest[8:12], "big", signed=True)
            if self._wanted_bytes > MAX_BATCH_BYTES:
                self._large = _LargeBatch(rest, self._wanted_bytes)
                rest = b""
        else:
            self._wanted_bytes = v2.HEADER_BYTES
        self._reason = fault.reason if fault is not None else ""
        self._parts, self._held_bytes = [rest], len(rest)

    def _pass_over(self, batch: _LargeBatch, data: bytes) -> bytes:
        """Let bytes of a batch above the limit pass, and give those behind it."""
        rest = batch.take(data)
        if batch.left_bytes:
            return b""
        if batch.keeps_crc:
            raise UnsupportedFormatError(_too_large(batch.size_bytes), self._indexes.size_bytes)
        self._reason = f"a batch of {batch.size_bytes} bytes fails its CRC"
        return rest

    def _intact(self, data: bytes) -> tuple[v2.Batches, CorruptRecordError | None]:
        """Find the batches before the first fault, and that fault."""
        batches, fault = scan_to_fault(data)
        for check in (
            v2.check_crcs,
            self._check_rising,
            _check_markers,
            self._check_segment,  # Last: only what is intact can be split off.
        ):
            try:
                check(data, batches)
            except CorruptRecordError as exc:
                fault = exc
                batches = batches.part(0, int(np.searchsorted(batches.starts, exc.position)))
        sizes = batches.ends - batches.starts
        if (sizes > MAX_BATCH_BYTES).any():
            first = int(np.argmax(sizes > MAX_BATCH_BYTES))
            position = self._indexes.size_bytes + int(batches.starts[first])
            raise UnsupportedFormatError(_too_large(int(sizes[first])), position)
        return batches, fault

    def _check_rising(self, _: bytes, batches: v2.Batches) -> None:
        """Compare the first batch with the one before it; the others were compared by `scan`."""
        if len(batches) and int(batches.base_offsets[0]) < self._least_offset:
            raise CorruptRecordError(
                f"batch at offset {int(batches.base_offsets[0])} behind offset "
                f"{self._least_offset - 1}"
            )

    def _check_segment(self, _: bytes, batches: v2.Batches) -> None:
        below = batches.base_offsets < self._base_offset
        beyond = batches.next_offsets - 1 - self._base_offset > MAX_RELATIVE_OFFSET
        outside = np.flatnonzero(below | beyond)
        self._leaves_segment = bool(len(outside) and not below[outside[0]])
        if len(outside):
            raise CorruptRecordError(
                f"a batch at offset {int(batches.base_offsets[outside[0]])} in the segment of "
                f"offset {self._base_offset}",
                int(batches.starts[outside[0]]),
            )

    def _take(self, data: bytes, batches: v2.Batches) -> None:
        """Index batches that are whole and intact, and follow their epochs and producers."""
        if not len(batches):
            return
        indexes = self._indexes.with_appends(appends_of(batches), self._interval_bytes)
        if indexes.size_bytes > MAX_POSITION:
            raise CorruptRecordError(f"a log of more than {MAX_POSITION} bytes is no segment's")
        self._epochs = self._epochs.assign_all(new_epochs(batches, self._epochs.latest_epoch))
        completed = self._producers.replay(data, batches)
        self._aborted += [
            AbortedTransaction(
                one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset
            )
            for one in completed
            if one.is_aborted
        ]
        self._indexes = indexes
        self._next_offset = self._least_offset = int(batches.next_offsets[-1])


def scan_to_fault(data: bytes) -> tuple[v2.Batches, CorruptRecordError | None]:
    """Find the batches before the first place that is none, and what is wrong there."""
    fault: CorruptRecordError | None = None
    while True:
        try:
            return v2.scan(data, 0, len(data) if fault is None else fault.position), fault
        except CorruptRecordError as earlier:
            fault = earlier


def new_epochs(batches: v2.Batches, latest: int) -> list[tuple[int, int]]:
    """List the leader epochs above all before them, with the base offsets they come at."""
    epochs = batches.headers["leader_epoch"].astype(np.int64)
    before = np.maximum.accumulate(np.concatenate(([max(latest, -1)], epochs)))[:-1]
    rises = np.flatnonzero(epochs > before)
    return list(zip(epochs[rises].tolist(), batches.base_offsets[rises].tolist(), strict=True))


def _check_markers(data: bytes, batches: v2.Batches) -> None:
    producer_batches(data, batches.where((batches.attributes & v2.CONTROL) != 0))


class _LargeBatch:
    """A batch above the limit: only its CRC is followed, and none of its bytes are kept."""

    def __init__(self, head: bytes, size_bytes: int) -> None:
        """Begin with its first bytes, a v2 header's worth at least."""
        self.size_bytes = self.left_bytes = size_bytes
        self._is_legacy = head[v2.MAGIC_AT] < v2.MAGIC
        at = v2.FRAME_BYTES if self._is_legacy else v2.MAGIC_AT + 1
        self._stored = int.from_bytes(head[at : at + 4], "big")
        self._unchecked_bytes = legacy.CHECKED_FROM if self._is_legacy else v2.CHECKED_FROM
        self._crc = 0
        self.take(head)

    def take(self, data: bytes) -> bytes:
        """Take the next bytes, and give those that are behind the batch."""
        mine, rest = data[: self.left_bytes], data[self.left_bytes :]
        self.left_bytes -= len(mine)
        checked = mine[self._unchecked_bytes :]
        self._unchecked_bytes -= min(self._unchecked_bytes, len(mine))
        extend = zlib_ng.crc32 if self._is_legacy else _extend_crc32c
        self._crc = extend(checked, self._crc)
        return rest

    @property
    def keeps_crc(self) -> bool:
        """Tell whether the bytes have the CRC that the batch says."""
        return self._crc == self._stored


def _extend_crc32c(data: bytes, crc: int) -> int:
    return int(google_crc32c.extend(crc, data))


def _too_large(size_bytes: int) -> str:
    return (
        f"a batch of {size_bytes} bytes is intact, but klog's limit is {MAX_BATCH_BYTES}; nothing "
        "was cut, let a broker recover this log"
    )
