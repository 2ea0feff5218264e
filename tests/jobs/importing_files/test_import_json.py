"""JSON lines into topics: what fields become what, and what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from klog.cli import main
from klog.connector.embedded import Log
from klog.errors import KlogError
from klog.jobs.importing_files import (
    line_blocks,
)
from tests.jobs.file_rows import hour_table, log_rows
from tests.jobs.importing_files.imported_rows import records, run, same

DEEP = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"


def test_json_fields(log: Log, source: Path) -> None:
    (source / "a.json").write_text(
        '{"id":"x","at":"2025-01-02T03:04:05.678Z","v":{"a":[1,null]}}\n'
        '{"id":"2020-01-01 00:00:00","at":"2025-01-02T03:04:05","v":{"a":[]}}\n'
        '{"id":null,"at":null,"v":null}\n'
    )
    (source / "b.json").write_text('{"id":7,"at":1735787045678,"v":true}\n')
    run(source, key="id", value="v", timestamp="at")
    rows = records(source, "key", "value", "timestamp")
    at_ms = 1_735_787_045_678
    assert [row[:2] for row in rows] == [
        (b"x", b'{"a":[1,null]}'),
        (b"2020-01-01 00:00:00", b'{"a":[]}'),
        (None, None),
        (b"7", b"true"),
    ]
    assert [row[2] for row in rows[:2]] == [at_ms * 1000, (at_ms - 678) * 1000]
    assert rows[3][2] == at_ms * 1000


def test_values_of_a_field_stay_what_they_are(log: Log, source: Path) -> None:
    (source / "a.json").write_text(
        '{"v":{"b": 1.0, "at": "2020-01-01 00:00:00"},"id":1}\n{"id":"x","v":"\\u00e9"}\n'
    )
    (source / "b.json").write_text('{"id":12345678901234567890,"v":{"c":null}}\n')
    run(source, key="id", value="v")
    assert records(source, "key", "value") == [
        (b"1", b'{"b":1.0,"at":"2020-01-01 00:00:00"}'),
        (b"x", "é".encode()),
        (b"12345678901234567890", b'{"c":null}'),
    ]


@pytest.mark.parametrize(
    "numbers",
    [["0", "-20"], ["-0", "0"], ["1.0", "1e2", "0.10", "1E+05"], ["9" * 30, "1e400", "-1e-400"]],
)
def test_a_number_keeps_its_text(log: Log, source: Path, numbers: list[str]) -> None:
    lines = [f'{{"é":{number},"v":[{number},{{"n":{number}}}]}}' for number in numbers]
    (source / "a.json").write_text("\n".join(lines))
    (source / "b.json").write_text(lines[0].replace("é", "\\u00e9"))
    run(source, key="é", value="v")
    expected = [(n.encode(), f'[{n},{{"n":{n}}}]'.encode()) for n in [*numbers, numbers[0]]]
    assert records(source, "key", "value") == expected


def test_a_value_that_is_null_is_a_tombstone_and_a_key_may_be_missing(
    log: Log, source: Path
) -> None:
    (source / "a.json").write_text('{"k":"x","v":null}\n{"v":"y"}\n{"k":null,"v":"z"}\n')
    run(source, key="k", value="v")
    assert records(source, "key", "value") == [(b"x", None), (None, b"y"), (None, b"z")]


@pytest.mark.parametrize(
    ("text", "arguments", "error"),
    [
        ('{"a":1}\n', {"key": "b"}, "line 1 and those after it have no field b"),
        ('{"a":1}{"a":2}\n{"a":1}\n', {"key": "a"}, "line 1 is not a JSON object"),
        ('[{"a":1}]\n', {"key": "a"}, "line 1 is not a JSON object"),
        ('{"a":"x"}\n', {"timestamp": "a"}, "line 1: a is 'x', which is not a time"),
        ('{"a":{"b":1}}\n', {"timestamp": "a"}, "line 1: a is .* which is not a time"),
        ('{"a":1}\n', {"records": True}, "line 1 has no field value"),
        ("null\n", {"key": "a"}, "line 1 is not a JSON object: it is another value"),
        ("null\n", {"records": True}, "line 1 is not a record"),
        ('{"a":"\\ud800"}\n', {"key": "a"}, "line 1 is not a JSON object: .* surrogates"),
        ('{"a":"\\udc00"}\n', {"key": "a"}, "line 1 is not a JSON object: .* surrogates"),
        ('{"a":"\udcff"}\n', {"key": "a"}, "line 1 is not a JSON object: 'utf-8' codec"),
        ('\n{"a":NaN}\n', {"key": "a"}, "line 2 .*: NaN is not a number of JSON"),
        (DEEP, {"key": "a"}, "line 1 is not a JSON object: it is nested too deeply"),
        ('{"a":\n{"b":1}}\n{"a":1}{"a":2}\n', {"key": "a"}, "line 1 is not a JSON object"),
        ('{"a":1}\n{"b":2}\n', {"value": "a"}, "line 2 has no field a. A value that is null"),
        ('{"other":1}\n', {"value": "othr"}, "no field othr; did you mean other"),
        ('{"a":1e30}\n', {"timestamp": "a"}, "line 1: a is '1e30', which is not a time"),
        ('{"a":20260101}\n', {"timestamp": "a"}, "line 1: a is 20260101, which is not a time"),
        ('{"headers":[{"key":"value","value":"x"}]}\n', {"records": True}, "1 has no field value"),
        ('{"value":"x","timestamp":1.5}\n', {"records": True}, "must be whole numbers"),
        (f'{{"value":"x","timestamp":{10**30}}}\n', {"records": True}, "must be whole numbers"),
        (f'{{"value":"x","partition":{2**31}}}\n', {"records": True}, "must be whole numbers"),
        ('{"value":"x","headers":[{"key":"\\ud800","value":""}]}\n', {"records": True}, "line 1"),
        ('{"value":"x","headers":0}\n', {"records": True}, "headers must be a list"),
        ('{"value":"x","key":DEEP}\n'.replace("DEEP", DEEP), {"records": True}, "line 1"),
        ('{"value":1}\n', {"records": True}, "line 1 is not a record of `klog consume --json`"),
        ('{"value":{"x":""}}\n', {"records": True}, "must be text, null or base64"),
        ('{"value":null,"partition":"x"}\n', {"records": True}, "must be whole numbers"),
        (
            '{"value":null,"partition":7}\n',
            {"records": True},
            r"/a\.json: record 1: there is no partition 7",
        ),
    ],
)
def test_wrong_json(
    log: Log, source: Path, text: str, arguments: dict[str, Any], error: str
) -> None:
    (source / "a.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(KlogError, match=error) as raised:
        run(source, **arguments)
    assert "a.json" in str(raised.value)
    assert not records(source, "value")


def test_long_lines_and_blocks(log: Log, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 10)
    values = ["x" * size for size in (1, 25, 9, 10, 11, 40, 3)]
    (source / "a.json").write_text("\r\n".join(["", *values, ""]))
    run(source)
    assert records(source, "value") == [value.encode() for value in values]
    monkeypatch.setattr(line_blocks, "MAX_LINE_BYTES", 20)
    (source / "b.json").write_text("y" * 50)
    with pytest.raises(KlogError, match=r"b\.json: line 1 has more than 20 bytes"):
        run(source)


def test_consume_json_goes_back_as_it_was(
    log: Log, source: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    log.create_topic("from", partitions=3)
    log.append("from", hour_table([0, 1, 0, 2, 5]))
    odd = pa.table(
        {
            "key": pa.array([b"\xff\x00", "é".encode(), b'"\\\n']),
            "value": pa.array([b"", None, b"\x80"]),
            "partition": pa.array([2, 2, 0]),
        }
    )
    log.append("from", odd)
    root = str(source.parent / "root")
    assert (
        main(["consume", "--root", root, "--topic", "from", "-o", "beginning", "-e", "--json"]) == 0
    )
    (source / "a.json").write_bytes(capfdbinary.readouterr().out)
    log.delete_topic("t")
    log.create_topic("t", partitions=3)
    run(source, records=True)
    assert same(log_rows(Path(root), "t")) == same(log_rows(Path(root), "from"))
