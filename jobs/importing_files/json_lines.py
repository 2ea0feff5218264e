"""Files of JSON lines: a line is a value, or a record as `klog consume --json` prints it.

The rule: without named fields a line is not parsed; its bytes are the value. An empty line is no
record. Blocks of lines are split by numpy and parsed by Arrow. Python parses a block only if a
named field has other values than text and whole numbers, or a record has bytes outside UTF-8, which
`klog consume --json` prints as base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from klog.connector import arrow_compute as pc
from klog.errors import KlogError, OptionError
from klog.jobs.importing_files.chosen_fields import RecordFields, WrongRowError, with_named_fields
from klog.jobs.importing_files.json_text import texts

BLOCK_BYTES = 8 << 20
MAX_LINE_BYTES = 256 << 20
"""A longer line is no record: a batch of Kafka's has at most half of it."""
Numbers: TypeAlias = "np.ndarray[Any, Any]"
"""The numbers of lines in their file, from 1."""
_LINE_FEED, _CARRIAGE_RETURN = 10, 13
_HEADER = pa.struct([("key", pa.string()), ("value", pa.string())])
_RECORD = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(_HEADER)),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
    ]
)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def read_json_lines(stream: Any, fields: RecordFields) -> Iterator[pa.RecordBatch]:
    """Yield the records of a file as columns of a write.

    Args:
        stream: The file, decompressed.
        fields: What becomes what of a record.

    Raises:
        KlogError: A line is not what it must be; the message has its number in the file.
    """
    first_line = 1
    for block in _blocks(stream):
        lines, numbers = split_lines(block, first_line)
        if len(lines):
            try:
                yield _rows(lines, numbers, fields)
            except WrongRowError as exc:
                raise KlogError(f"line {numbers[exc.row]}: {exc}") from exc
        first_line += block.count(b"\n")


def split_lines(block: bytes, first_line: int) -> tuple[pa.Array, Numbers]:
    """Return the lines that are not empty, and their numbers.

    Args:
        block: Lines, each with its line feed.
        first_line: The number of the first one.
    """
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == _LINE_FEED)
    is_kept = np.ones(len(data), bool)
    is_kept[ends] = False
    with_return = ends[(ends > 0) & (data[ends - 1] == _CARRIAGE_RETURN)]
    is_kept[with_return - 1] = False
    kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    bounds = np.concatenate([[0], kept_before[ends]]).astype(np.int32)
    values = data[is_kept]
    lines = pa.Array.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(values)]
    )
    is_line = bounds[1:] > bounds[:-1]
    return lines.filter(pa.array(is_line)), first_line + np.flatnonzero(is_line)


def _blocks(stream: Any) -> Iterator[bytes]:
    """Yield the file in blocks of complete lines."""
    rest: list[bytes] = []
    while block := stream.read(BLOCK_BYTES):
        end = block.rfind(b"\n") + 1
        if not end:
            rest.append(block)
            if sum(map(len, rest)) > MAX_LINE_BYTES:
                raise KlogError(
                    f"a line has more than {MAX_LINE_BYTES} bytes, and no record has as many. "
                    "Write each record in a line of its own"
                )
            continue
        yield b"".join([*rest, block[:end]])
        rest = [block[end:]]
    if any(rest):
        yield b"".join([*rest, b"\n"])


def _rows(lines: pa.Array, numbers: Numbers, fields: RecordFields) -> pa.RecordBatch:
    if fields.is_records:
        return _records(lines, numbers)
    if not fields.names:
        return pa.RecordBatch.from_pydict({"value": lines})
    batch = _fields(lines, numbers, fields.names)
    value = lines if fields.value is None else texts(batch.column(fields.value), fields.value)
    return with_named_fields(batch, value, fields)


def _fields(lines: pa.Array, numbers: Numbers, names: Sequence[str]) -> pa.RecordBatch:
    """Return named fields of lines; null where a line has none."""
    return pa.RecordBatch.from_pydict({name: _field(lines, numbers, name) for name in names})


def _field(lines: pa.Array, numbers: Numbers, name: str) -> pa.Array:
    """Return a field: whole numbers, or text, which is JSON for other values."""
    if not pc.any(pc.match_substring(lines, json.dumps(name).encode())).as_py():
        raise OptionError(f"line {numbers[0]} and those after it have no field {name}")
    for kind in (pa.string(), pa.int64()):
        table = _try_parse(lines, pa.schema([(name, kind)]))
        if table is not None:
            return _column(table, name)
    return pa.array(
        [_text(_object(line, number).get(name)) for line, number in _numbered(lines, numbers)],
        pa.string(),
    )


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ValueError("it is another value")
    except ValueError as exc:
        raise KlogError(f"line {number} is not a JSON object: {exc}. Correct it") from exc
    return value


def _numbered(lines: pa.Array, numbers: Numbers) -> Iterable[tuple[bytes, int]]:
    return zip(lines.to_pylist(), numbers.tolist(), strict=True)


def _try_parse(lines: pa.Array, schema: pa.Schema) -> pa.Table | None:
    """Return fields of lines; None if a line has another type, or is not one object."""
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = _read(lines, options)
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(lines) else None


def _read(lines: pa.Array, options: Any) -> pa.Table:
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)]), lines), b"\n")
    data = joined[0].as_buffer()
    read = pj.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 20))
    return pj.read_json(pa.BufferReader(data), read, options)


def _records(lines: pa.Array, numbers: Numbers) -> pa.RecordBatch:
    has_value = pc.match_substring(lines, b'"value"').to_numpy(False)
    if not has_value.all():
        raise KlogError(
            f"line {numbers[np.argmin(has_value)]} has no field value, which a record of `klog "
            "consume --json` has. Leave out --records to make each line a value"
        )
    table = _try_parse(lines, _RECORD)
    if table is None:
        table = _decoded_records(lines, numbers)
    return pa.RecordBatch.from_pydict(
        {
            "key": _column(table, "key"),
            "value": _column(table, "value"),
            "headers": _column(table, "headers").cast(_HEADERS),
            "timestamp": _column(table, "timestamp").cast(pa.timestamp("ms", "UTC")),
            "partition": _column(table, "partition"),
        }
    )


def _column(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


def _decoded_records(lines: pa.Array, numbers: Numbers) -> pa.Table:
    """Decode records one by one: some have bytes as base64, or a line is wrong."""
    records = []
    for line, number in _numbered(lines, numbers):
        try:
            records.append(_decoded_record(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise KlogError(
                f"line {number} is not a record of `klog consume --json`: {exc}. Correct it, or "
                "leave out --records to make each line a value"
            ) from exc
    types: dict[str, pa.DataType] = {
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": _HEADERS,
        "timestamp": pa.int64(),
        "partition": pa.int32(),
    }
    try:
        return pa.table(
            {name: pa.array([record[name] for record in records], kind)
             for name, kind in types.items()}
        )  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowTypeError) as exc:
        raise KlogError(
            f"lines {numbers[0]} to {numbers[-1]}: timestamp and partition must be whole numbers "
            f"({exc}). Correct them"
        ) from exc


def _decoded_record(record: Any) -> dict[str, Any]:
    headers = record.get("headers")
    return {
        "key": _bytes(record.get("key")),
        "value": _bytes(record["value"]),
        "headers": headers
        and [{"key": header["key"], "value": _bytes(header["value"])} for header in headers],
        "timestamp": record.get("timestamp"),
        "partition": record.get("partition"),
    }


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if set(value) != {"base64"}:
        raise ValueError("key, value and headers must be text, null or base64")
    return base64.b64decode(value["base64"], validate=True)
