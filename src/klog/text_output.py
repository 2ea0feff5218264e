"""How commands print: fields with labels, separated by tabs as in Kafka's tools, or JSON.

The rule: the verbs of `klog.cli`, the tools and the reports of jobs print by these functions, so
this module imports none of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, BinaryIO


def write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    """Write each text as a line in UTF-8; a byte of a file name that is not UTF-8 is escaped.

    Args:
        out: Gets the lines.
        lines: The texts, without line breaks.
    """
    out.writelines(f"{line}\n".encode(errors="backslashreplace") for line in lines)


def write_json(out: BinaryIO, value: Any) -> None:
    """Write one JSON value as a line in UTF-8, with JSON's escapes for what that cannot say.

    Args:
        out: Gets the line.
        value: The value.
    """
    text = json.dumps(value, ensure_ascii=False)
    out.write(text.encode(errors="backslashreplace") + b"\n")


def labelled(fields: Mapping[str, object]) -> str:
    """Return `Label: value` of each field whose value is not None, as one line.

    Args:
        fields: Values by label.
    """
    return "\t".join(
        f"{label}: {printable(str(value))}" for label, value in fields.items() if value is not None
    )


def configs_text(config: Mapping[str, str | None]) -> str | None:
    """Return configs as kafka-topics prints them.

    Args:
        config: Values by name; None for a config that was unset.

    Returns:
        The text, or None if there are no configs.
    """
    texts = (
        f"{name} unset" if value is None else f"{name}={value}"
        for name, value in sorted(config.items())
    )
    return ",".join(texts) or None


def printable(text: str) -> str:
    """Escape characters that move the cursor or break a line: names on a store may have any.

    Args:
        text: The text.
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def time_text(timestamp_ms: int) -> str:
    """Return a time in ISO 8601, UTC, or in milliseconds if no calendar has it.

    Args:
        timestamp_ms: The time, in ms since the epoch.
    """
    try:
        time = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_bytes(value: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as text, or as an object with their base64 if they are not UTF-8.

    Args:
        value: The bytes, or None.
    """
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
