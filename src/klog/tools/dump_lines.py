"""What `klog dump` prints: Kafka's lines, or a JSON object a line; and what it found wrong.

A line is a row of named values. As text it reads as kafka-dump-log prints it, where the type of a
timestamp is the name of the timestamp. What is found wrong is told on stderr when all files are
done, under a heading for each kind, as kafka-dump-log does it; with `--json` it is an object among
the others, at once. A finding makes the exit code 1, a notice does not. A row is written before the
next is made, as each may be as large as a batch; the stream behind gathers small ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, TypeAlias

from klog.tools.dump_values import Base64, Value, json_pieces, text_pieces

MOST_TOLD = 1000
"""Findings that are kept under one heading; of more only the number is."""

Parts: TypeAlias = "list[str | Value | Base64]"
"""Of a line; bytes are shown as text."""

_OPTIONAL = {"deleteHorizonMs", "currentTxnFirstOffset"}
_LABEL = "timestampType"


class Printer:
    """Prints lines and keeps what was found."""

    def __init__(self, out: BinaryIO, as_json: bool) -> None:
        """Print to `out`."""
        self._out = out
        self._json = as_json
        self._told: dict[str, list[str]] = {}
        self._untold: dict[str, int] = {}
        self.findings = 0

    def say(self, text: str, kind: str, **values: object) -> None:
        """Print a sentence; in JSON the values that it is about."""
        self._write(self._object(kind, values) if self._json else text)

    def line(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Print one row of values."""
        self._write(self._object(kind, fields) if self._json else text_of(fields))

    def lines(self, kind: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print many rows of values."""
        for row in rows:
            self.line(kind, row)

    def records(self, rows: Iterable[tuple[Parts, Mapping[str, Any]]]) -> None:
        """Print records, each given as parts of its text and as its values; no parts, no line."""
        for parts, row in rows:
            if self._json:
                self._write_pieces(json_pieces({"kind": "record"} | dict(row)))
            elif parts:
                self._write_pieces(text_pieces(parts))

    def finding(self, heading: str, text: str, file: str, **values: object) -> None:
        """Keep something that is wrong, under a heading; in JSON print it."""
        self.findings += 1
        self.notice(heading, text, file, "finding", **values)

    def notice(
        self, heading: str, text: str, file: str, kind: str = "notice", **values: object
    ) -> None:
        """Keep something worth telling that need not be wrong; in JSON print it."""
        if self._json:
            told = {"file": file, "what": heading, "text": text}
            self._write(self._object(kind, told | values))
            return
        where = f"{heading} in {file}"
        lines = self._told.setdefault(where, [])
        if len(lines) < MOST_TOLD:
            lines.append(text)
        else:
            self._untold[where] = self._untold.get(where, 0) + 1

    def tell(self) -> None:
        """Print what was kept to stderr."""
        self._out.flush()
        for where, lines in self._told.items():
            sys.stderr.write(f"{where}\n" + "".join(f"  {line}\n" for line in lines))
            if where in self._untold:
                sys.stderr.write(f"  and {self._untold[where]} more\n")

    def _object(self, kind: str, values: Mapping[str, Any]) -> str:
        return "".join(json_pieces({"kind": kind} | dict(values)))

    def _write_pieces(self, pieces: Iterable[str]) -> None:
        for piece in pieces:
            self._out.write(piece.encode(errors="replace"))
        self._out.write(b"\n")

    def _write(self, line: str) -> None:
        self._out.write(f"{line}\n".encode(errors="replace"))


def text_of(fields: Mapping[str, Any]) -> str:
    """Give a row as kafka-dump-log prints it: `name: value name: value`."""
    out = []
    label = None
    for name, value in fields.items():
        if name == _LABEL:
            label = value
            continue
        shown = _optional(value) if name in _OPTIONAL else _text(value)
        out.append(f"{label or name}: {shown}")
        label = None
    return " ".join(out)


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
