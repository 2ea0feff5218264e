"""How `klog dump` writes a record that may be as large as a batch: a piece at a time.

A value is in memory once when it comes here, and its text may be six times as long (control
characters in JSON). So bytes of more than `PIECE_BYTES` become text in pieces, and the pieces
together are the same as the text of the whole.
"""

from __future__ import annotations

import codecs
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from klog.cli.formats import json_bytes

PIECE_BYTES = 3 << 18
"""A multiple of 3, so that the base64 of pieces is that of the whole."""


def text_pieces(parts: Iterable[str | bytes]) -> Iterator[str]:
    """Give parts of a line as text; of bytes, what is not UTF-8 is replaced."""
    for part in parts:
        if isinstance(part, str):
            yield part
        else:
            yield from _decoded(part, "replace")


def json_pieces(values: Mapping[str, Any]) -> Iterator[str]:
    """Give values as a JSON object, bytes as `json_bytes` has them."""
    if not any(map(_is_large, values.values())):
        yield _json(values)
        return
    before = "{"
    for name, value in values.items():
        yield f"{before}{_json(name)}: "
        if _is_large(value):
            yield from _json_of_large(value)
        else:
            yield _json(value)
        before = ", "
    yield "}"


def _is_large(value: object) -> bool:
    return isinstance(value, bytes) and len(value) > PIECE_BYTES


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=json_bytes)


def _json_of_large(value: bytes) -> Iterator[str]:
    try:
        for _ in _decoded(value, "strict"):
            pass
    except UnicodeDecodeError:
        yield '{"base64": "'
        for begin in range(0, len(value), PIECE_BYTES):
            yield b64encode(value[begin : begin + PIECE_BYTES]).decode()
        yield '"}'
        return
    yield '"'
    for text in _decoded(value, "strict"):
        yield _json(text)[1:-1]
    yield '"'


def _decoded(data: bytes, errors: str) -> Iterator[str]:
    if len(data) <= PIECE_BYTES:
        yield data.decode(errors=errors)
        return
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    for begin in range(0, len(data), PIECE_BYTES):
        end = begin + PIECE_BYTES
        yield decoder.decode(data[begin:end], final=end >= len(data))
