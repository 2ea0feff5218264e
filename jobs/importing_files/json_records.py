"""Records as `klog consume --json` prints them, a line each.

The rule: what it printed becomes the same record again. Bytes outside UTF-8 are base64, in an
object. Each line has a field `value`, maybe null; others may be missing.
"""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from klog.jobs.importing_files.line_blocks import Numbers
from klog.jobs.importing_files.line_objects import Number, convert_lines, try_parse
from klog.jobs.importing_files.named_fields import check_values

_HEADER = pa.struct([("key", pa.string()), ("value", pa.string())])
_TEXTS = pa.schema(
    [
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(_HEADER)),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
    ]
)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_BYTES = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
    ]
)
_KIND = "a record of `klog consume --json`"
_BITS = {"timestamp": 64, "partition": 32}


def read_records(lines: pa.Array, numbers: Numbers) -> pa.RecordBatch:
    """Return records as columns of a write.

    Args:
        lines: The lines.
        numbers: Their numbers.

    Raises:
        KlogError: A line is not a record; the message has its number.
    """
    table = try_parse(lines, _TEXTS)
    if table is None:  # Some have bytes as base64, or a line is wrong.
        records = list(convert_lines(lines, numbers, _record, _KIND))
        table = pa.Table.from_pylist(records, _BYTES)
    columns = {name: table[name].combine_chunks() for name in _BYTES.names}
    check_values(columns["value"], lines, numbers, "value")
    columns["headers"] = columns["headers"].cast(_HEADERS)
    columns["timestamp"] = columns["timestamp"].cast(pa.timestamp("ms", "UTC"))
    return pa.RecordBatch.from_pydict(columns)


def _record(record: dict[str, Any]) -> dict[str, Any]:
    return {
        "key": _bytes(record.get("key")),
        "value": _bytes(record.get("value")),
        "headers": _headers(record.get("headers")),
        **{name: _whole(record.get(name), bits) for name, bits in _BITS.items()},
    }


def _headers(headers: Any) -> list[dict[str, Any]] | None:
    if headers is None:
        return None
    if not isinstance(headers, list):
        raise TypeError("headers must be a list")
    return [{"key": _name(header["key"]), "value": _bytes(header["value"])} for header in headers]


def _name(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, Number):
        raise TypeError("the key of a header must be text")
    value.encode()
    return value


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, Number):
        return value.encode()
    if not isinstance(value, dict) or set(value) != {"base64"}:
        raise ValueError("key, value and headers must be text, null or base64")
    return base64.b64decode(value["base64"], validate=True)


def _whole(value: Any, bits: int) -> int | None:
    if value is None:
        return None
    is_whole = isinstance(value, Number) and len(value) < 20 and value.lstrip("-").isdigit()
    if not is_whole or int(value).bit_length() >= bits:
        raise ValueError("timestamp and partition must be whole numbers")
    return int(value)
