"""Read committed segments from their first batch to their last, with the offsets of the log.

The rule: each chunk is verified against its commit before it is used. An error in a chunk names the
file, the position in the file and the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry, partition_directory_of
from klog.connector.commit_log.verified_segment import read_verified
from klog.connector.segment_chunks import at_file_position
from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.rewrite_offsets import shift_offsets


def walk_segment(
    root: KlogRoot, entry: SegmentEntry, use: Callable[[bytes, v2.Batches], object]
) -> None:
    """Read a segment in chunks of whole batches and call `use` with each.

    Args:
        root: The klog root.
        entry: The segment's entry.
        use: Gets the bytes of a chunk, and its batches with their offsets in the log.

    Raises:
        CorruptFileError: The segment is damaged, or `use` found damage.
        UnsupportedFormatError: The segment cannot have the offsets of its entry.
    """
    for chunk in read_verified(root, entry):
        with locate_errors(root, entry, chunk.position):
            use(chunk.data, shift_offsets(chunk.batches, entry["offset_shift"]))


@contextmanager
def locate_errors(root: KlogRoot, entry: SegmentEntry, position: int) -> Iterator[None]:
    """Add file, position and partition to an error.

    Args:
        root: The klog root.
        entry: The entry of the segment that is worked on.
        position: Where the chunk that is worked on begins in the file.
    """
    try:
        with at_file_position(position):
            yield
    except (CorruptRecordError, UnsupportedFormatError) as exc:
        raise exc.in_file(root.segment_path(entry), partition_directory_of(entry)) from exc
