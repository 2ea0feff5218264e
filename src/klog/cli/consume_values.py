"""`klog consume -s`: keys and values decoded, for people and for JSON.

The rule: a decoded column has JSON text in the place of the bytes, or plain text for a string, a
number or a UUID. So every format prints it as it prints bytes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from klog.errors import UndecodableError
from klog.jobs.shared.value_options import value_arguments
from klog.values.batch_columns import PLACE_COLUMNS
from klog.values.column_format import SCHEMA_FORMATS, SIDES, ColumnFormat
from klog.values.json_objects import JsonText, ObjectDecoder


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """The decoders of the columns that `-s` names."""

    decoders: tuple[tuple[ColumnFormat, ObjectDecoder], ...]

    @property
    def sides(self) -> frozenset[str]:
        """Return the columns whose decoded text is JSON, also that of a number or a string."""
        return frozenset(column.side for column, _ in self.decoders)

    def columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns to read: those that are printed, and those that errors name."""
        if not self.sides & set(names):
            return names
        return (*names, *(name for name in PLACE_COLUMNS if name not in names))

    def decode(self, batch: pa.RecordBatch, *, is_json: bool) -> Iterator[pa.RecordBatch]:
        """Yield the batch with decoded columns. Rows before one that is not decodable come first.

        Args:
            batch: The batch.
            is_json: Make JSON texts of all values, also of strings.

        Raises:
            UndecodableError: A row cannot be decoded.
            RegistryError: The registry does not answer.
        """
        failed = batch.num_rows, ""
        for column, decoder in self.decoders:
            if column.side not in batch.schema.names:
                continue
            values, reasons = decoder.decode(batch.column(column.side))
            if reasons:
                row = min(reasons)
                failed = min(failed, (row, f"the {column.side} cannot be decoded: {reasons[row]}"))
            is_text = not is_json and column.name not in SCHEMA_FORMATS
            texts = [_text(value, is_text=is_text) for value in values]
            index = batch.schema.get_field_index(column.side)
            batch = batch.set_column(index, column.side, pa.array(texts, pa.binary()))
        row, reason = failed
        yield batch.slice(0, row)
        if reason:
            topic, partition, offset = (batch.column(name)[row].as_py() for name in PLACE_COLUMNS)
            raise UndecodableError(
                f"{topic}-{partition} offset {offset}: {reason}. To see the bytes, leave out -s. "
                f"To go on after the record: -o {offset + 1}"
            )


def value_columns(args: argparse.Namespace, environment: Mapping[str, str]) -> ValueColumns:
    """Return the decoders that the options describe. Raises `OptionError`.

    Args:
        args: The options of `klog consume`.
        environment: Has the credentials of the registry, if the options name no file with them.
    """
    arguments = value_arguments(args, environment)
    columns = [
        ColumnFormat(
            side,
            arguments[side],
            arguments.get(f"{side}_schema"),
            arguments.get(f"{side}_message"),
            registry=arguments.get("registry"),
        )
        for side in SIDES
        if side in arguments
    ]
    return ValueColumns(tuple((column, ObjectDecoder(column)) for column in columns))


def _text(value: Any, *, is_text: bool) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, JsonText):
        return value.encode()
    if is_text:
        text = value if isinstance(value, str) else json.dumps(value)
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text.encode(errors="backslashreplace")
