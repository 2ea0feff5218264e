"""Count the records of one slice that a reader would get, by the headers of its batches.

The rule: nothing is decompressed, and no CRC is checked, except where no header says it: how many
records a batch has between two of its offsets after a compaction, and what a compressed message of
format v0 or v1 holds. A header that counts more records than a reader takes is damage here, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from klog.connector.segment_chunks import Chunk, at_file_position
from klog.connector.source.aborted_filter import AbortedTransactionFilter
from klog.connector.source.index_narrowing import narrow
from klog.connector.source.slice_batches import (
    are_wholly_wanted,
    as_in_file,
    damage_of_slice,
    overlapping_batches,
    slice_chunks,
    visible_batches,
)
from klog.connector.source.slice_files import open_slice_file
from klog.connector.source.slices import Slice
from klog.connector.store.readable_store import ReadableStore
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.decode_records import check_record_counts, decode_parts
from klog.logformat.batches.header_records import are_headers_enough


def count_slice(store: ReadableStore, slice_: Slice) -> Iterator[tuple[int, int]]:
    """Yield the number of records of a slice, chunk by chunk.

    Args:
        store: The store of the slice's root.
        slice_: The slice.

    Yields:
        The number, and the offset of the log after these records.

    Raises:
        SliceChangedError: If the file holds other bytes than were planned.
        FileNotFoundError: If a committed file has gone.
        CorruptFileError: If a header, or what has to be read, is damaged.
    """
    file = open_slice_file(store, slice_)
    try:
        in_file = narrow(store, as_in_file(slice_), file)
        aborted_filter = AbortedTransactionFilter(in_file, store, file)
        with damage_of_slice(in_file):
            for chunk in slice_chunks(file, in_file):
                batches = overlapping_batches(chunk.batches, in_file)
                batches = visible_batches(batches, chunk, aborted_filter)
                next_offset = min(int(chunk.batches.next_offsets[-1]), in_file.end_offset)
                yield _count(chunk, batches, in_file), next_offset + in_file.offset_shift
    finally:
        file.close()


def _count(chunk: Chunk, batches: v2.Batches, slice_: Slice) -> int:
    """Return how many wanted records batches have."""
    with at_file_position(chunk.position):
        check_record_counts(batches)
    is_whole = are_wholly_wanted(batches, slice_)
    is_whole &= batches.headers["count"] != v2.WRAPPER_COUNT
    count = int(batches.headers["count"][is_whole].sum(dtype=np.int64))
    if is_whole.all():
        return count
    rest = batches.where(~is_whole)
    is_dense = are_headers_enough(rest, {"offset"})
    dense = rest.where(is_dense)
    count += int(
        (
            np.minimum(dense.next_offsets, slice_.end_offset)
            - np.maximum(dense.base_offsets, slice_.start_offset)
        ).sum()
    )
    return count + _count_decoded(chunk, rest.where(~is_dense), slice_)


def _count_decoded(chunk: Chunk, batches: v2.Batches, slice_: Slice) -> int:
    """Return how many wanted records batches have whose headers do not say it."""
    if not len(batches):
        return 0
    count = 0
    with at_file_position(chunk.position):
        check_batch_crcs(chunk.data, batches)
        for columns in decode_parts(chunk.data, batches, ()):
            bounds = (slice_.start_offset, slice_.end_offset)
            start, end = np.searchsorted(columns.offset, bounds, "left").tolist()
            count += end - start
    return count
