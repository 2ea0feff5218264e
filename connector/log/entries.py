"""The segments of a topic, as one Arrow table: a row each, never a Python object each.

The rule: offsets are those of the log. `offset_shift` is what a reader adds to the offsets that the
file says, because its writer could not know who would commit first; it is 0 where nobody did. In a
partition the rows tile the log from its first live segment to its end. Those of a state are sorted
by partition and offset.

Two columns are of what a broker left (format 2): `torn_bytes` lie behind the `size_bytes` that
count, as a torn append, and are never read. `aborted` are the transactions of which the segment has
data that nobody is to see who reads committed records: three numbers each, producer id, first
offset, and the last offset that its data may have, which is that of the ABORT marker if it has one.
Their offsets are not shifted. An entry without them is written as format 1 has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log.json_fields import is_text, shortly
from klog.connector.log.paths import segment_path
from klog.errors import UnsupportedFormatError
from klog.logformat.names import MAX_OFFSET, MAX_PARTITION

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
OPTIONAL: Mapping[str, Any] = MappingProxyType({"torn_bytes": 0, "aborted": []})
"""Columns that came with format 2, and what an entry says that does not name them."""
_ROW = pa.struct(list(SCHEMA))
MOST_PRODUCERS = 100_000
"""So many producers' ids a segment may have."""
MOST_ABORTED = 1_000_000
"""So many aborted transactions a segment may have."""
ORIGINS = ("append", "adopt", "merge", "compact")
JSON_NAMES = {
    name: "".join([head, *(part.capitalize() for part in rest)])
    for name in SCHEMA.names
    for head, *rest in [name.split("_")]
}
"""By column the name in a commit: camelCase."""
_LEAST = {"offset_shift": -MAX_OFFSET, "min_timestamp_ms": -1, "max_timestamp_ms": -1}
_LEAST["leader_epoch"] = -1
_KINDS = {pa.string(): str, pa.int32(): int, pa.int64(): int}
_CHECKS: list[tuple[str, str, Any, int, int]] = [
    (
        field.name,
        JSON_NAMES[field.name],
        _KINDS.get(field.type, list),
        _LEAST.get(field.name, 0),
        MAX_PARTITION if field.type == pa.int32() else MAX_OFFSET,
    )
    for field in SCHEMA
]
"""Of each field the column, the name in a commit, the type there, the least and the most."""

Entry = Mapping[str, Any]


def table_of(entries: Iterable[Entry]) -> pa.Table:
    """Make a table of entries, dicts by column."""
    # As structs they are converted in one call, not in one a column.
    whole = (one if len(one) == len(SCHEMA) else {**OPTIONAL, **one} for one in entries)
    rows = pa.array(list(whole), _ROW)
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)], SCHEMA)


def to_json(entry: Entry) -> dict[str, Any]:
    """Name an entry's fields as a commit does."""
    return {
        JSON_NAMES[name]: value for name, value in entry.items() if value or name not in OPTIONAL
    }


def is_plain(entry: Entry) -> bool:
    """Tell whether format 1 can say it."""
    return not (entry.get("torn_bytes") or entry.get("aborted"))


def are_plain(segments: pa.Table) -> bool:
    """Tell whether format 1 can say all segments of a table."""
    torn, aborted = (
        pc.max(segments["torn_bytes"]),
        pc.max(pc.list_value_length(segments["aborted"])),
    )
    return not (torn.as_py() or aborted.as_py())


def completed(segments: pa.Table) -> pa.Table:
    """Give segments read from a file, of format 1 too, with all columns."""
    for name in OPTIONAL.keys() - set(segments.column_names):
        filling = pa.repeat(pa.scalar(OPTIONAL[name], SCHEMA.field(name).type), len(segments))
        segments = segments.append_column(name, filling)
    return segments


def file_bytes(entry: Entry) -> int:
    """Give the size that a segment's file must have."""
    return int(entry["size_bytes"] + entry.get("torn_bytes", 0))


