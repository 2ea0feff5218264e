"""The segments of a topic, as one Arrow table: a row each, never a Python object each.

The rule: offsets are those of the log. `offset_shift` is what a reader adds to the offsets that the
file says, because its writer could not know who would commit first; it is 0 where nobody did. In a
partition the rows tile the log from its first live segment to its end. Those of a state are sorted
by partition and offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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
    ]
)
_ROW = pa.struct(list(SCHEMA))
MOST_PRODUCERS = 100_000
"""So many producers' ids a segment may have."""
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
    rows = pa.array(list(entries), _ROW)
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)], SCHEMA)


def to_json(entry: Entry) -> dict[str, Any]:
    """Name an entry's fields as a commit does."""
    return {JSON_NAMES[name]: value for name, value in entry.items()}


def from_json(given: Mapping[str, Any], topic: str) -> dict[str, Any]:
    """Check an entry of a commit, whose fields may say anything.

    Raises `UnsupportedFormatError` that names the field: what is missing, of another type or out of
    range, and a file that is none of the partition's.
    """
    entry: dict[str, Any] = {}
    for name, said, kind, least, most in _CHECKS:
        value: Any = given.get(said)
        # `type`, not `isinstance`: a truth value is no number, and this runs for each field.
        if type(value) is not kind or not (
            least <= value <= most
            if kind is int
            else is_text(value)
            if kind is str
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
    return entry


def _are_longs(values: list[Any]) -> bool:
    return len(values) <= MOST_PRODUCERS and all(
        type(one) is int and -1 <= one <= MAX_OFFSET for one in values
    )


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
