"""A partition's directory as a broker loads it: from bytes to bytes (docs/format.md, 14).

What a crash left half done is completed or dropped (`listing`), segments that lack what a broker
needs are recovered, after an unclean stop all from the one that holds the recovery point, and the
log is cut where one was damaged. Then the bounds, leader epochs and producers follow. Files that
are there are believed as a broker believes them: neither the batches nor the indexes of a log that
was closed cleanly are looked at. (Kafka's `LogLoader`.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.checkpoint import decode_epoch_checkpoint
from klog.logformat.cutting import overflows, split
from klog.logformat.epochs import NO_EPOCHS, LeaderEpochs
from klog.logformat.indexing import INDEX_INTERVAL_BYTES
from klog.logformat.listing import LOG, arrange
from klog.logformat.names import MAX_OFFSET
from klog.logformat.producers import ProducerState
from klog.logformat.replay import reload_producers, stray_snapshots
from klog.logformat.segment_recovery import recover, scan_to_fault
from klog.logformat.snapshot import encode_snapshot
from klog.logformat.transaction_index import check_aborted

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
INDEX, TIME_INDEX, TRANSACTION_INDEX = "index", "timeindex", "txnindex"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition: for each base offset its files by suffix, snapshots by offset, and its state.

    `log_end` is exclusive.
    """

    segments: dict[int, dict[str, bytes]]
    snapshots: dict[int, bytes]
    epochs: LeaderEpochs
    producers: ProducerState
    log_start: int
    log_end: int

    @property
    def logs(self) -> dict[int, bytes]:
        """Give the log of each segment by base offset."""
        return {base: files[LOG] for base, files in self.segments.items()}


def load(
    files: Mapping[str, bytes],
    *,
    log_start: int = 0,
    recovery_point: int = 0,
    was_clean: bool = False,
    now_ms: int | None = None,
    interval_bytes: int = INDEX_INTERVAL_BYTES,
) -> Partition:
    """Load a partition from its directory's files, name to bytes.

    `log_start` and `recovery_point` are what the broker's checkpoints say, 0 where they say
    nothing; `was_clean` is whether there is a `.kafka_cleanshutdown`; `now_ms` is when producers
    expire, None if none shall. Raises `CorruptRecordError` for a malformed leader epoch checkpoint,
    or for batches that contradict each other, `UnsupportedFormatError` for a batch above klog's
    limit.
    """
    listing = arrange(files, lambda name: _next_offset(0, files[name]))
    loading = _Loading(
        {b: {s: files[n] for s, n in names.items()} for b, names in listing.segments.items()},
        {offset: files[name] for offset, name in listing.snapshots.items()},
        decode_epoch_checkpoint(files.get(EPOCH_CHECKPOINT, b"")),
        log_start,
        now_ms,
        interval_bytes,
    )
    loading.complete_segments()
    if not was_clean:
        loading.recover_from(recovery_point)
    return loading.loaded(was_clean=was_clean)


def recovery_reason(segment: Mapping[str, bytes], base_offset: int) -> str | None:
    """Say what makes a broker recover a segment that was closed cleanly; None if nothing does.

    `segment` gives its files by suffix. That there is an `.index` is enough, whatever it says.
    """
    if INDEX not in segment:
        return "there is no offset index"
    try:
        check_aborted(segment.get(TRANSACTION_INDEX, b""), base_offset)
    except (CorruptRecordError, UnsupportedFormatError) as exc:
        return f"the transaction index: {exc.reason}"
    return None


