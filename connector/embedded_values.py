"""Decoded keys and values of a scan: `klog.open(root).scan(topic, value="avro", ...)`.

The rule: an error names the offset, so partition and offset are read also if the caller does not
ask for them, and left out of what the caller gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from klog.errors import OptionError

_PLACE = ("partition", "offset")


def columns_to_read(names: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns to read, at least those that the caller gets.

    Args:
        names: The columns that the caller gets.
        values: The arguments of `klog.values.decode_batches`; empty if nothing is decoded.

    Raises:
        OptionError: A column to decode is not one of them.
    """
    if not values:
        return tuple(names)
    for side in ("key", "value"):
        if values.get(side) is not None and side not in names:
            raise OptionError(f"{side}: is not in columns. Add it, or leave out {side}={side!r}")
    return (*names, *(name for name in _PLACE if name not in names))


def decode_scan(
    batches: pa.RecordBatchReader, names: Sequence[str], topic: str, values: Mapping[str, Any]
) -> pa.RecordBatchReader:
    """Return a scan with decoded columns.

    Args:
        batches: The scan, with the columns of `columns_to_read`.
        names: The columns that the caller gets.
        topic: The topic.
        values: The arguments of `klog.values.decode_batches`.

    Raises:
        OptionError: An argument is wrong, or a library is missing.
        RegistryError: The registry does not answer, or refuses the request.
        SchemaNotFoundError: The registry does not have the schema.
        SchemaError: A schema is not one, or has no type in Arrow.
    """
    from klog.values import decode_batches

    decoded = decode_batches(batches, **{"topic": topic, **values})
    errors = [name for name in decoded.schema.names if name.endswith("_error")]
    selected = [*names, *errors]
    schema = pa.schema([decoded.schema.field(name) for name in selected])
    return pa.RecordBatchReader.from_batches(schema, (batch.select(selected) for batch in decoded))
