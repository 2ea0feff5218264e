"""Clean the dirty part of a partition in one pass, from its newest batch to its oldest.

The rule: read from the end of a log, a record is its key's last one if the key was not read before.
So each batch is cleaned when it is read, and its records are decompressed once; a key scan
reads them twice. The result is the same. All keys must fit into the offset map.

Batches come in chunks, each in the order of the log, and are cleaned in blocks whose records fit
into one buffer. If they do not, because they were compressed more than those of the block before,
a batch of the block that loses records is decompressed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import PART_BYTES, PART_RECORDS
from klog.logformat.batches.record_sections import record_sections
from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.compiled_offset_map import CompiledOffsetMap
from klog.logformat.cleaning.filter_records import RecordFilter, compiled_filter, section_filter
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.offset_map import ABSENT
from klog.logformat.cleaning.record_keys import RecordKeys, decode_keys, decode_keys_compiled
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap, retained_bitmap
from klog.logformat.cleaning.retained_records import retention_candidates
from klog.logformat.compiled.kernel_types import CleaningKernels

_BLOCK_BYTES = PART_BYTES // 8 * 7
"""The expected size of a block's records: a little more still fits into one part."""
_FIRST_RATIO = 4.0
"""The compression ratio that the first block is expected to have."""


class OffsetMapFullError(Exception):
    """The dirty part has more keys than the memory of the offset map holds."""


@dataclass(frozen=True, slots=True)
class CleanedBlock:
    """What is retained of a block, in the order of the log.

    Attributes:
        runs: The batches that stay.
        is_unchanged: Whether they are the bytes that the block had.
    """

    runs: tuple[BatchRun, ...]
    is_unchanged: bool


class NewestFirstCleaner:
    """Clean the dirty part of a partition. Afterwards the offset map has all its keys."""

    def __init__(
        self, kernels: CleaningKernels, seed: Seed, offset_map: CompiledOffsetMap, dirty_from: int
    ) -> None:
        """Start after the newest batch.

        Args:
            kernels: Of the cleaning.
            seed: Of the keys' hashes.
            offset_map: Without keys.
            dirty_from: The offset at which the dirty part starts; records below it are clean.
        """
        self._kernels, self._seed = kernels, seed
        self._map, self._dirty_from = offset_map, dirty_from
        self._compression_ratio = _FIRST_RATIO

    def clean(
        self, data: bytes, batches: v2.Batches, aborted: Mask, context: CleaningContext
    ) -> Iterator[CleanedBlock]:
        """Yield what is retained of the batches before those of the last call, newest block first.

        Args:
            data: The bytes that `batches` lie in.
            batches: In the order of the log.
            aborted: Which of them are data of aborted transactions.
            context: Of the cleaning.

        Raises:
            CorruptRecordError: With the position in `data`.
            OffsetMapFullError: If the keys do not fit.
        """
        for start, end in self._blocks(batches):
            block = batches.slice(start, end)
            yield self._clean_block(data, block, aborted[start:end], context)

    def _blocks(self, batches: v2.Batches) -> Iterator[tuple[int, int]]:
        """Cut batches into blocks of at least one batch, from the last to the first."""
        counts = batches.headers["count"].astype(np.int64)
        counts[counts == v2.WRAPPER_COUNT] = PART_RECORDS  # Its count is in its records alone.
        record_bounds = np.append(0, np.cumsum(counts))
        byte_bounds = np.append(0, np.cumsum(batches.ends - batches.starts))
        end = len(batches)
        while end:
            max_bytes = int(_BLOCK_BYTES / self._compression_ratio)
            start_by_bytes = np.searchsorted(byte_bounds, byte_bounds[end] - max_bytes)
            start_by_records = np.searchsorted(record_bounds, record_bounds[end] - PART_RECORDS)
            start = min(int(max(start_by_bytes, start_by_records)), end - 1)
            yield start, end
            end = start

    def _clean_block(
        self, data: bytes, batches: v2.Batches, aborted: Mask, context: CleaningContext
    ) -> CleanedBlock:
        has_records = ~batches.is_control & (batches.headers["count"] != 0)
        data_batches, is_aborted = batches.where(has_records), aborted[has_records]
        parts: list[RecordKeys] = []
        record_filter = compiled_filter(self._kernels.records)
        # The offsets of a wrapper's messages are in its records alone.
        if data_batches.is_legacy.any():
            parts += decode_keys(data, data_batches, self._seed)
        elif len(data_batches):
            decoded_bytes = 0
            encoded_bytes = int((data_batches.ends - data_batches.starts).sum())
            for part, sections in record_sections(data, data_batches, PART_BYTES):
                keys = decode_keys_compiled(self._kernels.records, part, sections, self._seed)
                parts += [keys] if keys is not None else decode_keys(data, part, self._seed)
                decoded_bytes += int((sections.ends - sections.starts).sum())
                self._compression_ratio = max(1.0, decoded_bytes / encoded_bytes)
                if len(part) == len(data_batches):  # The next part would reuse their buffer.
                    record_filter = section_filter(self._kernels.records, part, sections)
                    bitmap = self._bitmap(parts, data_batches, is_aborted)
                    return _cleaned(data, batches, bitmap, context, record_filter)
        bitmap = self._bitmap(parts, data_batches, is_aborted)
        return _cleaned(data, batches, bitmap, context, record_filter)

    def _bitmap(
        self, parts: Sequence[RecordKeys], batches: v2.Batches, is_aborted: Mask
    ) -> RetainedBitmap:
        none = np.zeros(0, np.bool_)
        newest_first = [
            self._retained(keys, retention_candidates(keys, batches, is_aborted))
            for keys in reversed(parts)
        ]
        return retained_bitmap(
            np.concatenate([none, *reversed(newest_first)]),
            np.concatenate([none, *(keys.tombstones for keys in parts)]),
        )

    def _retained(self, keys: RecordKeys, is_candidate: Mask) -> Mask:
        """Return which candidates are retained; all records after them were read."""
        retained: Mask = is_candidate.copy()
        dirty = int(np.searchsorted(keys.offsets, self._dirty_from))
        first, second = keys.first, keys.second
        if not self._map.put_if_absent(first[dirty:], second[dirty:], retained[dirty:]):
            raise OffsetMapFullError
        if dirty:
            retained[:dirty] &= self._map.find(first[:dirty], second[:dirty]) == ABSENT
        return retained


def _cleaned(
    data: bytes,
    batches: v2.Batches,
    bitmap: RetainedBitmap,
    context: CleaningContext,
    record_filter: RecordFilter,
) -> CleanedBlock:
    cleaner = SegmentCleaner(bitmap, context, record_filter)
    runs = tuple(cleaner.clean(data, batches))
    cleaner.close()
    block = slice(int(batches.starts[0]), int(batches.ends[-1]))
    size_bytes = block.stop - block.start
    is_unchanged = (
        len(runs) == 1 and len(runs[0].data) == size_bytes and runs[0].data == data[block]
    )
    return CleanedBlock(runs, is_unchanged)
