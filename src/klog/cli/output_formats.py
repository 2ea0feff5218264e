"""How `klog consume` prints records: kcat's `-f`, the console consumer's properties, JSON lines.

A format is a sequence of parts. A part returns its text for all records of a batch at once, and
names the columns that it needs, so that no other columns are decoded. Keys, values and header
values are printed as their bytes.

Null is `NULL` in a `-f` format (kcat's `-Z`) and `null` for the console consumer, where
`null.literal` can change it. An empty key or value is printed as nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from klog.connector.options.read_columns import COLUMNS
from klog.text_output import json_bytes

if TYPE_CHECKING:
    import pyarrow as pa

Texts: TypeAlias = list[bytes]
KCAT_NULL = b"NULL"
TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a format: the columns it needs, and its text for each record of a batch."""

    columns: tuple[str, ...]
    texts: Callable[[pa.RecordBatch], Texts]


@dataclass(frozen=True, slots=True)
class Format:
    """Parts, printed one after the other for each record."""

    parts: tuple[Part, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns to decode; at least one, so that records can be counted."""
        names = {name for part in self.parts for name in part.columns} or {"offset"}
        return tuple(name for name in COLUMNS if name in names)

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the bytes to print for a batch."""
        texts = [part.texts(batch) for part in self.parts]
        return b"".join(chain.from_iterable(zip(*texts, strict=True)))


def kcat(text: str) -> Format:
    """Parse a kcat format. Raises `ValueError` for an unknown letter."""
    parts = []
    for match in re.finditer(r"%(.?)|[^%]+", text, re.DOTALL):
        letter = match.group(1)
        if letter is None:
            parts.append(_literal(_unescaped(match.group())))
        elif letter == "%":
            parts.append(_literal(b"%"))
        elif letter in _KCAT:
            parts.append(_KCAT[letter])
        else:
            letters = " ".join(f"%{name}" for name in _KCAT)
            raise ValueError(f"%{letter}: must be one of {letters} %%")
    return Format(tuple(parts))


def console(properties: Mapping[str, str]) -> Format:
    """Return the format that the console consumer's properties describe.

    A property that is not set has its default. Raises `ValueError` for a property that is not in
    `CONSOLE_DEFAULTS`, and for one that must be true or false and is not.
    """
    for name in properties:
        if name not in CONSOLE_DEFAULTS:
            raise ValueError(f"{name}: must be one of {', '.join(CONSOLE_DEFAULTS)}")
    values = {**CONSOLE_DEFAULTS, **properties}
    null, separator, line = (
        _typed_bytes(values[name]) for name in ("null.literal", "key.separator", "line.separator")
    )
    headers = _headers(b":", _typed_bytes(values["headers.separator"]), null, b"NO_HEADERS")
    fields = {
        "timestamp": Part(("timestamp", "timestampType"), _console_timestamps),
        "partition": _number("partition", "Partition:"),
        "offset": _number("offset", "Offset:"),
        "headers": headers,
        "key": _bytes("key", null),
        "value": _bytes("value", null),
    }
    printed = [part for name, part in fields.items() if _is_true(f"print.{name}", values)]
    between = chain.from_iterable((part, _literal(separator)) for part in printed)
    return Format((*list(between)[:-1], _literal(line))) if printed else Format(())


def json_lines(decoded: frozenset[str] = frozenset()) -> Format:
    """Return the format with one object per line; bytes outside UTF-8 are `{"base64": ...}`.

    The columns of `decoded`, of `key` and `value`, have JSON texts.
    """
    return Format((Part(COLUMNS, lambda batch: _json_lines(batch, decoded)),))


CONSOLE_DEFAULTS = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}


def _is_true(name: str, args: Mapping[str, str]) -> bool:
    value = args[name].strip().lower()
    if value not in ("true", "false"):
        raise ValueError(f"{name}: must be true or false, got {args[name]!r}")
    return value == "true"


def _typed_bytes(text: str) -> bytes:
    """Return the bytes of an argument, which Python decoded; they may be other than UTF-8."""
    return text.encode(errors="surrogateescape")


