r"""Lines to records, as the reader of Kafka's console producer takes them.

The rule (Kafka's `LineMessageReader`): a line ends at \n, \r or \r\n, and is

    headers <headers.delimiter> key <key.separator> value

of which headers and key are there only with `parse.headers` and `parse.key`. A missing separator is
an error that names the line; with `ignore.error` what was to end at it is not there, and the value
begins earlier. Headers are split at `headers.separator`, a regular expression, empty ones at the
end are dropped, and each is cut at `headers.key.separator`. What equals `null.marker` is null; a
header key cannot be, whatever is ignored.

Two things differ. Bytes that are no UTF-8 stay as they are, where Kafka puts U+FFFD; only a header
key, which is text, is refused for them. And a property that the reader does not know is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from klog.errors import KlogError, OptionError, nearest_name
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.record_headers import HEADERS_TYPE

MOST_LINE_BYTES = MAX_BATCH_BYTES
"""A longer line fits into no record."""
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

_SHOWN = 100
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
    """What a line holds; `null_marker` is None where nothing stands for null."""

    parse_key: bool = False
    key_separator: str = "\t"
    parse_headers: bool = False
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None
    ignore_error: bool = False


def line_format(properties: Mapping[str, str]) -> LineFormat:
    """Read the reader's properties; `OptionError` for one that is unknown or cannot be."""
    for name in properties:
        if name not in PROPERTIES:
            nearest = nearest_name(name, PROPERTIES, cutoff=0.5)
            hint = f"did you mean {nearest}?" if nearest else f"it knows {', '.join(PROPERTIES)}"
            raise OptionError(f"{name}: the line reader has no such property; {hint}")
    made = LineFormat(
        parse_key=_is_true(properties.get("parse.key")),
        key_separator=properties.get("key.separator", "\t"),
        parse_headers=_is_true(properties.get("parse.headers")),
        headers_delimiter=properties.get("headers.delimiter", "\t"),
        headers_separator=properties.get("headers.separator", ","),
        headers_key_separator=properties.get("headers.key.separator", ":"),
        null_marker=properties.get("null.marker"),
        ignore_error=_is_true(properties.get("ignore.error")),
    )
    _check_different(made)
    for name, text in properties.items():
        try:
            text.encode()
        except UnicodeEncodeError as exc:
            raise OptionError(f"{name} is {text!r}, which is no valid UTF-8; give another") from exc
    try:
        re.compile(made.headers_separator)
    except (re.error, OverflowError, RecursionError) as exc:
        raise OptionError(
            f"headers.separator is {made.headers_separator!r}, which is no regular expression: "
            f"{exc}; a character that means something in one needs a backslash"
        ) from exc
    return made


def _is_true(text: str | None) -> bool:
    """Tell what Java's console tools take for true: any other word is false."""
    return text is not None and text.strip().lower() == "true"


def _check_different(made: LineFormat) -> None:
    """Refuse separators that could not be told apart (`LineMessageReader.configure`)."""
    key, marker = ("key.separator", made.key_separator), ("null.marker", made.null_marker)
    delimiter = ("headers.delimiter", made.headers_delimiter)
    separator = ("headers.separator", made.headers_separator)
    pair = ("headers.key.separator", made.headers_key_separator)
    for (one, text), (other, same) in (
        (delimiter, separator),
        (delimiter, pair),
        (separator, pair),
        (marker, key),
        (marker, separator),
        (marker, delimiter),
        (marker, pair),
    ):
        if text == same:
            raise OptionError(f"{one} and {other} are both {text!r}; they may not be equal")


@dataclass(slots=True)
class Lines:
    """Bytes as they arrive, cut into lines; `count` is how many were given out."""

    count: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _after_return: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        r"""Give the lines that end in these bytes; what is behind the last end waits for more.

        Raises `KlogError` for a line of more than `MOST_LINE_BYTES`.
        """
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]  # Of a \r\n whose halves came apart.
        self._after_return = data.endswith(b"\r")
        lines = data.splitlines()
        held = lines.pop() if lines and not data.endswith((b"\r", b"\n")) else b""
        if lines:
            lines[0] = bytes(self._held + lines[0])
            self._held.clear()
        self._held += held
        lengths = [*map(len, lines), len(self._held)]
        if max(lengths) > MOST_LINE_BYTES:
            at = next(at for at, length in enumerate(lengths) if length > MOST_LINE_BYTES)
            raise KlogError(
                f"line {self.count + at + 1}: it is longer than {MOST_LINE_BYTES} bytes, which no "
                "record can be; split it"
            )
        self.count += len(lines)
        return lines

    def finish(self) -> list[bytes]:
        """Give the last line, if it has no end."""
        lines = [bytes(self._held)] if self._held else []
        self._held.clear()
        self.count += len(lines)
        return lines


