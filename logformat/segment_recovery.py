"""What a broker makes of a segment after an unclean stop, as a pure function of its bytes.

A broker that was not shut down cleanly reads each segment from its first byte and cuts it at the
first batch that is not whole and intact, and with it all that follows; on the way it makes the
indexes anew and carries leader epochs and producer state along (format notes 4.11, step 5; Kafka's
`LogSegment.recover`). `Recovery` does so over the bytes of one segment as they come, `recover` over
bytes at hand. Batches whose offsets fall are damage to klog, though a broker takes them: only
their order can tell, for offsets lie outside the CRC (`kafka-seen.md` 26).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat import batch as v2
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.epochs import NO_EPOCHS, LeaderEpochs
from klog.logformat.producer_batch import producer_batches
from klog.logformat.producers import CompletedTransaction, ProducerState
from klog.logformat.reindex import INDEX_INTERVAL_BYTES, SegmentIndexes

MAX_RELATIVE_OFFSET = (1 << 31) - 1
_ABORTED = struct.Struct(">hqqqq").pack
_ABORTED_VERSION = 0


@dataclass(frozen=True, slots=True)
class Recovered:
    """A segment as recovery leaves it: its log up to `position`, and what is made from that.

    `next_offset` is the offset behind the last batch kept. `index`, `time_index` and
    `transaction_index` are the files' bytes, trimmed. `reason` says why bytes were cut, and is
    empty where none were. With `leaves_segment` what follows is intact, but its offsets are too
    large for a segment of this base, which must be split first (format notes 4.11, step 10).
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

    No more is held than a piece and one batch. Raises `CorruptRecordError` only where intact
    batches contradict each other (data outside the producer's open transaction, which stops a
    broker as well), `UnsupportedFormatError` at messages of another format.
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
        self._indexes = SegmentIndexes(base_offset, interval_bytes)
        self._aborted: list[bytes] = []
        self._position = 0
        self._next_offset = base_offset
        self._least_offset = 0
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._wanted_bytes = v2.HEADER_BYTES
        self._leaves_segment = False
        self._reason = ""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the segment's log; what follows a cut is passed over."""
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
        if not self._reason and self._held_bytes:
            self._reason = "a batch is cut short"
        index, time_index = self._indexes.finish()
        return Recovered(
            self._position,
            self._next_offset,
            self._indexes.largest_timestamp_ms,
            index,
            time_index,
            b"".join(self._aborted),
            self._epochs,
            self._producers,
            self._leaves_segment,
            self._reason,
        )

    def _advance(self) -> None:
        """Take the whole batches at hand, and keep the bytes of one that is not whole yet."""
        data = b"".join(self._parts)
        batches, fault = self._intact(data)
        begin = self._position
        try:
            self._take(data, batches)
        except CorruptRecordError as exc:
            raise CorruptRecordError(exc.reason, begin + exc.position) from exc
        rest = data[int(batches.ends[-1]) :] if len(batches) else data
        if fault is None and len(rest) >= v2.HEADER_BYTES:
            self._wanted_bytes = v2.FRAME_BYTES + int.from_bytes(rest[8:12], "big", signed=True)
            if self._wanted_bytes > MAX_BATCH_BYTES:
                fault = _oversized(self._wanted_bytes, 0)
        else:
            self._wanted_bytes = v2.HEADER_BYTES
        self._reason = fault.reason if fault is not None else ""
        self._parts, self._held_bytes = [rest], len(rest)

    def _intact(self, data: bytes) -> tuple[v2.Batches, CorruptRecordError | None]:
        """Find the batches before the first fault, and that fault."""
        try:
            batches, fault = scan_to_fault(data)
        except UnsupportedFormatError as exc:
            position = self._position + (exc.position or 0)
            raise UnsupportedFormatError(exc.reason, position) from exc
        for check in (
            _check_sizes,
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
        self._indexes.add(
            self._position + batches.starts,
            batches.next_offsets - 1,
            batches.headers["max_timestamp"].astype(np.int64),
        )
        for epoch, offset in _new_epochs(batches, self._epochs.latest_epoch):
            self._epochs = self._epochs.assign(epoch, offset)
        self._aborted += [
            aborted_entry(one) for one in self._producers.replay(data, batches) if one.is_aborted
        ]
        self._position += int(batches.ends[-1])
        self._next_offset = self._least_offset = int(batches.next_offsets[-1])


def aborted_entry(transaction: CompletedTransaction) -> bytes:
    """Encode an aborted transaction as an entry of `.txnindex` (format notes 4.5)."""
    return _ABORTED(
        _ABORTED_VERSION,
        transaction.producer_id,
        transaction.first_offset,
        transaction.last_offset,
        transaction.last_stable_offset,
    )


def scan_to_fault(data: bytes) -> tuple[v2.Batches, CorruptRecordError | None]:
    """Find the batches before the first place that is none, and what is wrong there."""
    fault: CorruptRecordError | None = None
    while True:
        try:
            return v2.scan(data, 0, len(data) if fault is None else fault.position), fault
        except CorruptRecordError as earlier:
            fault = earlier


def _new_epochs(batches: v2.Batches, latest: int) -> list[tuple[int, int]]:
    """List the leader epochs above all before them, with the base offsets they come at."""
    epochs = batches.headers["leader_epoch"].astype(np.int64)
    epochs = np.where(batches.headers["magic"] == 2, epochs, -1)
    before = np.maximum.accumulate(np.concatenate(([max(latest, -1)], epochs)))[:-1]
    rises = np.flatnonzero(epochs > before)
    return list(zip(epochs[rises].tolist(), batches.base_offsets[rises].tolist(), strict=True))


def _check_sizes(_: bytes, batches: v2.Batches) -> None:
    sizes = batches.ends - batches.starts
    if (sizes > MAX_BATCH_BYTES).any():
        first = int(np.argmax(sizes > MAX_BATCH_BYTES))
        raise _oversized(int(sizes[first]), int(batches.starts[first]))


def _check_markers(data: bytes, batches: v2.Batches) -> None:
    producer_batches(data, batches.where((batches.attributes & v2.CONTROL) != 0))


def _oversized(size_bytes: int, position: int) -> CorruptRecordError:
    reason = f"a batch of {size_bytes} bytes is refused, the limit is {MAX_BATCH_BYTES}"
    return CorruptRecordError(reason, position)
