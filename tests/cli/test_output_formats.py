"""What is printed, byte by byte.

The console forms are what `DefaultMessageFormatter` of kafka-tools 4.2.0 printed for these very
records; kcat's are those of its manual.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from klog.cli.output_formats import Format, console, json_lines, kcat
from klog.connector.source.row_schema import arrow_schema

RECORDS: list[dict[str, Any]] = [
    {
        "key": b"k",
        "value": b"v",
        "offset": 7,
        "timestamp": 1_700_000_000_000_000,
        "timestampType": 0,
        "headers": [
            {"key": "a", "value": b"1"},
            {"key": "b", "value": None},
            {"key": "c", "value": b""},
        ],
    },
    {
        "key": None,
        "value": None,
        "offset": 8,
        "timestamp": -5000,
        "timestampType": 1,
        "headers": None,
    },
    {
        "key": b"",
        "value": b"",
        "offset": 9,
        "timestamp": -5000,
        "timestampType": 0,
        "headers": None,
    },
]

KCAT = [
    ("%s\n", b"v\nNULL\n\n"),
    ("%k=%s;", b"k=v;NULL=NULL;=;"),
    ("%t[%p] at %o\n", b"t[1] at 7\nt[1] at 8\nt[1] at 9\n"),
    ("%T ", b"1700000000000 -5 -5 "),
    ("%h|", b"a=1,b=NULL,c=|||"),
    ("%K,%S ", b"1,1 -1,-1 0,0 "),
    ("%R", b"\0\0\0\1\xff\xff\xff\xff\0\0\0\0"),
    (r"%o\t\r\n\x00\x7C\xff\\", b"7\t\r\n\0|\xff\\8\t\r\n\0|\xff\\9\t\r\n\0|\xff\\"),
    ("100%% ü ", "100% ü ".encode() * 3),
    ("-", b"---"),
    ("", b""),
]

CONSOLE: list[tuple[dict[str, str], bytes]] = [
    ({}, b"v\nnull\n\n"),
    ({"print.key": "true"}, b"k\tv\nnull\tnull\n\t\n"),
    ({"print.key": "true", "print.value": "false"}, b"k\nnull\n\n"),
    ({"print.value": "false"}, b""),
    (
        {f"print.{x}": "TRUE" for x in ("timestamp", "partition", "offset", "headers", "key")},
        b"CreateTime:1700000000000\tPartition:1\tOffset:7\ta:1,b:null,c:\tk\tv\n"
        b"LogAppendTime:-5\tPartition:1\tOffset:8\tNO_HEADERS\tnull\tnull\n"
        b"CreateTime:-5\tPartition:1\tOffset:9\tNO_HEADERS\t\t\n",
    ),
    (
        {
            "print.headers": "true",
            "print.key": "true",
            "key.separator": "|",
            "line.separator": ";",
            "headers.separator": "#",
            "null.literal": "<n>",
        },
        b"a:1#b:<n>#c:|k|v;NO_HEADERS|<n>|<n>;NO_HEADERS||;",
    ),
]


def printed(output_format: Format) -> bytes:
    """Print RECORDS with only the columns that the format needs."""
    schema = arrow_schema(output_format.columns)
    rows = [{"topic": "t", "partition": 1, **record} for record in RECORDS]
    return output_format.encode(pa.RecordBatch.from_pylist(rows, schema=schema))


@pytest.mark.parametrize(("text", "expected"), KCAT)
def test_kcat_formats(text: str, expected: bytes) -> None:
    assert printed(kcat(text)) == expected


@pytest.mark.parametrize(("properties", "expected"), CONSOLE)
def test_console_properties(properties: dict[str, str], expected: bytes) -> None:
    assert printed(console(properties)) == expected


def test_only_what_is_printed_is_decoded() -> None:
    assert kcat("%o %p\n").columns == ("partition", "offset")
    assert console({}).columns == ("value",)


def test_json_of_null_text_and_other_bytes() -> None:
    lines = [json.loads(line) for line in printed(json_lines()).splitlines()]
    assert lines[0] == {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp": 1_700_000_000_000,
        "timestampType": "CreateTime",
        "headers": [
            {"key": "a", "value": "1"},
            {"key": "b", "value": None},
            {"key": "c", "value": ""},
        ],
        "key": "k",
        "value": "v",
    }
    assert [(row["key"], row["value"]) for row in lines[1:]] == [(None, None), ("", "")]
    schema = arrow_schema(json_lines().columns)
    record = {**RECORDS[0], "topic": "t", "partition": 1, "value": b"\xff\0"}
    output = json_lines().encode(pa.RecordBatch.from_pylist([record], schema=schema))
    assert json.loads(output)["value"] == {"base64": "/wA="}


@pytest.mark.parametrize(
    ("text", "message"), [("%q\n", "%q: must be one of %t %p"), ("100%", "%: must be one of")]
)
def test_a_letter_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kcat(text)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"print.keys": "true"}, "print.keys: must be one of print.timestamp"),
        ({"print.key": "yes"}, "print.key: must be true or false, got 'yes'"),
    ],
)
def test_a_property_that_means_nothing_is_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        console(properties)