def from_json(given: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """Check an entry of a commit, whose fields may say anything.

    Raises `UnsupportedFormatError` that names the field: what is missing, of another type or out of
    range, and a file that is none of the partition's.
    """
    entry: dict[str, Any] = {}
    for name, said, kind, least, most in _CHECKS:
        value: Any = given.get(said, OPTIONAL.get(name))
        # `type`, not `isinstance`: a truth value is no number, and this runs for each field.
        if type(value) is not kind or not (
            least <= value <= most
            if kind is int
            else is_text(value)
            if kind is str
            else _are_aborted(value)
            if name == "aborted"
            else _are_longs(value)
        ):
            raise UnsupportedFormatError(f"{said} of a segment is {shortly(value)}")
        entry[name] = value
    path = segment_path(entry["file"])
    if path is None or (path.topic, path.partition) != (topic, entry["partition"]):
        raise UnsupportedFormatError(
            f"file {shortly(entry['file'])} is no segment of {topic}-{entry['partition']}"
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


def joined_aborted(segments: Iterable[Entry]) -> list[int]:
    """Give the aborted transactions of neighbouring segments that become one."""
    firsts: dict[tuple[int, int], int] = {}
    for entry in segments:
        for producer, first, last in aborted_of(entry):
            firsts.setdefault((last, producer), first)
    ordered = sorted((last, producer, first) for (last, producer), first in firsts.items())
    return [number for last, producer, first in ordered for number in (producer, first, last)]


def aborted_of(entry: Entry) -> list[tuple[int, int, int]]:
    """Give each aborted transaction of a segment: producer id, first offset, last offset."""
    said = entry.get("aborted") or ()
    return list(zip(said[::3], said[1::3], said[2::3], strict=True))


def _are_longs(values: list[Any]) -> bool:
    return len(values) <= MOST_PRODUCERS and all(
        type(one) is int and -1 <= one <= MAX_OFFSET for one in values
    )


def _are_aborted(values: list[Any]) -> bool:
    if len(values) > 3 * MOST_ABORTED or len(values) % 3:
        return False
    if not all(type(one) is int and 0 <= one <= MAX_OFFSET for one in values):
        return False
    return all(first <= last for first, last in zip(values[1::3], values[2::3], strict=True))


_NAME = r"0[0-9]{19}(-[0-9]{10}-[0-9a-f]{8,16})?\.log$"
"""What may follow the directory, as Arrow's regular expressions have it; offsets that may be too
large are looked at one by one."""


def are_paths(files: pa.ChunkedArray, topic: str | None = None) -> bool:
    """Tell whether all of a checkpoint's files are paths of segments, of one topic if it is given.

    It is what `paths.segment_path` says of each, but for the range of a partition's number.
    """
    owner = "[A-Za-z0-9._-]+" if topic is None else re.escape(topic)
    pattern = f"^{owner}-(0|[1-9][0-9]{{0,9}})/{_NAME}"
    if not pc.all(pc.match_substring_regex(files, pattern), min_count=0).as_py():
        return False
    high = files.filter(pc.match_substring(files, "/09"))
    return all(segment_path(file) is not None for file in high.to_pylist())


def are_of_partitions(segments: pa.Table) -> bool:
    """Tell whether each segment's file lies in the directory of its partition."""
    directories = pc.list_element(pc.split_pattern(segments["file"], "/", max_splits=1), 0)
    parted = pc.split_pattern(directories, "-", max_splits=1, reverse=True)
    same = pc.equal(pc.list_element(parted, 1), segments["partition"].cast(pa.string()))
    return bool(pc.all(same, min_count=0).as_py())


def without(segments: pa.Table, files: Iterable[str]) -> tuple[pa.Table, pa.Table]:
    """Split segments into those that are not among `files` and those that are."""
    among = pc.is_in(segments["file"], value_set=pa.array(files, pa.string()))
    return segments.filter(pc.invert(among)), segments.filter(among)


def of_partition(segments: pa.Table, partition: int) -> pa.Table:
    """Give the segments of one partition, in order of offset, out of a state's: a slice of them."""
    wanted = np.array([partition, partition + 1], np.int32)  # Another type would copy the column.
    begin, end = np.searchsorted(segments["partition"].to_numpy(), wanted)
    return segments.slice(begin, end - begin)
