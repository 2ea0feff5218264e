"""The entries of a topic's segments: an Arrow table, a row for each, with the columns of `SCHEMA`.

The rule: offsets are those of the log. `offset_shift` is what a reader adds to the offsets in the
file: its writer could not know which commits would come first. It is 0 if none did. In a partition
the rows tile the log from its first live segment to its end. Those of a state are sorted by
partition and offset.

Two columns describe what a broker left (format 2). `torn_bytes` is the size of a torn append after
the `size_bytes` that count; nobody reads it. `aborted` are the aborted transactions that have data
in the segment, which a read_committed reader skips: three numbers each, producer id, first offset,
and the last offset that the data may have, which is that of the ABORT marker if there is one. These
offsets are not shifted. An entry without them is written as in format 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.json_fields import is_text, shorten
from klog.connector.commit_log.segment_path import parse_segment_path
from klog.errors import UnsupportedFormatError
from klog.logformat.arrow_values import number_lists, numbers, texts, to_numpy
from klog.logformat.broker_files.file_names import MAX_OFFSET, MAX_PARTITION

SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("base_offset", pa.int64(), nullable=False),
        pa.field("next_offset", pa.int64(), nullable=False),
        pa.field("offset_shift", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("index_bytes", pa.int64(), nullable=False),
        pa.field("time_index_bytes", pa.int64(), nullable=False),
        pa.field("crc32c", pa.int64(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("batch_count", pa.int64(), nullable=False),
        pa.field("min_timestamp_ms", pa.int64(), nullable=False),
        pa.field("max_timestamp_ms", pa.int64(), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("codec", pa.string(), nullable=False),
        pa.field("producer_ids", pa.list_(pa.int64()), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("torn_bytes", pa.int64(), nullable=False),
        pa.field("aborted", pa.list_(pa.int64()), nullable=False),
    ]
)
OPTIONAL_COLUMNS: Mapping[str, Any] = MappingProxyType({"torn_bytes": 0, "aborted": []})
"""The columns of format 2, and what an entry without them means."""
MAX_PRODUCERS = 100_000
"""The most producer ids that an entry may have."""
MAX_ABORTED = 1_000_000
"""The most aborted transactions that an entry may have."""
ORIGINS = ("append", "adopt", "merge", "compact")
JSON_NAMES = {
    name: "".join([head, *(part.capitalize() for part in rest)])
    for name in SCHEMA.names
    for head, *rest in [name.split("_")]
}
"""The name of each column in a commit: camelCase."""
SegmentEntry = Mapping[str, Any]
"""One row of the table, by column."""

_MIN_VALUES = {
    "offset_shift": -MAX_OFFSET,
    "min_timestamp_ms": -1,
    "max_timestamp_ms": -1,
    "leader_epoch": -1,
}
"""The lowest number of a column, 0 for the others."""
_TYPES = {pa.string(): str, pa.int32(): int, pa.int64(): int}
_CHECKS: list[tuple[str, str, Any, int, int]] = [
    (
        field.name,
        JSON_NAMES[field.name],
        _TYPES.get(field.type, list),
        _MIN_VALUES.get(field.name, 0),
        MAX_PARTITION if field.type == pa.int32() else MAX_OFFSET,
    )
    for field in SCHEMA
]
"""By column: its name, the name in a commit, the type there, the lowest and the highest number."""
_SEGMENT_NAME = r"0[0-9]{19}(-[0-9]{10}-[0-9a-f]{8,16})?\.log$"
"""A file name for Arrow's regular expressions. Offsets from 09... on may be too large, and are
parsed one by one."""


def to_table(entries: Iterable[SegmentEntry]) -> pa.Table:
    """Return a table of entries.

    Args:
        entries: The entries, which may lack the optional columns.
    """
    complete = [
        entry if len(entry) == len(SCHEMA) else {**OPTIONAL_COLUMNS, **entry} for entry in entries
    ]
    columns = [_column(list(map(itemgetter(field.name), complete)), field.type) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _column(values: list[Any], arrow_type: pa.DataType) -> pa.Array:
    if arrow_type == pa.string():
        return texts(values)
    return number_lists(values) if pa.types.is_list(arrow_type) else numbers(values, arrow_type)


def with_optional_columns(segments: pa.Table) -> pa.Table:
    """Return a table with all columns of `SCHEMA`.

    Args:
        segments: A table that was read from a file. One of format 1 lacks the optional columns.
    """
    for name in OPTIONAL_COLUMNS.keys() - set(segments.column_names):
        default = pa.scalar(OPTIONAL_COLUMNS[name], SCHEMA.field(name).type)
        segments = segments.append_column(name, pa.repeat(default, len(segments)))
    return segments


def is_format_1(entry: SegmentEntry) -> bool:
    """Return whether format 1 can say an entry.

    Args:
        entry: The entry.
    """
    return not (entry.get("torn_bytes") or entry.get("aborted"))


def are_format_1(segments: pa.Table) -> bool:
    """Return whether format 1 can say all segments of a table.

    Args:
        segments: A table of `SCHEMA`.
    """
    torn_bytes = pc.max(segments["torn_bytes"])
    aborted_length = pc.max(pc.list_value_length(segments["aborted"]))
    return not (torn_bytes.as_py() or aborted_length.as_py())


def file_size_bytes(entry: SegmentEntry) -> int:
    """Return the size that a segment's file must have, with a torn append.

    Args:
        entry: The entry.
    """
    return int(entry["size_bytes"] + entry.get("torn_bytes", 0))


def first_offset_in_file(entry: SegmentEntry) -> int:
    """Return a segment's base offset as its file says it.

    Args:
        entry: The entry.
    """
    return int(entry["base_offset"] - entry["offset_shift"])


def partition_directory_of(entry: SegmentEntry) -> str:
    """Return the topic-partition of a segment, which its directory is named after.

    Args:
        entry: The entry.
    """
    return str(entry["file"]).partition("/")[0]


def entry_to_json(entry: SegmentEntry) -> dict[str, Any]:
    """Return an entry with the names of a commit; optional columns only if they say something.

    Args:
        entry: The entry.
    """
    return {
        JSON_NAMES[name]: value
        for name, value in entry.items()
        if value or name not in OPTIONAL_COLUMNS
    }


def entry_from_json(fields: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """Parse an entry of a commit, whose fields may be anything.

    Args:
        fields: The entry with the names of a commit.
        topic: The topic that its file must belong to.

    Raises:
        UnsupportedFormatError: A field is missing, has another type or is out of range, or the
            file is not of the partition. The error names it.
    """
    entry: dict[str, Any] = {}
    for name, json_name, expected, min_value, max_value in _CHECKS:
        value: Any = fields.get(json_name, OPTIONAL_COLUMNS.get(name))
        # `type`, not `isinstance`: a boolean is not a number, and this runs for each field.
        if type(value) is not expected or not (
            min_value <= value <= max_value
            if expected is int
            else is_text(value)
            if expected is str
            else _are_aborted(value)
            if name == "aborted"
            else _are_producer_ids(value)
        ):
            raise UnsupportedFormatError(f"{json_name} of a segment is {shorten(value)}")
        entry[name] = value
    path = parse_segment_path(entry["file"])
    if path is None or (path.topic, path.partition) != (topic, entry["partition"]):
        raise UnsupportedFormatError(
            f"file {shorten(entry['file'])} is not a segment of {topic}-{entry['partition']}"
        )
    if entry["next_offset"] <= entry["base_offset"] or entry["origin"] not in ORIGINS:
        raise UnsupportedFormatError(
            f"segment {entry['file']}: {entry['origin'][:100]} from offset "
            f"{entry['base_offset']} to {entry['next_offset']}"
        )
    if entry["aborted"] and entry["offset_shift"]:
        raise UnsupportedFormatError(
            f"segment {entry['file']} has aborted transactions, and offsets that are shifted"
        )
    return entry


class AbortedTransaction(NamedTuple):
    """An aborted transaction: its producer, its first offset, and the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


