"""Slices, the unit of reading: a byte range of one segment with the offsets wanted from it.

The rule: a slice says all that a task needs to decode its records, so a task lists nothing and
follows no marker, except where the slice says so. docs/slice.md specifies it for other engines.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = -1
"""Stands for a number that the planner does not know: no offset, size or CRC is below 0."""


class SliceChangedError(Exception):
    """The bytes under a slice are no longer those that were planned."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A byte range of one segment, and the records wanted from it.

    Attributes:
        topic: Topic of the records.
        partition: Number of the partition.
        topic_id: Id of the topic, empty if it has none.
        root: Path or URL of the root as the user wrote it; it says which store has the file.
        path: The segment's log, as the store spells paths.
        is_committed: Whether a commit of a klog root names the file, which then never changes.
        identity: Which file it is, in the words of its store. Empty if a commit says it.
        stamp: Changes when bytes of the file do. Empty for a file that may still grow.
        file_size_bytes: Size of the file; `UNKNOWN` for a file that may still grow.
        segment_size_bytes: The file's first bytes that are the segment; a torn tail follows them.
        base_offset: Of the segment, as the file has it.
        offset_shift: What is added to the offsets of the file to give those of the log.
        start_position: First byte to read; a batch begins there.
        end_position: Position after the last byte to read; a batch ends there.
        first_offset: First offset of the batch at `start_position`, as the file has it, or
            `UNKNOWN`.
        limit_offset: Every offset in the byte range is lower, as the file has it.
        start_offset: First offset wanted, of the log.
        end_offset: Offset after the last one wanted, of the log.
        index_path: Offset index by which the reader narrows the byte range; empty if the planner
            has narrowed it, or nothing can.
        index_size_bytes: Size of that file.
        crc32c: CRC-32C of the segment, if the byte range is all of it; else `UNKNOWN`.
        committed_only: Whether records of aborted transactions are left out.
        aborted: Aborted transactions that may have data here, as the file has their offsets: lists
            of producer id, first offset, offset of the marker.
        markers_end_offset: `UNKNOWN` if `aborted` has all aborted transactions. Else it may lack
            some, whose markers lie before this offset of the log.
        are_markers_in_file: Whether all markers that decide the rest lie in the segment.
    """

    topic: str
    partition: int
    topic_id: str
    root: str
    path: str
    is_committed: bool
    identity: str
    stamp: str
    file_size_bytes: int
    segment_size_bytes: int
    base_offset: int
    offset_shift: int
    start_position: int
    end_position: int
    first_offset: int
    limit_offset: int
    start_offset: int
    end_offset: int
    index_path: str
    index_size_bytes: int
    crc32c: int
    committed_only: bool
    aborted: list[list[int]]
    markers_end_offset: int
    are_markers_in_file: bool

    @property
    def name(self) -> str:
        """Return `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"

    @property
    def size_bytes(self) -> int:
        """Return how many bytes are read."""
        return self.end_position - self.start_position

    @property
    def offset_count(self) -> int:
        """Return how many offsets are wanted."""
        return self.end_offset - self.start_offset

    @property
    def is_complete_segment(self) -> bool:
        """Return whether the byte range is all of the segment."""
        return not self.start_position and self.end_position == self.segment_size_bytes
