"""Log directories for tests, and reading them as Spark's source does, without Spark."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from klog.connector.kafka_dir.partition_directory import Segment, read_directory
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.task_reader import make_reader
from klog.connector.store.local_store import LocalStore
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.topic_partition import TopicPartition
from tests.support.batch_bytes import plain


def write_log(
    root: Path,
    segments: Mapping[int, Sequence[bytes]],
    partition: str = "t-0",
    *,
    clean: bool = True,
) -> Path:
    """Write a partition's segments by base offset, without indexes, for a stopped broker."""
    directory = root / partition
    directory.mkdir(parents=True, exist_ok=True)
    for base, batches in segments.items():
        (directory / segment_file_name(base, "log")).write_bytes(b"".join(batches))
    if clean:
        (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    return directory


def offset_index(entries: Sequence[tuple[int, int]], base: int = 0) -> bytes:
    """Write a `.index` of (absolute offset, position)."""
    return b"".join(struct.pack(">ii", offset - base, position) for offset, position in entries)


def time_index(entries: Sequence[tuple[int, int]], base: int = 0) -> bytes:
    """Write a `.timeindex` of (timestamp, absolute offset)."""
    return b"".join(struct.pack(">qi", timestamp, offset - base) for timestamp, offset in entries)


def entries_of(batches: Sequence[bytes], every: int = 1) -> list[tuple[int, int]]:
    """Return the (last offset, position) of each batch but the first, as a broker's index has."""
    entries, position = [], 0
    for number, batch in enumerate(batches):
        base, _ = struct.unpack_from(">qi", batch)
        (delta,) = struct.unpack_from(">i", batch, 23)
        if number and number % every == 0:
            entries.append((base + delta, position))
        position += len(batch)
    return entries


def many(count: int, first: int = 0, size: int = 100) -> list[bytes]:
    """Make one-record batches at consecutive offsets, timestamps 1000 and on."""
    return [
        plain(offset, [b"%08d" % offset + b"v" * (size - 8)], 1000 + offset)
        for offset in range(first, first + count)
    ]


def open_segment(directory: Path, base: int = 0) -> SegmentReader:
    store = LocalStore()
    directory_files = read_directory(str(directory), store.entries(str(directory)), lambda swap: 0)
    segment: Segment = next(s for s in directory_files.segments if s.base_offset == base)
    return SegmentReader(store, segment)


def open_log(root: Path, topic: str = "t", partition: int = 0) -> RawPartition:
    name = TopicPartition(topic, partition)
    return RawRoot([str(root)]).open([name])[name]


def set_checkpoint(root: Path, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    (root / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def read_tasks(
    directories: Sequence[str], tasks: Sequence[TaskDict], **options: str
) -> list[dict[str, Any]]:
    """Read planned tasks: rows as dicts."""
    reader = make_reader(list(directories), parse_read_options(_options(options)))
    rows: list[dict[str, Any]] = []
    for task in tasks:
        for batch in reader.read(task):
            batch.validate(full=True)
            rows += batch.to_pylist()
    return rows


def plan_tasks(directories: Sequence[str], **options: str) -> list[TaskDict]:
    parsed = parse_read_options(_options(options))
    root = RawRoot(directories)
    return retry_stale_listing(lambda: scan_planner.plan_snapshot(root.snapshot(), parsed))


def read(directory: Path | str, **options: str) -> list[dict[str, Any]]:
    """Read a root from options to rows."""
    directories = [str(directory)]
    return read_tasks(directories, plan_tasks(directories, **options), **options)


def offsets(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return [row["offset"] for row in rows]


def _options(options: Mapping[str, str]) -> dict[str, str]:
    values = dict(options)
    if not {"subscribe", "assign", "subscribePattern"} & values.keys():
        values["subscribe"] = "t"
    return values