def aborted_transactions(entry: SegmentEntry) -> list[AbortedTransaction]:
    """Return the aborted transactions of a segment.

    Args:
        entry: The entry.
    """
    numbers = entry.get("aborted") or ()
    rows = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return [AbortedTransaction(*row) for row in rows]


def merge_aborted(segments: Iterable[SegmentEntry]) -> list[int]:
    """Return the column `aborted` of one segment that replaces neighbouring ones.

    Args:
        segments: The entries of the segments that it replaces.
    """
    first_offsets: dict[tuple[int, int], int] = {}
    for entry in segments:
        for producer_id, first_offset, last_offset in aborted_transactions(entry):
            first_offsets.setdefault((last_offset, producer_id), first_offset)
    return [
        number
        for (last_offset, producer_id), first_offset in sorted(first_offsets.items())
        for number in (producer_id, first_offset, last_offset)
    ]


def _are_producer_ids(values: list[Any]) -> bool:
    return len(values) <= MAX_PRODUCERS and all(
        type(value) is int and -1 <= value <= MAX_OFFSET for value in values
    )


def _are_aborted(values: list[Any]) -> bool:
    if len(values) > 3 * MAX_ABORTED or len(values) % 3:
        return False
    if not all(type(value) is int and 0 <= value <= MAX_OFFSET for value in values):
        return False
    return all(first <= last for first, last in zip(values[1::3], values[2::3], strict=True))


