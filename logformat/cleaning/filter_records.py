"""Filter the records of batches v2 by kernels, from bytes to bytes.

The rule: the bytes are those that decoding the retained records and encoding them again gives. If a
kernel cannot filter a batch, the result is None and the caller decodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_header import BatchBounds, add_batch_header
from klog.logformat.batches.batch_limits import (
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    MAX_DECODED_BYTES,
)
from klog.logformat.batches.decode_records import (
    PART_BYTES,
)
from klog.logformat.batches.record_sections import RecordSections, record_sections
from klog.logformat.compiled.kernel_arguments import read_only_bytes
from klog.logformat.compiled.kernel_types import RecordKernels

NO_HORIZON = -1


@dataclass(frozen=True, slots=True)
class RetainedRecords:
    """The retained records of one batch: their bytes, uncompressed, and facts for its header."""

    data: memoryview
    base_timestamp: int
    max_timestamp: int
    count: int

    def encode(
        self, attributes: BatchAttributes, base_offset: int, last_offset_delta: int
    ) -> bytes:
        """Return the batch of these records.

        Args:
            attributes: What the batch keeps of its old header.
            base_offset: The base offset of the batch.
            last_offset_delta: The last offset of the batch, minus the base offset.

        Raises:
            ValueError: If it is too large when compressed.
        """
        bounds = BatchBounds(
            base_offset=base_offset,
            last_offset_delta=last_offset_delta,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            base_sequence=attributes.base_sequence,
            record_count=self.count,
        )
        return add_batch_header([self.data], attributes, attributes.attribute_bits, bounds)


RecordFilter: TypeAlias = Callable[[bytes, v2.Batches, Mask, Longs], "list[RetainedRecords] | None"]
"""Filters batches v2; None if it cannot.

It takes the bytes that the batches lie in, the batches, which of their records are retained, and
the delete horizon of each batch after the cleaning, `NO_HORIZON` for none.
"""
_SectionSource: TypeAlias = Callable[
    [bytes, v2.Batches], Iterator[tuple[v2.Batches, RecordSections]]
]
"""Yields the uncompressed records of batches v2, part by part."""


def compiled_filter(kernels: RecordKernels) -> RecordFilter:
    """Return a filter that decompresses the batches.

    Args:
        kernels: The kernels for records of format v2.
    """
    return _filter_by(kernels, lambda data, batches: record_sections(data, batches, PART_BYTES))


def section_filter(
    kernels: RecordKernels, decompressed: v2.Batches, sections: RecordSections
) -> RecordFilter:
    """Return a filter of some batches that were decompressed before.

    Args:
        kernels: The kernels for records of format v2.
        decompressed: The batches; the filter takes any of them.
        sections: Where their records lie.
    """

    def sections_of(_: bytes, batches: v2.Batches) -> Iterator[tuple[v2.Batches, RecordSections]]:
        yield batches, sections.where(np.isin(decompressed.starts, batches.starts))

    return _filter_by(kernels, sections_of)


def _filter_by(kernels: RecordKernels, sections_of: _SectionSource) -> RecordFilter:
    def filter_batches(
        data: bytes, batches: v2.Batches, retained: Mask, horizons: Longs
    ) -> list[RetainedRecords] | None:
        counts = batches.headers["count"].astype(np.int64)
        has_append_time = (batches.attributes & v2.LOG_APPEND_TIME) != 0
        if has_append_time.any() or (counts < 1).any() or (counts > MAX_BATCH_RECORDS).any():
            return None
        results: list[RetainedRecords] = []
        number = row = size_bytes = 0
        for part, sections in sections_of(data, batches):
            numbers = slice(number, number + len(part))
            rows = slice(row, row + int(counts[numbers].sum()))
            part_results = _filter_part(kernels, part, sections, retained[rows], horizons[numbers])
            size_bytes += sum(len(records.data) for records in part_results or ())
            if part_results is None or size_bytes > MAX_DECODED_BYTES:
                return None
            results += part_results
            number, row = numbers.stop, rows.stop
        return results

    return filter_batches


def _filter_part(
    kernels: RecordKernels,
    batches: v2.Batches,
    sections: RecordSections,
    retained: Mask,
    horizons: Longs,
) -> list[RetainedRecords] | None:
    headers = batches.headers
    max_bytes = int((sections.ends - sections.starts).sum())
    out = np.empty(max_bytes + kernels.MAX_GROWTH_BYTES * int(retained.sum()), np.uint8)
    ends = np.empty(len(batches), np.int64)
    base_timestamps, max_timestamps, counts = np.empty((3, len(batches)), np.int64)
    is_done = kernels.filter_records(
        read_only_bytes(sections.data),
        (sections.starts, sections.ends),
        (
            headers["count"].astype(np.int64),
            headers["last_offset_delta"].astype(np.int64),
            headers["base_timestamp"].astype(np.int64),
            horizons,
        ),
        retained,
        out,
        ends,
        (base_timestamps, max_timestamps, counts),
    )
    starts = np.append(0, ends[:-1])
    if not is_done or (ends - starts > MAX_BATCH_BYTES - v2.HEADER_BYTES).any():
        return None
    rows = np.stack((starts, ends, base_timestamps, max_timestamps, counts), axis=1).tolist()
    return [RetainedRecords(out.data[start:end], *facts) for start, end, *facts in rows]