def read_lines(lines: Sequence[bytes], first_line: int, form: LineFormat) -> pa.RecordBatch:
    """Give a record for each line: columns `key`, `value`, `headers`.

    `first_line` is the number of the first, from 1. Raises `KlogError` for the first bad one.
    """
    if form.parse_key or form.parse_headers or form.null_marker is not None:
        reader = _Reader(form)
        records = [reader.record(line, number) for number, line in enumerate(lines, first_line)]
        columns: Sequence[Sequence[object]] = list(zip(*records, strict=True)) or [(), (), ()]
    else:
        nothing = (None,) * len(lines)
        columns = [nothing, lines, nothing]
    return pa.RecordBatch.from_arrays(
        [pa.array(one, kind) for one, kind in zip(columns, _RECORDS.types, strict=True)],
        schema=_RECORDS,
    )


class _Reader:
    """Reads one line at a time; separators are compared as bytes, which finds the same in UTF-8."""

    def __init__(self, form: LineFormat) -> None:
        self._form = form
        self._delimiter = form.headers_delimiter.encode()
        self._separator = form.key_separator.encode()
        self._marker = None if form.null_marker is None else form.null_marker.encode()
        self._between = re.compile(form.headers_separator)

    def record(self, line: bytes, number: int) -> _Record:
        """Give key, value and headers of a line."""
        form, key, found, rest = self._form, None, None, line
        if form.parse_headers:
            found, rest = self._cut(rest, self._delimiter, "headers delimiter", line, number)
        if form.parse_key:
            key, rest = self._cut(rest, self._separator, "key separator", line, number)
        headers = None
        if found is not None and found != self._marker:
            headers = [self._header(pair, number) for pair in self._pairs(found)]
        return self._or_null(key), self._or_null(rest), headers

    def _cut(
        self, text: bytes, at: bytes, name: str, line: bytes, number: int
    ) -> tuple[bytes | None, bytes]:
        """Give what is before a separator and what is behind it."""
        head, is_there, rest = text.partition(at) if at else (b"", b" ", text)
        if is_there:
            return head, rest
        if self._form.ignore_error:
            return None, text
        raise KlogError(
            f"line {number}: no {name} {at.decode()!r} in {_shown(line)}; ignore.error=true takes "
            "such lines too"
        )

    def _or_null(self, text: bytes | None) -> bytes | None:
        return None if text == self._marker else text

    def _pairs(self, found: bytes) -> list[str]:
        """Split headers as Java's `Pattern.split` does; other bytes than UTF-8 are kept apart."""
        text = found.decode("utf-8", "surrogateescape")
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
        form = self._form
        key, is_there, value = pair, "", ""
        if form.headers_key_separator in pair:
            at = pair.index(form.headers_key_separator)
            key, is_there = pair[:at], " "
            value = pair[at + len(form.headers_key_separator) :]
        elif not form.ignore_error:
            raise KlogError(
                f"line {number}: no header key separator {form.headers_key_separator!r} in the "
                f"header {_shown(_bytes(pair))}; ignore.error=true takes such lines too"
            )
        if is_there and key == form.null_marker:
            raise KlogError(
                f"line {number}: a header's key is the null marker {form.null_marker!r}; a header "
                "has a key that is not null"
            )
        content = self._or_null(_bytes(value)) if is_there else None
        return self._header_key(key, number), content

    def _header_key(self, key: str, number: int) -> str:
        if key.isascii():
            return key
        try:
            return _bytes(key).decode()
        except UnicodeDecodeError as exc:
            if self._form.ignore_error:
                return _bytes(key).decode("utf-8", "replace")
            raise KlogError(
                f"line {number}: a header's key {_shown(_bytes(key))} is no UTF-8, which the keys "
                "of headers are; ignore.error=true puts U+FFFD for what is none"
            ) from exc


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _shown(text: bytes) -> str:
    """Give the beginning of a text as an error shows it."""
    shown = text[:_SHOWN].decode("utf-8", "replace")
    return repr(shown + "..." if len(text) > _SHOWN else shown)
