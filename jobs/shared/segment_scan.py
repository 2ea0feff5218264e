"""Read a segment that no commit names, and collect what its entry needs.

The rule: every batch must keep its CRC and have offsets within the segment's bounds. The segment
alone does not always show how a transaction ended, so two things are returned for the segments
around it: the data that no marker here follows, and each producer's first marker here, which
decides about the segments before. (docs/format.md, 6, 10 and 11.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import google_crc32c
import numpy as np

from klog.connector.commit_log.segment_entries import MAX_PRODUCERS
from klog.connector.segment_chunks import Chunk, at_file_position
from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.record_counts import (
    MAX_TIMESTAMP_MS,
    data_record_counts,
    header_timestamp_range,
)
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.producers.control_records import ABORT
from klog.logformat.producers.transaction_outcomes import (
    is_aborted_by_index,
    transaction_markers,
)


@dataclass(frozen=True, slots=True)
class ScannedSegment:
    """What the bytes of a segment show; offsets are the log's.

    Attributes:
        size_bytes: The bytes of its batches.
        crc32c: The CRC-32C of these bytes.
        record_count: All data records.
        aborted_count: Those of them that are known to be aborted.
        batch_count: All batches.
        min_timestamp_ms: The smallest timestamp, by headers.
        max_timestamp_ms: The largest timestamp.
        leader_epoch: The largest leader epoch.
        codec: The codec of the last data batch.
        producer_ids: The ids of its producers.
        aborted: The producer id, first and last offset of each aborted transaction.
        open_data: By producer id the first offset and the number of the records that no marker
            here follows.
        first_markers: By producer id the offset and the kind of its first marker here.
    """

    size_bytes: int
    crc32c: int
    record_count: int
    aborted_count: int
    batch_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    leader_epoch: int
    codec: str
    producer_ids: tuple[int, ...]
    aborted: tuple[tuple[int, int, int], ...]
    open_data: Mapping[int, tuple[int, int]]
    first_markers: Mapping[int, tuple[int, int]]


@dataclass(slots=True)
class SegmentScan:
    """A segment that is being read; its chunks are added in order.

    Its offsets are from `base_offset` to before `end_offset`. `indexed` are the aborted
    transactions of the broker's indexes, as `aborted_rows` returns them.
    """

    base_offset: int
    end_offset: int
    indexed: Longs
    size_bytes: int = 0
    _next_offset: int = field(init=False)
    _crc32c: int = 0
    _record_count: int = 0
    _aborted_count: int = 0
    _batch_count: int = 0
    _timestamps: tuple[int, int] = (MAX_TIMESTAMP_MS, v2.NO_TIMESTAMP)
    _leader_epoch: int = v2.UNSET
    _codec: int = 0
    _producer_ids: set[int] = field(default_factory=set)
    _aborted: dict[tuple[int, int], int] = field(default_factory=dict)
    """By producer id and last offset the first offset."""
    _open_data: dict[int, tuple[int, int]] = field(default_factory=dict)
    _first_markers: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start at the first offset."""
        self._next_offset = self.base_offset

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk.

        Args:
            chunk: The chunk, which has at least one batch.

        Raises:
            CorruptRecordError: It is damaged; the error has the position in the file.
        """
        batches = chunk.batches
        with at_file_position(chunk.position):
            check_batch_crcs(chunk.data, batches)
            self._check_bounds(batches)
            counts = data_record_counts(chunk.data, batches)
            self._add_transactions(chunk.data, batches, counts)
        data = np.frombuffer(chunk.data, np.uint8)[: int(batches.ends[-1])]
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        self.size_bytes, self._next_offset = chunk.end_position, int(batches.next_offsets[-1])
        self._batch_count += len(batches)
        self._record_count += int(counts.sum())
        self._add_headers(batches)

    def result(self) -> ScannedSegment:
        """Return what was read."""
        min_ms, max_ms = self._timestamps
        return ScannedSegment(
            self.size_bytes,
            self._crc32c,
            self._record_count,
            self._aborted_count,
            self._batch_count,
            max(min(min_ms, max_ms), v2.NO_TIMESTAMP),
            max(max_ms, v2.NO_TIMESTAMP),
            self._leader_epoch,
            CODEC_NAMES[self._codec],
            tuple(sorted(self._producer_ids)[:MAX_PRODUCERS]),
            tuple(
                (producer_id, first, last) for (producer_id, last), first in self._aborted.items()
            ),
            self._open_data,
            self._first_markers,
        )

    def _check_bounds(self, batches: v2.Batches) -> None:
        first = np.where(batches.is_legacy, batches.base_offsets, batches.min_offsets)
        is_wrong = (first < self.base_offset) | (batches.next_offsets > self.end_offset)
        is_wrong |= (batches.attributes & v2.CODEC_MASK) >= len(CODEC_NAMES)
        for number in np.flatnonzero(is_wrong).tolist():
            raise CorruptRecordError(
                f"a batch of offsets {first[number]} to {batches.next_offsets[number] - 1}, codec "
                f"{int(batches.attributes[number]) & v2.CODEC_MASK}, where offsets are from "
                f"{self.base_offset} to before {self.end_offset}",
                int(batches.starts[number]),
            )

    def _add_headers(self, batches: v2.Batches) -> None:
        headers, flags = batches.headers, batches.attributes
        ids = np.unique(headers["producer_id"].astype(np.int64))
        self._producer_ids.update(ids[ids >= 0].tolist())
        self._leader_epoch = max(self._leader_epoch, int(headers["leader_epoch"].max()))
        min_ms, max_ms = header_timestamp_range(batches)
        self._timestamps = min(self._timestamps[0], min_ms), max(self._timestamps[1], max_ms)
        data = np.flatnonzero((headers["count"] != 0) & ~batches.is_control)
        if len(data):
            self._codec = int(flags[data[-1]]) & v2.CODEC_MASK

    def _add_transactions(self, data: bytes, batches: v2.Batches, counts: Longs) -> None:
        """Follow the transactions through a chunk, batch by batch if there are any."""
        is_transactional = batches.is_transactional_data
        is_transactional |= batches.is_control & (batches.headers["producer_id"] >= 0)
        if not is_transactional.any():
            return
        transactional, counts = batches.where(is_transactional), counts[is_transactional]
        is_indexed = self._add_indexed(transactional, counts)
        kinds = {offset: kind for offset, _, kind in transaction_markers(data, transactional)}
        is_marker = transactional.is_control
        offsets = transactional.base_offsets.tolist()
        producer_ids = transactional.headers["producer_id"].tolist()
        for number in np.flatnonzero(~is_indexed).tolist():
            offset, producer_id = offsets[number], producer_ids[number]
            if not is_marker[number]:
                first, count = self._open_data.get(producer_id, (offset, 0))
                self._open_data[producer_id] = first, count + int(counts[number])
            elif offset in kinds:
                self._add_marker(producer_id, offset, kinds[offset])

    def _add_indexed(self, batches: v2.Batches, counts: Longs) -> Mask:
        """Count the data that indexes call aborted, and return which batches those are."""
        is_indexed = is_aborted_by_index(batches, self.indexed)
        if is_indexed.any():
            self._aborted_count += int(counts[is_indexed].sum())
            ids = set(batches.headers["producer_id"][is_indexed].tolist())
            low, high = batches.base_offsets[0], batches.base_offsets[-1]
            overlaps = (self.indexed[:, 1] <= high) & (self.indexed[:, 2] >= low)
            for producer_id, first, last in self.indexed[overlaps].tolist():
                if producer_id in ids:
                    self._aborted.setdefault((producer_id, last), first)
        return is_indexed

    def _add_marker(self, producer_id: int, offset: int, kind: int) -> None:
        self._first_markers.setdefault(producer_id, (offset, kind))
        first, count = self._open_data.pop(producer_id, (-1, 0))
        if kind == ABORT and first >= 0:
            self._aborted[producer_id, offset] = first
            self._aborted_count += count