def are_segment_paths(files: pa.ChunkedArray, topic: str | None = None) -> bool:
    """Return whether all files of a checkpoint are paths of segments.

    It decides as `parse_segment_path` does, except for the range of the partition's number.

    Args:
        files: The paths.
        topic: The only topic that they may belong to; None allows any.
    """
    topic_pattern = "[A-Za-z0-9._-]+" if topic is None else re.escape(topic)
    pattern = f"^{topic_pattern}-(0|[1-9][0-9]{{0,9}})/{_SEGMENT_NAME}"
    if not pc.all(pc.match_substring_regex(files, pattern), min_count=0).as_py():
        return False
    high_offsets = files.filter(pc.match_substring(files, "/09"))
    return all(parse_segment_path(file) is not None for file in high_offsets.to_pylist())


def are_in_partition_directories(segments: pa.Table) -> bool:
    """Return whether each segment's file is in the directory of its partition.

    Args:
        segments: A table of `SCHEMA`.
    """
    directories = pc.list_element(pc.split_pattern(segments["file"], "/", max_splits=1), 0)
    names = pc.split_pattern(directories, "-", max_splits=1, reverse=True)
    is_own = pc.equal(pc.list_element(names, 1), segments["partition"].cast(pa.string()))
    return bool(pc.all(is_own, min_count=0).as_py())


def split_by_files(segments: pa.Table, files: Iterable[str]) -> tuple[pa.Table, pa.Table]:
    """Split segments into those that are not among some files, and those that are.

    Args:
        segments: A table with the column `file`.
        files: The paths.
    """
    is_among = pc.is_in(segments["file"], value_set=texts(list(files)))
    return segments.filter(pc.invert(is_among)), segments.filter(is_among)


def rows_of_partition(segments: pa.Table, partition: int) -> pa.Table:
    """Return the segments of one partition as a slice of a state's table, in order of offset.

    Args:
        segments: A table of `SCHEMA`, sorted by partition and offset.
        partition: The partition.
    """
    bounds = np.array([partition, partition + 1], np.int32)  # Another type would copy the column.
    start, end = np.searchsorted(to_numpy(segments["partition"]), bounds)
    return segments.slice(start, end - start)
