"""A partition's files as a broker leaves them after a clean stop, built from its batches.

The rule (docs/format.md, 7.1, 8 to 10, 12 and 13): of a batch only bytes outside its CRC change,
and only where they must: base offsets that are shifted, and leader epochs other than 0, which
number the leaders of another cluster. A broker with a lower epoch of its own would drop such
entries, and no follower accepts -1, so the log is what the first leader of a partition would have
written.

Each segment keeps its own batches. It rolls only where its files cannot hold it: last offsets above
2147483647 relative to the base offset, more bytes than a position can address, a full index. What a
broker has next to its logs follows from the batches alone: offset and time indexes, aborted
transactions, leader epochs, and the producers at the log end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.rewrite_offsets import rewrite_offsets, shift_offsets
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import encode_epoch_checkpoint
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.broker_files.leader_epochs import NO_EPOCHS
from klog.logformat.broker_files.metadata_files import encode_partition_metadata
from klog.logformat.indexes.abstract_index import SEGMENT_INDEX_BYTES
from klog.logformat.indexes.index_building import (
    INDEX_INTERVAL_BYTES,
    OpenIndexes,
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
from klog.logformat.producers.control_batches import AppendInfo, end_transaction
from klog.logformat.producers.producer_snapshot import encode_snapshot
from klog.logformat.producers.producer_state import ProducerState
from klog.logformat.segments.segment_rolling import OpenSegment, RollLimits, plan_rolls

FIRST_LEADER_EPOCH = 0
_NEVER_MS = (1 << 63) - 1
_FEW_PRODUCERS = 1_000


@dataclass(frozen=True, slots=True)
class FileChunk:
    """The next bytes of the file `name`; the chunks of a file follow each other."""

    name: str
    data: bytes | memoryview


@dataclass(slots=True)
class _Segment:
    """The segment that is being written."""

    rolling: OpenSegment
    indexes: OpenIndexes
    aborted: list[AbortedTransaction] = field(default_factory=list)


class PartitionExporter:
    """Export one partition, segment by segment from its start.

    Each call returns the chunks of files that it has completed.

    Attributes:
        base_offsets: Of the segments so far.
        next_offset: The offset after the last batch so far.
    """

    def __init__(
        self,
        log_start: int,
        now_ms: int,
        segment_index_bytes: int = SEGMENT_INDEX_BYTES,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
    ) -> None:
        """Start without segments.

        Args:
            log_start: The log start offset.
            now_ms: When producers expire, as a broker drops expired ones when it starts; also the
                timestamp of markers that the exporter writes.
            segment_index_bytes: The topic's `segment.index.bytes`.
            index_interval_bytes: The topic's `index.interval.bytes`.
        """
        self._limits = RollLimits(
            MAX_POSITION, _NEVER_MS, segment_index_bytes, index_interval_bytes
        )
        self._log_start, self._now_ms = log_start, now_ms
        self._epochs = NO_EPOCHS
        self._producers = ProducerState(log_start)
        self._producers_after_expiry = _FEW_PRODUCERS
        self._segment: _Segment | None = None
        self.base_offsets: list[int] = []
        self.next_offset = 0

    @property
    def open_transactions(self) -> dict[int, int]:
        """Return producer id to first offset of the transactions without a marker so far."""
        return dict(self._producers.open_transactions)

    @property
    def producer_ids(self) -> list[int]:
        """Return the ids of the producers that a broker will know."""
        return sorted(self._producers.producers)

    def start_segment(self, base_offset: int) -> Iterator[FileChunk]:
        """Close the last segment and start the next one.

        Args:
            base_offset: The base offset of the new segment.
        """
        yield from self._close_segment()
        self.base_offsets.append(base_offset)
        self._segment = _Segment(OpenSegment(base_offset, base_offset), empty_indexes(base_offset))
        yield FileChunk(segment_file_name(base_offset, "log"), b"")

    def append(
        self, data: bytes, batches: v2.Batches, offset_shift: int = 0
    ) -> Iterator[FileChunk]:
        """Append batches to the segment.

        Args:
            data: The bytes that `batches` lie in.
            batches: The next batches of the log.
            offset_shift: What to add to their offsets.

        Raises:
            CorruptRecordError: For a malformed control record, with its position in `data`.
            UnsupportedFormatError: For messages of formats v0 and v1 with an offset shift.
            ValueError: If no segment is open, or for offsets below its base offset.
        """
        if self._segment is None:
            raise ValueError("no segment is open, call start_segment first")
        if not len(batches):
            return
        first_offset = int(batches.base_offsets[0]) + offset_shift
        if first_offset < self._segment.rolling.base_offset:
            raise ValueError(
                f"batch at offset {first_offset}, shifted by {offset_shift}, is below base offset "
                f"{self._segment.rolling.base_offset} of its segment"
            )
        new_data, batches = _rewrite(data, batches, offset_shift)
        appends = batches_as_appends(batches)
        plan = plan_rolls(appends, self._segment.rolling, self._limits)
        bounds = [*plan.starts.tolist(), len(batches)]
        for number, base_offset in enumerate(plan.base_offsets.tolist()):
            if number:
                yield from self.start_segment(base_offset)
            start, end = bounds[number], bounds[number + 1]
            if start == end:
                continue
            part, segment = batches.slice(start, end), self._segment
            segment.indexes = segment.indexes.with_appends(
                appends.part(start, end), self._limits.index_interval_bytes
            )
            # No record is rewritten, so control records can be decoded from the old bytes.
            segment.aborted += [
                transaction.index_entry()
                for transaction in self._producers.replay(data, part)
                if transaction.is_aborted
            ]
            chunk = memoryview(new_data)[int(part.starts[0]) : int(part.ends[-1])]
            yield FileChunk(segment_file_name(base_offset, "log"), chunk)
        self._segment.rolling = plan.active
        self._epochs = self._epochs.assign_batches(batches)
        self.next_offset = int(batches.next_offsets[-1])

    def end_transaction(self, producer_id: int, kind: int, offset: int) -> Iterator[FileChunk]:
        """Append the marker that ends an open transaction.

        The marker has the epochs that are known of the producer, as its coordinator's has.

        Args:
            producer_id: The producer of the transaction.
            kind: `ABORT` or `COMMIT`.
            offset: The marker's offset.
        """
        entry = self._producers.producers[producer_id]
        marker = end_transaction(
            AppendInfo(offset, self._now_ms, FIRST_LEADER_EPOCH),
            kind,
            producer_id,
            entry.epoch,
            max(entry.coordinator_epoch, 0),
        )
        yield from self.append(marker, scan_batches(marker, 0, len(marker)))

    def finish(self, log_end: int, topic_id: str) -> Iterator[FileChunk]:
        """End the log.

        If the last offsets have no batch, as after a compaction, an empty segment holds the log
        end. So it does in a partition without records.

        Args:
            log_end: The log end offset.
            topic_id: For `partition.metadata`, 22 characters of URL-safe base64.
        """
        if self._segment is None or self.next_offset < log_end:
            yield from self.start_segment(log_end)
        yield from self._close_segment()
        self._producers.expire(self._now_ms)
        if log_end > self._log_start:  # A broker does not read a snapshot at the log start.
            snapshot = encode_snapshot(self._producers.snapshot())
            yield FileChunk(segment_file_name(log_end, "snapshot"), snapshot)
        epochs = self._epochs.truncate_from_start(self._log_start)
        yield FileChunk("leader-epoch-checkpoint", encode_epoch_checkpoint(epochs.entries))
        yield FileChunk("partition.metadata", encode_partition_metadata(topic_id))

    def _close_segment(self) -> Iterator[FileChunk]:
        if self._segment is None:
            return
        segment, self._segment = self._segment, None
        base_offset = segment.rolling.base_offset
        offset_index, time_index = segment.indexes.closed()
        yield FileChunk(segment_file_name(base_offset, "index"), encode_offset_index(offset_index))
        yield FileChunk(segment_file_name(base_offset, "timeindex"), encode_time_index(time_index))
        if segment.aborted:
            aborted = encode_aborted(NO_ABORTED_TRANSACTIONS.with_entries(segment.aborted))
            yield FileChunk(segment_file_name(base_offset, "txnindex"), aborted)
        # A log may have had one writer a commit, and few of them are unexpired at a time. Expiring
        # when their number has doubled visits each producer a constant number of times.
        if len(self._producers.producers) >= 2 * self._producers_after_expiry:
            self._producers.expire(self._now_ms)
            self._producers_after_expiry = max(len(self._producers.producers), _FEW_PRODUCERS)


def _rewrite(
    data: bytes, batches: v2.Batches, offset_shift: int
) -> tuple[bytes | bytearray, v2.Batches]:
    """Return the bytes and batches with their new offsets and epochs; the same if none change."""
    batches = shift_offsets(batches, offset_shift)
    is_v2 = ~batches.is_legacy
    if not offset_shift and (batches.headers["leader_epoch"][is_v2] == FIRST_LEADER_EPOCH).all():
        return data, batches
    new_data = bytearray(data)
    v2_batches = rewrite_offsets(new_data, batches.where(is_v2), leader_epoch=FIRST_LEADER_EPOCH)
    headers = batches.headers.copy()
    headers[is_v2] = v2_batches.headers
    return new_data, v2.Batches(batches.starts, batches.ends, headers)
