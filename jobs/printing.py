"""How commands print: fields with their labels, separated by tabs as Kafka's tools have them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, BinaryIO


def write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    """Print lines."""
    out.writelines(f"{line}\n".encode() for line in lines)


def write_json(out: BinaryIO, value: Any) -> None:
    """Print one JSON value in a line."""
    out.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")


def labelled(fields: Mapping[str, object]) -> str:
    """Give `Label: value` of each field that has one; a value is in one line, whatever it says."""
    return "\t".join(
        f"{label}: {printable(str(value))}" for label, value in fields.items() if value is not None
    )


def configs_text(config: Mapping[str, str | None]) -> str | None:
    """Give configs as kafka-topics does, those that were unset as such; None if there are none."""
    said = (
        f"{name} unset" if text is None else f"{name}={text}"
        for name, text in sorted(config.items())
    )
    return ",".join(said) or None


def printable(text: str) -> str:
    """Escape what would move the cursor or break a line: files on a store may say anything."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def time_text(timestamp_ms: int) -> str:
    """Give a time in ISO 8601, UTC, with milliseconds; a time that no calendar has as it is."""
    try:
        time = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