def _unescaped(text: str) -> bytes:
    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name[0] == "x" and len(name) > 1:
            return chr(int(name[1:], 16))
        return _ESCAPED.get(name, name)

    # Escapes stand for bytes, so the UTF-8 bytes are replaced as latin-1 text.
    return _ESCAPE.sub(replace, _typed_bytes(text).decode("latin-1")).encode("latin-1")


def _literal(text: bytes) -> Part:
    return Part((), lambda batch: [text] * batch.num_rows)


def _number(column: str, before: str = "") -> Part:
    return Part(
        (column,), lambda batch: [f"{before}{n}".encode() for n in batch.column(column).to_pylist()]
    )


def _bytes(column: str, null: bytes) -> Part:
    return Part(
        (column,),
        lambda batch: [null if v is None else v for v in batch.column(column).to_pylist()],
    )


def _length(column: str, text: Callable[[int], bytes]) -> Part:
    """Return the part that prints the length of a field, or -1 if it is null, as kcat does."""
    return Part(
        (column,),
        lambda batch: [text(-1 if v is None else len(v)) for v in batch.column(column).to_pylist()],
    )


def _headers(between: bytes, separator: bytes, null: bytes, none: bytes) -> Part:
    def text(headers: list[dict[str, Any]] | None) -> bytes:
        if not headers:
            return none
        return separator.join(
            h["key"].encode() + between + (null if h["value"] is None else h["value"])
            for h in headers
        )

    return Part(("headers",), lambda batch: [text(h) for h in batch.column("headers").to_pylist()])


def _milliseconds(batch: pa.RecordBatch) -> list[int]:
    return [us // 1000 for us in batch.column("timestamp").cast("int64").to_pylist()]


def _console_timestamps(batch: pa.RecordBatch) -> Texts:
    kinds = batch.column("timestampType").to_pylist()
    return [
        b"NO_TIMESTAMP" if kind < 0 else f"{TIMESTAMP_TYPES[kind]}:{ms}".encode()
        for kind, ms in zip(kinds, _milliseconds(batch), strict=True)
    ]


def _json_lines(batch: pa.RecordBatch, decoded: frozenset[str]) -> Texts:
    columns = {name: batch.column(name).to_pylist() for name in COLUMNS if name != "timestamp"}
    columns["timestamp"] = _milliseconds(batch)
    columns["timestampType"] = [TIMESTAMP_TYPES[kind] for kind in columns["timestampType"]]
    columns["headers"] = [
        [{"key": h["key"], "value": json_bytes(h["value"])} for h in headers or ()]
        for headers in columns["headers"]
    ]
    names = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
    records = zip(*(columns[name] for name in names), strict=True)
    lines = [
        json.dumps(dict(zip(names, record, strict=True)), ensure_ascii=False) for record in records
    ]
    texts = [
        list(map(_json_text if name in decoded else _json_of_bytes, columns[name]))
        for name in ("key", "value")
    ]
    return [
        f'{line[:-1]}, "key": {key}, "value": {value}}}\n'.encode()
        for line, key, value in zip(lines, *texts, strict=True)
    ]


def _json_text(text: bytes | None) -> str:
    """Return JSON unchanged: parsed again, numbers would lose digits."""
    return "null" if text is None else text.decode()


def _json_of_bytes(value: bytes | None) -> str:
    return json.dumps(json_bytes(value), ensure_ascii=False)


_KCAT = {
    "t": Part(("topic",), lambda batch: [t.encode() for t in batch.column("topic").to_pylist()]),
    "p": _number("partition"),
    "o": _number("offset"),
    "k": _bytes("key", KCAT_NULL),
    "s": _bytes("value", KCAT_NULL),
    "T": Part(("timestamp",), lambda batch: [str(ms).encode() for ms in _milliseconds(batch)]),
    "h": _headers(b"=", b",", KCAT_NULL, b""),
    "K": _length("key", lambda size: str(size).encode()),
    "S": _length("value", lambda size: str(size).encode()),
    "R": _length("value", lambda size: size.to_bytes(4, "big", signed=True)),
}
