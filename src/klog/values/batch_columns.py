"""Decode the columns `key` and `value` of Arrow record batches, such as those of a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from klog.errors import OptionError, UndecodableError
from klog.values.column_format import ColumnFormat, make_decoder
from klog.values.decoded_column import DecodedColumn, Decoder
from klog.values.json_decoder import json_rows
from klog.values.json_inference import inferred_type

ON_ERROR = ("fail", "null")
SAMPLE_ROWS = 1000
_BYTES = (
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_binary_view, pa.types.is_string_view, pa.types.is_fixed_size_binary,
)  # fmt: skip
PLACE_COLUMNS = ("topic", "partition", "offset")


def check_on_error(on_error: str) -> None:
    """Refuse another value than those of `ON_ERROR`.

    Args:
        on_error: What to do with a row that cannot be decoded.

    Raises:
        OptionError: It is something else.
    """
    if on_error not in ON_ERROR:
        raise OptionError(f"on_error: must be fail or null, got {on_error!r}")


@dataclass(frozen=True, slots=True)
class BatchDecoder:
    """Decodes batches; `null` adds a column `key_error` or `value_error` for each decoded one."""

    decoders: tuple[tuple[ColumnFormat, Decoder], ...]
    on_error: str = "fail"

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of decoded batches.

        Args:
            schema: The schema of the batches.
        """
        for column, decoder in self.decoders:
            index = schema.get_field_index(column.side)
            schema = schema.set(index, pa.field(column.side, decoder.arrow_type))
            if self.on_error == "null":
                schema = schema.append(pa.field(f"{column.side}_error", pa.string()))
        return schema

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with decoded columns.

        Args:
            batch: The batch.

        Raises:
            UndecodableError: A row cannot be decoded, and `on_error` is `fail`.
        """
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        for column, decoder in self.decoders:
            result = decoder.decode_array(arrays[column.side])
            if self.on_error == "null":
                arrays[f"{column.side}_error"] = result.reasons
            elif result.has_errors:
                places = {name: arrays[name] for name in PLACE_COLUMNS if name in arrays}
                raise undecodable(column, result, places)
            arrays[column.side] = result.values
        schema = self.schema(batch.schema)
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def decode_batches(
    batches: pa.RecordBatchReader, columns: Sequence[ColumnFormat], on_error: str = "fail"
) -> pa.RecordBatchReader:
    """Decode batches as they are read.

    Args:
        batches: Batches with the columns to decode. Those of `PLACE_COLUMNS` are named in errors.
        columns: The formats. JSON without a schema and a registry gets one from the first rows.
        on_error: `fail`, or `null` for a null and a reason in a column of its own.

    Returns:
        The decoded batches. Reading raises `UndecodableError` for a row, and `RegistryError`.

    Raises:
        OptionError: An argument is wrong, or a library is missing.
        RegistryError: The registry does not answer, or refuses the request.
        SchemaNotFoundError: The registry does not have the schema.
        SchemaError: A schema is not one, or has no type in Arrow.
    """
    check_on_error(on_error)
    for column in columns:
        _check_column(batches.schema, column.side, on_error)
    source: Iterable[pa.RecordBatch] = batches
    needs_sample = [column for column in columns if is_schema_inferred(column)]
    if needs_sample:
        sample, source = _sampled(batches)
        columns = [
            with_inferred_type(column, [batch.column(column.side) for batch in sample])
            if column in needs_sample
            else column
            for column in columns
        ]
    decoder = BatchDecoder(tuple((each, make_decoder(each)) for each in columns), on_error)
    decoded = (decoder.decode(batch) for batch in source)
    return pa.RecordBatchReader.from_batches(decoder.schema(batches.schema), decoded)


def _check_column(schema: pa.Schema, name: str, on_error: str) -> None:
    if schema.get_field_index(name) < 0:
        raise OptionError(
            f"{name}: there is no such column, or there are two. "
            f"There are {', '.join(schema.names)}"
        )
    arrow_type = schema.field(name).type
    if not any(is_bytes(arrow_type) for is_bytes in _BYTES):
        raise OptionError(f"{name}: only bytes can be decoded, and the column is {arrow_type}")
    if on_error == "null" and f"{name}_error" in schema.names:
        raise OptionError(f"{name}_error: the batches have such a column. Rename it")


def is_schema_inferred(column: ColumnFormat) -> bool:
    """Return whether a column is JSON without a schema and without a registry.

    Args:
        column: The format.
    """
    return column.name == "json" and column.schema is None and column.registry is None


def with_inferred_type(column: ColumnFormat, sample: Iterable[pa.Array]) -> ColumnFormat:
    """Return a JSON column with the type of a sample as its schema.

    Args:
        column: The format.
        sample: Rows of the column. Rows that are not JSON are skipped.

    Raises:
        SchemaError: The sample has no value.
    """
    has_prefix = column.registry is not None
    rows = list(chain.from_iterable(json_rows(each, has_prefix=has_prefix)[0] for each in sample))
    records = [row for row in rows if isinstance(row, dict)]  # One other row spoils no columns.
    return replace(column, schema=inferred_type(records or rows))


def undecodable(
    column: ColumnFormat, result: DecodedColumn, places: dict[str, pa.Array]
) -> UndecodableError:
    """Return the error for the first row that could not be decoded.

    Args:
        column: The format.
        result: The rows, one or more of them with a reason.
        places: The columns of `PLACE_COLUMNS` that there are.
    """
    row = pc.index(pc.is_valid(result.reasons), True).as_py()
    place = {name: array[row].as_py() for name, array in places.items()}
    topic = place.get("topic", column.topic)
    name = "-".join(str(each) for each in (topic, place.get("partition")) if each is not None)
    where = f"{name} offset {place['offset']}" if "offset" in place else name
    prefix = f"{where}: " if where else ""
    return UndecodableError(
        f"{prefix}the {column.side} cannot be decoded: {result.reasons[row].as_py()}"
        + null_hint(column.side)
    )


def null_hint(side: str) -> str:
    """Return the end of the error for a row that cannot be decoded: how to keep such rows.

    Args:
        side: `key` or `value`.
    """
    return f'. To keep such rows, use on_error="null": the column is null and {side}_error says why'


def _sampled(
    batches: pa.RecordBatchReader,
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """Return the first batches, and an iterator over all."""
    sample: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        sample.append(batch)
        rows += batch.num_rows
        if rows >= SAMPLE_ROWS:
            break
    return [batch.slice(0, SAMPLE_ROWS) for batch in sample], chain(sample, batches)
