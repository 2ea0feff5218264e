"""How `klog dump` writes a record that may be as large as a batch: a piece at a time.

A value is in memory once when it comes here, and its text may be six times as long (control
characters in JSON). So bytes of more than `PIECE_BYTES` become text in pieces, and the pieces
together are the same as the text of the whole. Such a value is a view of where its record lies.
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

from klog.jobs.shared.text_output import json_bytes

Value: TypeAlias = "bytes | memoryview"
"""Bytes of a record: a view where there are more of them than `PIECE_BYTES`."""

PIECE_BYTES = 3 << 18
"""A multiple of 3, so that the base64 of pieces is that of the whole."""


@dataclass(frozen=True, slots=True)
class Base64:
    """Bytes that are shown as base64."""

    data: Value


def values_of(column: pa.BinaryArray) -> list[Value | None]:
    """Give the values of a column; a large one is not copied."""
    if column.nbytes <= PIECE_BYTES:
        values: list[Value | None] = column.to_pylist()
        return values
    _, bounds, data = column.buffers()
    at = np.frombuffer(bounds, np.int32, len(column) + 1, 4 * column.offset).tolist()
    view, valid = memoryview(data), column.is_valid().to_pylist()
    spans = zip(pairwise(at), valid, strict=True)
    return [_value(view[begin:end]) if there else None for (begin, end), there in spans]


def _value(data: memoryview) -> Value:
    return data if len(data) > PIECE_BYTES else bytes(data)


def text_pieces(parts: Iterable[str | Value | Base64]) -> Iterator[str]:
    """Give parts of a line as text; of bytes, what is not UTF-8 is replaced."""
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Base64):
            yield from _base64(part.data)
        else:
            yield from _decoded(part, "replace")


def json_pieces(values: Mapping[str, Any]) -> Iterator[str]:
    """Give values as a JSON object, bytes as `json_bytes` has them.

    Large ones may stand in it and in an object that it holds.
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
            yield from json_pieces(value)
        else:
            yield _json(value)
        before = ", "
    yield "}"


def is_large(value: object) -> bool:
    """Tell whether these are bytes that become text in pieces."""
    return isinstance(value, bytes | memoryview) and len(value) > PIECE_BYTES


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
    for begin in range(0, len(data), PIECE_BYTES):
        yield b64encode(data[begin : begin + PIECE_BYTES]).decode()


def _decoded(data: Value, errors: str) -> Iterator[str]:
    if len(data) <= PIECE_BYTES:
        yield bytes(data).decode(errors=errors)
        return
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for begin in range(0, len(data), PIECE_BYTES):
        end = begin + PIECE_BYTES
        yield decoder.decode(data[begin:end], final=end >= len(data))
