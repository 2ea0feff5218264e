r"""Lines to records, by the rules of Kafka's console producer.

The rule (Kafka's `LineMessageReader`): a line ends at \n, \r or \r\n, and is

    headers <headers.delimiter> key <key.separator> value

It has headers only with `parse.headers` and a key only with `parse.key`. A missing separator is an
error that names the line. With `ignore.error` the record lacks the part before the missing
separator, and the value begins earlier. Headers are split at `headers.separator`, a regular
expression; empty ones at the end are dropped; each is split at `headers.key.separator`. A part that
equals `null.marker` is null; a header key must not be null, even with `ignore.error`.

Two rules differ. Bytes that are not UTF-8 are kept; Kafka replaces them with U+FFFD. Only in a
header key, which is text, they are an error. And an unknown property is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from klog.errors import KlogError, OptionError, nearest_name
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.record_headers import HEADERS_TYPE

MAX_LINE_BYTES = MAX_BATCH_BYTES
"""A longer line does not fit into a record."""
PROPERTIES = (
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
    "ignore.error",
)

_EXCERPT_BYTES = 100
_RECORDS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE),
    ]
)
_Header = tuple[str, bytes | None]
_Record = tuple[bytes | None, bytes | None, list[_Header] | None]


@dataclass(frozen=True, slots=True)
class LineFormat:
    """The parts of a line and their separators; `null_marker` is None if no text means null."""

    parse_key: bool = False
    key_separator: str = "\t"
    parse_headers: bool = False
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None
    ignore_error: bool = False


def parse_line_format(properties: Mapping[str, str]) -> LineFormat:
    """Parse the reader's properties; raises `OptionError` for an unknown or invalid one."""
    for name in properties:
        if name not in PROPERTIES:
            nearest = nearest_name(name, PROPERTIES, cutoff=0.5)
            hint = f"did you mean {nearest}?" if nearest else f"it has {', '.join(PROPERTIES)}"
            raise OptionError(f"{name}: the line reader has no such property; {hint}")
    result = LineFormat(
        parse_key=_is_true(properties.get("parse.key")),
        key_separator=properties.get("key.separator", "\t"),
        parse_headers=_is_true(properties.get("parse.headers")),
        headers_delimiter=properties.get("headers.delimiter", "\t"),
        headers_separator=properties.get("headers.separator", ","),
        headers_key_separator=properties.get("headers.key.separator", ":"),
        null_marker=properties.get("null.marker"),
        ignore_error=_is_true(properties.get("ignore.error")),
    )
    _check_different(result)
    for name, text in properties.items():
        try:
            text.encode()
        except UnicodeEncodeError as exc:
            raise OptionError(f"{name}: must be valid UTF-8, got {text!r}") from exc
    try:
        re.compile(result.headers_separator)
    except (re.error, OverflowError, RecursionError) as exc:
        raise OptionError(
            "headers.separator: must be a regular expression, got "
            f"{result.headers_separator!r}: {exc}. Put a backslash before a special character"
        ) from exc
    return result


def _is_true(text: str | None) -> bool:
    """Return whether Java's console tools read a text as true; any other text is false."""
    return text is not None and text.strip().lower() == "true"


def _check_different(line_format: LineFormat) -> None:
    """Refuse equal separators (`LineMessageReader.configure`)."""
    key = ("key.separator", line_format.key_separator)
    marker = ("null.marker", line_format.null_marker)
    delimiter = ("headers.delimiter", line_format.headers_delimiter)
    separator = ("headers.separator", line_format.headers_separator)
    pair = ("headers.key.separator", line_format.headers_key_separator)
    for (name, text), (other_name, other_text) in (
        (delimiter, separator),
        (delimiter, pair),
        (separator, pair),
        (marker, key),
        (marker, separator),
        (marker, delimiter),
        (marker, pair),
    ):
        if text == other_text:
            raise OptionError(f"{name} and {other_name} are both {text!r}. Make them different")