class _Loading:
    """A partition on its way from what was found to what a broker works with."""

    def __init__(
        self,
        segments: dict[int, dict[str, bytes]],
        snapshots: dict[int, bytes],
        epochs: LeaderEpochs,
        log_start: int,
        now_ms: int | None,
        interval_bytes: int,
    ) -> None:
        self._segments = segments
        self._snapshots = snapshots
        self._epochs = epochs
        self._log_start = log_start
        self._now_ms = now_ms
        self._interval_bytes = interval_bytes

    def complete_segments(self) -> None:
        """Recover the segments that lack what a broker needs; add an empty time index.

        One that is cut here leaves a gap before the next, as with a broker: `recover_from` drops
        only what follows a cut of its own.
        """
        for base in sorted(self._segments):
            if recovery_reason(self._segments[base], base) is None:
                self._segments[base].setdefault(TIME_INDEX, b"")
                continue
            for part in self._split(base):
                self._recover(part)

    def recover_from(self, recovery_point: int) -> None:
        """Recover all segments from the one that holds an offset; drop those behind a cut."""
        bases = sorted(self._segments)
        for base in bases[max(bisect_right(bases, recovery_point) - 1, 0) :]:
            for part in self._split(base):
                if self._recover(part):
                    for later in [other for other in self._segments if other > part]:
                        del self._segments[later]
                        self._snapshots.pop(later, None)
                    return

    def loaded(self, *, was_clean: bool) -> Partition:
        """Settle bounds, epochs and producers."""
        log_end = self._log_end()
        if log_end < self._log_start:
            self._segments, self._snapshots = {}, {}
            self._epochs, log_end = NO_EPOCHS, self._log_start
        if not self._segments:
            self._segments[self._log_start] = {LOG: b"", INDEX: b"", TIME_INDEX: b""}
        start = max(self._log_start, min(self._segments))
        epochs = self._epochs.truncate_from_end(log_end).truncate_from_start(self._log_start)
        for offset in stray_snapshots(self._snapshots, self._segments):
            del self._snapshots[offset]
        reloaded = reload_producers(
            self._logs(),
            self._snapshots,
            start,
            log_end,
            was_clean=was_clean,
            now_ms=self._now_ms,
        )
        segments = dict(sorted(self._segments.items()))
        return Partition(segments, reloaded.snapshots, epochs, reloaded.producers, start, log_end)

    def _recover(self, base: int) -> bool:
        """Recover one segment; tell whether its log was cut."""
        before = {other: log for other, log in self._logs().items() if other < base}
        reloaded = reload_producers(
            before, self._snapshots, self._log_start, base, now_ms=self._now_ms
        )
        log = self._segments[base][LOG]
        recovered = recover(
            log,
            base,
            producers=reloaded.producers,
            epochs=self._epochs,
            interval_bytes=self._interval_bytes,
        )
        self._segments[base] = {
            LOG: log[: recovered.position],
            INDEX: recovered.index,
            TIME_INDEX: recovered.time_index,
        }
        if recovered.transaction_index:
            self._segments[base][TRANSACTION_INDEX] = recovered.transaction_index
        self._epochs = recovered.epochs
        self._snapshots = reloaded.snapshots
        if recovered.next_offset > max(base, self._log_start):
            taken = encode_snapshot(recovered.producers.snapshot())
            self._snapshots[recovered.next_offset] = taken
        return recovered.position < len(log)

    def _split(self, base: int) -> list[int]:
        """Split a segment whose offsets overflow; give the bases of its parts.

        Offsets that the next segment has as well are damage, which recovery cuts.
        """
        log = self._segments[base][LOG]
        batches, _ = scan_to_fault(log)
        if not overflows(batches, base):
            return [base]
        parts = split(log, batches, base)
        behind = min((other for other in self._segments if other > base), default=MAX_OFFSET)
        if parts[0].base_offset < base or parts[-1].base_offset >= behind:
            return [base]
        del self._segments[base]
        for part in parts:
            self._segments[part.base_offset] = {LOG: log[part.begin : part.end]}
        return [part.base_offset for part in parts]

    def _logs(self) -> dict[int, bytes]:
        return {base: files[LOG] for base, files in self._segments.items()}

    def _log_end(self) -> int:
        last = max(self._segments, default=None)
        return self._log_start if last is None else _next_offset(last, self._segments[last][LOG])


def _next_offset(base_offset: int, log: bytes) -> int:
    """Give the offset behind the last batch of a log that can be told by headers."""
    batches, _ = scan_to_fault(log)
    return int(batches.next_offsets[-1]) if len(batches) else base_offset
