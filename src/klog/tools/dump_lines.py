"""What `klog dump` prints: Kafka's lines or one JSON object per line, and findings.

A line is a row of named values. As text it reads as kafka-dump-log prints it, with the type of a
timestamp as the timestamp's name. Findings go to stderr after the last file, under a heading for
each kind, as kafka-dump-log does it; with `--json` each is an object in the output at once. A
finding makes the exit code 1, a notice does not. A row is written before the next is built, because
each may be as large as a batch; the output stream buffers small ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, TypeAlias

from klog.tools.dump_values import Base64, Value, json_chunks, text_chunks

MAX_FINDINGS = 1000
"""Findings kept under one heading; the others are only counted."""

Parts: TypeAlias = "list[str | Value | Base64]"
"""Parts of a line; bytes are shown as text."""

_OPTIONAL = {"deleteHorizonMs", "currentTxnFirstOffset"}
_LABEL = "timestampType"


class Printer:
    """Prints lines, and keeps findings until the end."""

    def __init__(self, out: BinaryIO, as_json: bool) -> None:
        """Print to `out`."""
        self._out = out
        self._json = as_json
        self._findings: dict[str, list[str]] = {}
        self._omitted: dict[str, int] = {}
        self.findings = 0

    def message(self, text: str, kind: str, **values: object) -> None:
        """Print a sentence, or in JSON its values."""
        self._write(self._object(kind, values) if self._json else text)

    def line(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Print one row of values."""
        self._write(self._object(kind, fields) if self._json else format_row(fields))

    def lines(self, kind: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print rows of values."""
        for row in rows:
            self.line(kind, row)

    def records(self, rows: Iterable[tuple[Parts, Mapping[str, Any]]]) -> None:
        """Print records, each from the parts of its text and its values; no parts, no line."""
        for parts, row in rows:
            if self._json:
                self._write_chunks(json_chunks({"kind": "record"} | dict(row)))
            elif parts:
                self._write_chunks(text_chunks(parts))

    def finding(self, heading: str, text: str, file: str, **values: object) -> None:
        """Keep a fault under a heading, or in JSON print it."""
        self.findings += 1
        self.notice(heading, text, file, "finding", **values)

    def notice(
        self, heading: str, text: str, file: str, kind: str = "notice", **values: object
    ) -> None:
        """Keep a remark that need not be a fault under a heading, or in JSON print it."""
        if self._json:
            fields = {"file": file, "what": heading, "text": text}
            self._write(self._object(kind, fields | values))
            return
        where = f"{heading} in {file}"
        lines = self._findings.setdefault(where, [])
        if len(lines) < MAX_FINDINGS:
            lines.append(text)
        else:
            self._omitted[where] = self._omitted.get(where, 0) + 1

    def print_findings(self) -> None:
        """Print findings and notices to stderr."""
        self._out.flush()
        for where, lines in self._findings.items():
            sys.stderr.write(f"{where}\n" + "".join(f"  {line}\n" for line in lines))
            if where in self._omitted:
                sys.stderr.write(f"  and {self._omitted[where]} more\n")

    def _object(self, kind: str, values: Mapping[str, Any]) -> str:
        return "".join(json_chunks({"kind": kind} | dict(values)))

    def _write_chunks(self, chunks: Iterable[str]) -> None:
        for chunk in chunks:
            self._out.write(chunk.encode(errors="replace"))
        self._out.write(b"\n")

    def _write(self, line: str) -> None:
        self._out.write(f"{line}\n".encode(errors="replace"))


def format_row(fields: Mapping[str, Any]) -> str:
    """Return a row as kafka-dump-log prints it: `name: value name: value`."""
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
