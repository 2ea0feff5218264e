"""How `klog dump` writes a record that may be as large as a batch: in chunks.

A value is in memory once, and its text may be six times as long (control characters in JSON). So
bytes of more than `CHUNK_BYTES` become text in chunks, and the chunks joined are the text of the
whole value. Such a value is a view of its record's batch.
"""

from __future__ import annotations

import codecs
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from klog.text_output import json_bytes

Value: TypeAlias = "bytes | memoryview"
"""Bytes of a record: a view if there are more than `CHUNK_BYTES`."""

CHUNK_BYTES = 3 << 18
"""A multiple of 3, so that the base64 of chunks joins to that of the whole."""


@dataclass(frozen=True, slots=True)
class Base64:
    """Bytes that are shown as base64."""

    data: Value


def column_values(column: pa.BinaryArray) -> list[Value | None]:
    """Return the values of a column; a large value is not copied."""
    if column.nbytes <= CHUNK_BYTES:
        values: list[Value | None] = column.to_pylist()
        return values
    _, bounds, data = column.buffers()
    at = np.frombuffer(bounds, np.int32, len(column) + 1, 4 * column.offset).tolist()
    view, valid = memoryview(data), column.is_valid().to_pylist()
    spans = zip(pairwise(at), valid, strict=True)
    return [_value(view[begin:end]) if there else None for (begin, end), there in spans]


def _value(data: memoryview) -> Value:
    return data if len(data) > CHUNK_BYTES else bytes(data)


def text_chunks(parts: Iterable[str | Value | Base64]) -> Iterator[str]:
    """Yield parts of a line as text; bytes that are not UTF-8 are replaced."""
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Base64):
            yield from _base64(part.data)
        else:
            yield from _decoded(part, "replace")


def json_chunks(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of a JSON object, with bytes as `json_bytes` encodes them.

    Large values may be in the object and in objects that it holds.
    """
    if not any(map(_has_large, values.values())):
        yield _json(values)
        return
    before = "{"
    for name, value in values.items():
        yield f"{before}{_json(name)}: "
        if is_large(value):
            yield from _json_of_large(value)
        elif _has_large(value):
            yield from json_chunks(value)
        else:
            yield _json(value)
        before = ", "
    yield "}"


def is_large(value: object) -> bool:
    """Return whether `value` is bytes that become text in chunks."""
    return isinstance(value, bytes | memoryview) and len(value) > CHUNK_BYTES


def _has_large(value: object) -> bool:
    return is_large(value) or (isinstance(value, dict) and any(map(is_large, value.values())))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=json_bytes)


def _json_of_large(value: Value) -> Iterator[str]:
    try:
        for _ in _decoded(value, "strict"):
            pass
    except UnicodeDecodeError:
        yield '{"base64": "'
        yield from _base64(value)
        yield '"}'
        return
    yield '"'
    for text in _decoded(value, "strict"):
        yield _json(text)[1:-1]
    yield '"'


def _base64(data: Value) -> Iterator[str]:
    for begin in range(0, len(data), CHUNK_BYTES):
        yield b64encode(data[begin : begin + CHUNK_BYTES]).decode()


def _decoded(data: Value, errors: str) -> Iterator[str]:
    if len(data) <= CHUNK_BYTES:
        yield bytes(data).decode(errors=errors)
        return
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for begin in range(0, len(data), CHUNK_BYTES):
        end = begin + CHUNK_BYTES
        yield decoder.decode(data[begin:end], final=end >= len(data))
