"""A partition's directory as a broker loads it, from bytes to bytes; Kafka's `LogLoader`.

What a crash left unfinished is completed or dropped (`resolve_files`), segments that lack files are
recovered, after an unclean stop all from the one that holds the recovery point, and the log is cut
at the first damage. Log start, log end, leader epochs and producers follow from the rest. As a
broker, it trusts the files of a log that was closed cleanly: it checks neither their batches nor
their indexes (docs/format.md, 14).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.broker_files.checkpoint_files import decode_epoch_checkpoint
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.broker_files.leader_epochs import NO_EPOCHS, LeaderEpochs
from klog.logformat.broker_files.partition_listing import LOG, resolve_files
from klog.logformat.indexes.index_building import INDEX_INTERVAL_BYTES
from klog.logformat.indexes.transaction_index import check_aborted
from klog.logformat.producers.producer_snapshot import encode_snapshot
from klog.logformat.segments.torn_tail import scan_to_damage
from tests.support.broker_loader.leader_epoch_cache import truncate_from_end
from tests.support.broker_loader.producer_state_manager import ProducerStateManager
from tests.support.broker_loader.recover_segment import recover
from tests.support.broker_loader.reload_producers import reload_producers, stray_snapshots
from tests.support.broker_loader.split_segment import overflows, split

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
    producers: ProducerStateManager
    log_start: int
    log_end: int

    @property
    def logs(self) -> dict[int, bytes]:
        """Return the log of each segment by base offset."""
        return {base_offset: files[LOG] for base_offset, files in self.segments.items()}


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

    `log_start` and `recovery_point` come from the broker's checkpoints, 0 without an entry;
    `was_clean` is whether there is a `.kafka_cleanshutdown`; `now_ms` is when producers expire,
    None to keep all. Raises `CorruptRecordError` for a malformed leader epoch checkpoint, or for
    batches that contradict each other, `UnsupportedFormatError` for a batch above klog's limit.
    """
    listing = resolve_files(files, lambda name: _next_offset(0, files[name]))
    loader = _LogLoader(
        {
            base_offset: {suffix: files[name] for suffix, name in names.items()}
            for base_offset, names in listing.segments.items()
        },
        {offset: files[name] for offset, name in listing.snapshots.items()},
        decode_epoch_checkpoint(files.get(EPOCH_CHECKPOINT, b"")),
        log_start,
        now_ms,
        interval_bytes,
    )
    loader.complete_segments()
    if not was_clean:
        loader.recover_from(recovery_point)
    return loader.partition(was_clean=was_clean)


def recovery_reason(segment: Mapping[str, bytes], base_offset: int) -> str | None:
    """Return why a broker recovers a segment that was closed cleanly, None if it does not.

    `segment` maps suffixes to files. An `.index` is enough, whatever its content.
    """
    if INDEX not in segment:
        return "there is no offset index"
    try:
        check_aborted(segment.get(TRANSACTION_INDEX, b""), base_offset)
    except (CorruptRecordError, UnsupportedFormatError) as exc:
        return f"the transaction index: {exc.reason}"
    return None


class _LogLoader:
    """A partition between the files of its directory and what a broker serves."""

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
        """Recover the segments that lack files; add an empty time index.

        A segment that is cut here leaves a gap before the next, as with a broker: `recover_from`
        drops only what follows a cut of its own.
        """
        for base_offset in sorted(self._segments):
            if recovery_reason(self._segments[base_offset], base_offset) is None:
                self._segments[base_offset].setdefault(TIME_INDEX, b"")
                continue
            for part_offset in self._split(base_offset):
                self._recover(part_offset)

    def recover_from(self, recovery_point: int) -> None:
        """Recover all segments from the one that holds an offset; drop those after a cut."""
        base_offsets = sorted(self._segments)
        first = max(bisect_right(base_offsets, recovery_point) - 1, 0)
        for base_offset in base_offsets[first:]:
            for part_offset in self._split(base_offset):
                if self._recover(part_offset):
                    for later in [other for other in self._segments if other > part_offset]:
                        del self._segments[later]
                        self._snapshots.pop(later, None)
                    return

    def partition(self, *, was_clean: bool) -> Partition:
        """Return the partition with its log start, log end, epochs and producers."""
        log_end = self._log_end()
        if log_end < self._log_start:
            self._segments, self._snapshots = {}, {}
            self._epochs, log_end = NO_EPOCHS, self._log_start
        if not self._segments:
            self._segments[self._log_start] = {LOG: b"", INDEX: b"", TIME_INDEX: b""}
        start = max(self._log_start, min(self._segments))
        epochs = truncate_from_end(self._epochs, log_end).truncate_from_start(self._log_start)
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

    def _recover(self, base_offset: int) -> bool:
        """Recover one segment; return whether its log was cut."""
        earlier_logs = {other: log for other, log in self._logs().items() if other < base_offset}
        reloaded = reload_producers(
            earlier_logs, self._snapshots, self._log_start, base_offset, now_ms=self._now_ms
        )
        log = self._segments[base_offset][LOG]
        recovered = recover(
            log,
            base_offset,
            producers=reloaded.producers,
            epochs=self._epochs,
            interval_bytes=self._interval_bytes,
        )
        self._segments[base_offset] = {
            LOG: log[: recovered.position],
            INDEX: recovered.index,
            TIME_INDEX: recovered.time_index,
        }
        if recovered.transaction_index:
            self._segments[base_offset][TRANSACTION_INDEX] = recovered.transaction_index
        self._epochs = recovered.epochs
        self._snapshots = reloaded.snapshots
        if recovered.next_offset > max(base_offset, self._log_start):
            snapshot = encode_snapshot(recovered.producers.snapshot())
            self._snapshots[recovered.next_offset] = snapshot
        return recovered.position < len(log)

    def _split(self, base_offset: int) -> list[int]:
        """Split a segment whose offsets overflow; return the base offsets of its parts.

        Offsets that the next segment has too are damage, which recovery cuts.
        """
        log = self._segments[base_offset][LOG]
        batches, _ = scan_to_damage(log)
        if not overflows(batches, base_offset):
            return [base_offset]
        parts = split(log, batches, base_offset)
        later_offsets = [other for other in self._segments if other > base_offset]
        next_base_offset = min(later_offsets, default=MAX_OFFSET)
        if parts[0].base_offset < base_offset or parts[-1].base_offset >= next_base_offset:
            return [base_offset]
        del self._segments[base_offset]
        for part in parts:
            self._segments[part.base_offset] = {LOG: log[part.start : part.end]}
        return [part.base_offset for part in parts]

    def _logs(self) -> dict[int, bytes]:
        return {base_offset: files[LOG] for base_offset, files in self._segments.items()}

    def _log_end(self) -> int:
        last = max(self._segments, default=None)
        return self._log_start if last is None else _next_offset(last, self._segments[last][LOG])


def _next_offset(base_offset: int, log: bytes) -> int:
    """Return the offset after the last batch of a log, by headers alone."""
    batches, _ = scan_to_damage(log)
    return int(batches.next_offsets[-1]) if len(batches) else base_offset
