"""Scan a topic without Spark, with decoded keys and values if the caller wants them.

The rule: the plan is made at once, and a batch is read when the caller takes it. An error of a
value names the offset, so partition and offset are read also if the caller does not ask for them,
and left out of what the caller gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from klog.connector.embedded_lookups import read_options_of, snapshot_as_of
from klog.connector.embedded_root import EmbeddedRoot
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.as_of import AsOf
from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS, known_columns
from klog.connector.options.read_options import ReadOptions
from klog.connector.scan_bounds import Bound
from klog.connector.source import scan_planner
from klog.connector.source.row_schema import arrow_schema
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.task_reader import make_reader
from klog.errors import OptionError

_PLACE = ("partition", "offset")


def scan(
    root: EmbeddedRoot,
    topic: str,
    start: Bound,
    end: Bound,
    columns: Sequence[str] | None,
    as_of: AsOf | None,
    values: Mapping[str, Any],
) -> pa.RecordBatchReader:
    """Return a reader of a topic: partition by partition, each in the order of its offsets.

    Args:
        root: The root.
        topic: The topic.
        start: Where the scan starts.
        end: Where it ends.
        columns: The columns that the caller gets; None for all except `headers`.
        as_of: The version to read; None for now.
        values: The arguments of `klog.values.decode_batches`; empty if nothing is decoded.

    Raises:
        OptionError: There is no such topic, column or version, or an argument is wrong.
        OffsetOutOfRangeError: The log does not have the offset of a bound.
        RegistryError: The registry does not answer, or refuses the request.
        SchemaNotFoundError: The registry does not have the schema.
        SchemaError: A schema is not one, or has no type in Arrow.
    """
    names = _names_of(columns)
    read_names = _columns_to_read(names, values)

    def plan() -> tuple[ReadOptions, list[TaskDict]]:
        now = root.snapshot_with(topic)
        snapshot, version = snapshot_as_of(now, root.read_root, topic, as_of)
        options = read_options_of(
            snapshot,
            topic,
            start,
            end,
            storage=root.storage,
            columns=read_names,
            as_of=version,
        )
        return options, scan_planner.plan_snapshot(snapshot, options)

    options, tasks = retry_stale_listing(plan)
    reader = make_reader([root.path], options)

    def batches() -> Iterator[pa.RecordBatch]:
        for task in tasks:
            yield from reader.read(task)

    records = pa.RecordBatchReader.from_batches(arrow_schema(read_names), batches())
    return _decode(records, names, topic, values) if values else records


def _names_of(columns: Sequence[str] | None) -> Sequence[str]:
    """Return the names of the columns as klog writes them."""
    if columns is None:
        return DEFAULT_COLUMNS
    try:
        return known_columns([columns] if isinstance(columns, str) else columns)
    except ValueError as exc:
        raise OptionError(f"columns: {exc}. Choose from {', '.join(COLUMNS)}") from None


def _columns_to_read(names: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns to read, at least those that the caller gets."""
    if not values:
        return tuple(names)
    for side in ("key", "value"):
        if values.get(side) is not None and side not in names:
            raise OptionError(f"{side}: is not in columns. Add it, or leave out {side}={side!r}")
    return (*names, *(name for name in _PLACE if name not in names))


def _decode(
    batches: pa.RecordBatchReader, names: Sequence[str], topic: str, values: Mapping[str, Any]
) -> pa.RecordBatchReader:
    """Return the columns that the caller gets, decoded, with a column of errors if there is one."""
    from klog.values import decode_batches

    decoded = decode_batches(batches, **{"topic": topic, **values})
    errors = [name for name in decoded.schema.names if name.endswith("_error")]
    selected = [*names, *errors]
    schema = pa.schema([decoded.schema.field(name) for name in selected])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(selected) for batch in decoded))