@dataclass(slots=True)
class Lines:
    """Split bytes into lines as they arrive; `count` is the number of lines returned so far."""

    count: int = 0
    _partial: bytearray = field(default_factory=bytearray)
    _after_return: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        r"""Return the lines that end in these bytes; keep the bytes after the last line end.

        Raises `KlogError` for a line of more than `MAX_LINE_BYTES`.
        """
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]  # The second half of a \r\n.
        self._after_return = data.endswith(b"\r")
        lines = data.splitlines()
        rest = lines.pop() if lines and not data.endswith((b"\r", b"\n")) else b""
        if lines:
            lines[0] = bytes(self._partial + lines[0])
            self._partial.clear()
        self._partial += rest
        lengths = [*map(len, lines), len(self._partial)]
        if max(lengths) > MAX_LINE_BYTES:
            index = next(index for index, length in enumerate(lengths) if length > MAX_LINE_BYTES)
            raise KlogError(
                f"line {self.count + index + 1}: longer than {MAX_LINE_BYTES} bytes, the limit of "
                "a record. Split it"
            )
        self.count += len(lines)
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line, if it has no line end."""
        lines = [bytes(self._partial)] if self._partial else []
        self._partial.clear()
        self.count += len(lines)
        return lines


def read_lines(lines: Sequence[bytes], first_line: int, line_format: LineFormat) -> pa.RecordBatch:
    """Return a record for each line, with the columns `key`, `value` and `headers`.

    `first_line` is the number of the first line, from 1. Raises `KlogError` for the first bad line.
    """
    if line_format.parse_key or line_format.parse_headers or line_format.null_marker is not None:
        reader = _Reader(line_format)
        records = [reader.record(line, number) for number, line in enumerate(lines, first_line)]
        columns: Sequence[Sequence[object]] = list(zip(*records, strict=True)) or [(), (), ()]
    else:
        nulls = (None,) * len(lines)
        columns = [nulls, lines, nulls]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, _RECORDS.types, strict=True)],
        schema=_RECORDS,
    )


class _Reader:
    """Reads one line at a time. It compares separators as bytes, which is the same in UTF-8."""

    def __init__(self, line_format: LineFormat) -> None:
        self._line_format = line_format
        self._delimiter = line_format.headers_delimiter.encode()
        self._separator = line_format.key_separator.encode()
        self._marker = None if line_format.null_marker is None else line_format.null_marker.encode()
        self._between = re.compile(line_format.headers_separator)

    def record(self, line: bytes, number: int) -> _Record:
        """Return key, value and headers of a line."""
        line_format, key, headers_text, rest = self._line_format, None, None, line
        if line_format.parse_headers:
            headers_text, rest = self._cut(rest, self._delimiter, "headers delimiter", line, number)
        if line_format.parse_key:
            key, rest = self._cut(rest, self._separator, "key separator", line, number)
        headers = None
        if headers_text is not None and headers_text != self._marker:
            headers = [self._header(pair, number) for pair in self._pairs(headers_text)]
        return self._or_null(key), self._or_null(rest), headers

    def _cut(
        self, text: bytes, at: bytes, name: str, line: bytes, number: int
    ) -> tuple[bytes | None, bytes]:
        """Return the text before a separator and the text after it."""
        head, is_there, rest = text.partition(at) if at else (b"", b" ", text)
        if is_there:
            return head, rest
        if self._line_format.ignore_error:
            return None, text
        raise KlogError(
            f"line {number}: no {name} {at.decode()!r} in {_excerpt(line)}; ignore.error=true "
            "accepts such lines"
        )

    def _or_null(self, text: bytes | None) -> bytes | None:
        return None if text == self._marker else text

    def _pairs(self, headers_text: bytes) -> list[str]:
        """Split headers as Java's `Pattern.split` does; bytes that are not UTF-8 are escaped."""
        text = headers_text.decode("utf-8", "surrogateescape")
        pairs, begin, is_split = [], 0, False
        for match in self._between.finditer(text):
            if match.end() == 0:
                continue
            pairs.append(text[begin : match.start()])
            begin, is_split = match.end(), True
        if not is_split:
            return [text]
        pairs.append(text[begin:])
        while pairs and not pairs[-1]:
            pairs.pop()
        return pairs

    def _header(self, pair: str, number: int) -> _Header:
        line_format = self._line_format
        key, is_there, value = pair, "", ""
        if line_format.headers_key_separator in pair:
            at = pair.index(line_format.headers_key_separator)
            key, is_there = pair[:at], " "
            value = pair[at + len(line_format.headers_key_separator) :]
        elif not line_format.ignore_error:
            raise KlogError(
                f"line {number}: no header key separator {line_format.headers_key_separator!r} in "
                f"the header {_excerpt(_bytes(pair))}; ignore.error=true accepts such lines"
            )
        if is_there and key == line_format.null_marker:
            raise KlogError(
                f"line {number}: a header's key is the null marker {line_format.null_marker!r}. "
                "Give the header a key, or choose another null.marker"
            )
        content = self._or_null(_bytes(value)) if is_there else None
        return self._header_key(key, number), content

    def _header_key(self, key: str, number: int) -> str:
        if key.isascii():
            return key
        try:
            return _bytes(key).decode()
        except UnicodeDecodeError as exc:
            if self._line_format.ignore_error:
                return _bytes(key).decode("utf-8", "replace")
            raise KlogError(
                f"line {number}: a header's key {_excerpt(_bytes(key))} is not UTF-8; "
                "ignore.error=true replaces such bytes with U+FFFD"
            ) from exc


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _excerpt(text: bytes) -> str:
    """Return the beginning of a text, quoted for an error."""
    shown = text[:_EXCERPT_BYTES].decode("utf-8", "replace")
    return repr(shown + "..." if len(text) > _EXCERPT_BYTES else shown)
