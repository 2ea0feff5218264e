"""Which segments of a broker's log are taken, and how many of their bytes and offsets.

The rule: a segment is taken if it has bytes and any of its offsets is at or above the log start. Of
the active segment only the bytes before the log end are taken: a torn tail stays in the file. A
segment stands for the offsets up to the next one, the last segment for those up to the log end.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.kafka_dir.partition_directory import Segment
from klog.connector.kafka_dir.raw_partition import RawPartition


@dataclass(frozen=True, slots=True)
class ReadableSegment:
    """The first `size_bytes` of the `file_bytes` of a segment, with offsets below `end_offset`."""

    segment: Segment
    end_offset: int
    size_bytes: int
    file_bytes: int


def readable_segments(log: RawPartition) -> list[ReadableSegment]:
    """Return the segments of a partition that are taken, in order.

    Args:
        log: The partition.
    """
    segments: list[tuple[Segment, int]] = []
    for segment, end_offset in log.segments_with_ends():
        is_active = log.is_active(segment)
        size_bytes = log.active_end.position if is_active else segment.log.size_bytes
        if size_bytes and end_offset > log.log_start:
            segments.append((segment, size_bytes))
    end_offsets = [*(segment.base_offset for segment, _ in segments[1:]), log.log_end]
    return [
        ReadableSegment(segment, end_offset, size_bytes, segment.log.size_bytes)
        for (segment, size_bytes), end_offset in zip(segments, end_offsets, strict=False)
    ]
