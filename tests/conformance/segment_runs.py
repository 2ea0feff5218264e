"""Cases of segments: written to a directory and read by klog, or planned as appends.

A segment is a list of batches, each a list of (offset, timestamp) of its records.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from klog.connector.kafka_dir.offset_for_time import offset_for_time
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.segment_chunks import read_chunks
from klog.connector.source.slice_contract import expand_task
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.file_names import (
    parse_partition_directory,
    parse_segment_file,
    segment_file_name,
)
from klog.logformat.indexes.abstract_index import relative_offset
from klog.logformat.indexes.index_building import (
    Appends,
    OpenIndexes,
    batches_as_appends,
    empty_indexes,
)
from klog.logformat.indexes.offset_index import encode_offset_index
from klog.logformat.indexes.time_index import encode_time_index
from tests.connector.log_dirs import open_log, open_segment, plan_tasks, read, write_log
from tests.support.batch_bytes import Record, batch
from tests.support.broker_loader.index_updates import (
    index_batches,
    truncate_offsets,
    truncate_times,
)

Batch = Sequence[tuple[int, int]]
Segments = Mapping[int, Sequence[Batch]]
VALUE = b"v" * 19
"""With keys of one byte a batch of two records has 115 bytes, as in docs/format.md, 8.1."""
FAR = (1 << 63) - 1


def encode(records: Batch) -> bytes:
    return batch([Record(offset, timestamp, b"k", VALUE) for offset, timestamp in records])


def encode_all(batches: Sequence[Batch]) -> bytes:
    return b"".join(map(encode, batches))


def scanned(batches: Sequence[Batch]) -> v2.Batches:
    data = encode_all(batches)
    return scan_batches(data, 0, len(data))


@contextmanager
def written(segments: Segments, tail: bytes = b"") -> Iterator[Path]:
    """Write a partition t-0 whose active segment ends in the bytes of `tail`."""
    last = max(segments)
    with tempfile.TemporaryDirectory() as root:
        write_log(
            Path(root),
            {
                base: [encode_all(batches), tail if base == last else b""]
                for base, batches in segments.items()
            },
            clean=not tail,
        )
        yield Path(root)


def between(start: int, end: int) -> dict[str, str]:
    return {
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": end}}),
    }


def read_offsets(segments: Segments, start: int, end: int, tail: bytes = b"") -> list[int]:
    """Read a range; return the offsets."""
    with written(segments, tail) as root:
        return [row["offset"] for row in read(root, **between(start, end))]


def segments_read(segments: Segments, start: int, end: int) -> list[int]:
    """Return the base offsets of the segments that a range is read from."""
    with written(segments) as root:
        tasks = plan_tasks([str(root)], **between(start, end))
        return sorted({slice_.base_offset for task in tasks for slice_ in expand_task(task)})


def log_bounds(segments: Segments) -> tuple[int, int]:
    """Return log start and log end."""
    with written(segments) as root:
        log = open_log(root)
        return log.log_start, log.active_end.next_offset


def offsets_for_times(
    base: int, batches: Sequence[Batch], timestamps: Sequence[int], interval: int | None = None
) -> list[int | None]:
    """Look timestamps up, with the indexes that a broker makes at an interval, or without any."""
    with written({base: batches}) as root:
        if interval is not None:
            offset_index, time_index = index_batches(scanned(batches), base, interval)
            files = {
                "index": encode_offset_index(offset_index),
                "timeindex": encode_time_index(time_index),
            }
            for suffix, content in files.items():
                (root / "t-0" / segment_file_name(base, suffix)).write_bytes(content)
        log = open_log(root)
        return [offset_for_time(log, timestamp, FAR) for timestamp in timestamps]


def batches_reaching(
    base: int, batches: Sequence[Batch], offsets: Sequence[int]
) -> list[int | None]:
    """Return the number of the batch at which a read of each offset begins; None after the end."""
    starts = scanned(batches).starts.tolist()
    results = searched(base, encode_all(batches), offsets)
    return [None if result is None else starts.index(result[1]) for result in results]


def searched(base: int, data: bytes, offsets: Sequence[int]) -> list[tuple[int, int, int] | None]:
    """Look offsets up with the reader, in a segment with a complete index; None if after the end.

    Return the position at which the reader begins, then position and last offset of the first
    batch that reaches the offset.
    """
    index, _ = index_batches(scan_batches(data, 0, len(data)), base, 0)
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        partition = write_log(Path(root), {base: [data]})
        (partition / segment_file_name(base, "index")).write_bytes(encode_offset_index(index))
        reader = open_segment(partition, base)
        try:
            return [_first_reaching(reader, offset) for offset in offsets]
        finally:
            reader.close()


def _first_reaching(reader: SegmentReader, offset: int) -> tuple[int, int, int] | None:
    begin = reader.position_before(offset)
    for chunk in read_chunks(reader.file, begin, reader.file.size_bytes):
        reaching = chunk.batches.where(chunk.batches.next_offsets > offset)
        if len(reaching):
            position = chunk.position + int(reaching.starts[0])
            return begin, position, int(reaching.next_offsets[0]) - 1
    return None


def relative(base: int, offset: int) -> int:
    return relative_offset(offset, base)


def index_hex(base: int, batches: Sequence[Batch], interval: int) -> tuple[str, str]:
    """Return the `.index` and `.timeindex` of a segment."""
    offset_index, time_index = index_batches(scanned(batches), base, interval)
    return encode_offset_index(offset_index).hex(), encode_time_index(time_index).hex()


def index_sizes(base: int, batches: Sequence[Batch], interval: int) -> tuple[int, ...]:
    """Return the size of each batch, then the offsets and positions of the offset index."""
    scan = scanned(batches)
    index = index_batches(scan, base, interval)[0]
    sizes = set((scan.ends - scan.starts).tolist())
    return (*sizes, *index.offsets.tolist(), *index.positions.tolist())


def cut(indexes: OpenIndexes, batches: v2.Batches, offset: int) -> OpenIndexes:
    """Truncate indexes and log to an offset, and find the largest timestamp again."""
    kept = batches_as_appends(batches.where(batches.next_offsets <= offset))
    again = empty_indexes(indexes.offset_index.base_offset).with_appends(kept)
    return OpenIndexes(
        truncate_offsets(indexes.offset_index, offset),
        truncate_times(indexes.time_index, offset),
        again.size_bytes,
        0,
        again.largest,
    )


def truncate(
    base: int, batches: Sequence[Batch], interval: int, offset: int
) -> tuple[int, int, int, int]:
    """Append and truncate: time entries before and after, largest timestamp, offset entries."""
    scan = scanned(batches)
    before = empty_indexes(base).with_appends(batches_as_appends(scan), interval)
    after = cut(before, scan, offset)
    return (
        len(before.time_index),
        len(after.time_index),
        after.largest.timestamp_ms,
        len(after.offset_index),
    )


def append_and_truncate(first: int, times: int) -> list[int]:
    """Append two records and truncate the second, repeatedly; return the last offset after each.

    Timestamps are the offsets, so the largest one is the last record's.
    """
    indexes, seen = empty_indexes(first), []
    data: list[Batch] = []
    for offset in range(first, first + times):
        data += [[(offset, offset)], [(offset + 1, offset + 1)]]
        indexes = indexes.with_appends(batches_as_appends(scanned(data[-2:])), 0)
        indexes = cut(indexes, scanned(data), offset + 1)
        data.pop()
        seen.append(indexes.largest.offset)
    return seen


def reuse(base: int, batches: Sequence[Batch]) -> bool:
    """Truncate to 0 and append the same again; return whether the indexes are unchanged."""
    scan = scanned(batches)
    once = empty_indexes(base).with_appends(batches_as_appends(scan), 0)
    again = cut(once, scan, 0).with_appends(batches_as_appends(scan), 0)
    return _bytes_of(once) == _bytes_of(again) != (b"", b"")


def _bytes_of(indexes: OpenIndexes) -> tuple[bytes, bytes]:
    offset_index, time_index = indexes.closed()
    return encode_offset_index(offset_index), encode_time_index(time_index)


def total_bytes(sizes: Sequence[int]) -> int:
    count = np.arange(len(sizes))
    return empty_indexes(0).with_appends(Appends(np.array(sizes), *[count] * 4)).size_bytes


def named_offsets(offset: int, suffixes: Sequence[str]) -> list[tuple[int, str] | None]:
    return [parse_segment_file(segment_file_name(offset, suffix)) for suffix in suffixes]


def directory(name: str) -> tuple[str, int] | None:
    return parse_partition_directory(name)
