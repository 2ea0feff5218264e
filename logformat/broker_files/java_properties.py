"""Java's properties files: keys and values, ISO-8859-1, with Java's escapes.

The rule: a line is a key, `=`, `:` or white space, and a value. `#` and `!` start a comment. A
backslash at the end of a line continues it, and a backslash, `u` and four hex digits are a
character. The last of equal keys counts. (`java.util.Properties.load` and `store`.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from klog.errors import CorruptRecordError

_BLANK = " \t\f"
_PARTS = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {letter: f"\\{name}" for name, letter in _CONTROL_ESCAPES.items()}
_ESCAPED |= {special: f"\\{special}" for special in "\\=:#!"}
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


def decode_properties(data: bytes) -> dict[str, str]:
    """Decode a properties file.

    Args:
        data: The whole file.

    Raises:
        CorruptRecordError: For a malformed escape, with the position of its line.
    """
    fields = {}
    for position, line in _logical_lines(data):
        parts = _PARTS.fullmatch(line)
        assert parts is not None, "every line is a key and a value"
        key, value = (_unescape(part, position) for part in parts.groups())
        fields[key] = value
    return fields


def encode_properties(fields: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """Encode a properties file.

    Args:
        fields: Keys and values, a line each, in order.
        comments: A line each, before the fields.
    """
    lines = [f"#{_ascii(comment)}" for comment in comments]
    for key, value in fields.items():
        escaped_key = _escape(key).replace(" ", "\\ ")
        escaped_value = _escape(value)
        if value.startswith(" "):
            escaped_value = "\\" + escaped_value
        lines.append(f"{escaped_key}={escaped_value}")
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _logical_lines(data: bytes) -> list[tuple[int, str]]:
    """Return the lines with their positions: continued ones joined, without comments and blanks."""
    lines: list[tuple[int, str]] = []
    continued: str | None = None
    start = position = 0
    for raw_line in data.splitlines(keepends=True):
        line = raw_line.rstrip(b"\r\n").decode("latin-1").lstrip(_BLANK)
        if continued is None:
            start = position
        position += len(raw_line)
        if continued is None and (not line or line[0] in "#!"):
            continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        continued = (continued or "") + (line[:-1] if is_continued else line)
        if not is_continued:
            lines.append((start, continued))
            continued = None
    if continued is not None:
        lines.append((start, continued))
    return lines


def _unescape(text: str, position: int) -> str:
    def character(match: re.Match[str]) -> str:
        name = match[1]
        if name == "u":
            raise CorruptRecordError("\\u without four hex digits", position)
        return chr(int(name[1:], 16)) if len(name) > 1 else _CONTROL_ESCAPES.get(name, name)

    units = _ESCAPE.sub(character, text)
    # Characters above 16 bits are two escapes, as Java stores them.
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _escape(text: str) -> str:
    return _ascii("".join(_ESCAPED.get(letter, letter) for letter in text))


def _ascii(text: str) -> str:
    """Escape what is not printable ASCII, as the 16-bit units that Java stores."""

    def units(match: re.Match[str]) -> str:
        encoded = match[0].encode("utf-16-be", "surrogatepass")
        return "".join(
            f"\\u{encoded[start : start + 2].hex().upper()}" for start in range(0, len(encoded), 2)
        )

    return _NOT_ASCII.sub(units, text)
