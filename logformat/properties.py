"""Java's properties files: keys and values, ISO-8859-1, with Java's escapes.

A line is a key, `=`, `:` or white space, and a value. `#` and `!` begin a comment, a backslash at a
line's end joins the next line to it, and one before `u` and four hex digits is a character.
The last of two equal keys counts. (`java.util.Properties.load` and `store`.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from klog.errors import CorruptRecordError

_BLANK = " \t\f"
_PARTS = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {letter: f"\\{name}" for name, letter in _LETTERS.items()}
_WRITTEN |= {special: f"\\{special}" for special in "\\=:#!"}
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


def decode_properties(data: bytes) -> dict[str, str]:
    """Decode a properties file; raises `CorruptRecordError` for a broken escape."""
    fields = {}
    for position, line in _logical_lines(data):
        parts = _PARTS.fullmatch(line)
        assert parts is not None, "any line is a key and a value"
        key, value = (_unescaped(part, position) for part in parts.groups())
        fields[key] = value
    return fields


def encode_properties(fields: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """Encode a properties file: a `#` line for each comment, a line for each key, in order."""
    lines = [f"#{_ascii(comment)}" for comment in comments]
    for key, value in fields.items():
        written = _escaped(value)
        if value.startswith(" "):
            written = "\\" + written
        lines.append(f"{_escaped(key).replace(' ', chr(92) + ' ')}={written}")
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _logical_lines(data: bytes) -> list[tuple[int, str]]:
    """Join continued lines; leave out comments and blank ones. Each with its position."""
    found: list[tuple[int, str]] = []
    joined: str | None = None
    begin = position = 0
    for whole in data.splitlines(keepends=True):
        line = whole.rstrip(b"\r\n").decode("latin-1").lstrip(_BLANK)
        if joined is None:
            begin = position
        position += len(whole)
        if joined is None and (not line or line[0] in "#!"):
            continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined = (joined or "") + (line[:-1] if is_continued else line)
        if not is_continued:
            found.append((begin, joined))
            joined = None
    if joined is not None:
        found.append((begin, joined))
    return found


def _unescaped(text: str, position: int) -> str:
    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name == "u":
            raise CorruptRecordError("\\u without four hex digits", position)
        return chr(int(name[1:], 16)) if len(name) > 1 else _LETTERS.get(name, name)

    units = _ESCAPE.sub(one, text)
    # Characters beyond 16 bits are two escapes, as Java holds them.
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _escaped(text: str) -> str:
    return _ascii("".join(_WRITTEN.get(letter, letter) for letter in text))


def _ascii(text: str) -> str:
    """Write what is not printable ASCII as the 16-bit units that Java holds it in."""

    def units(match: re.Match[str]) -> str:
        wide = match[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{wide[at : at + 2].hex().upper()}" for at in range(0, len(wide), 2))

    return _NOT_ASCII.sub(units, text)
