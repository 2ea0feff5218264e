"""`klog consume` against the real consumer's account of what a broker wrote."""

from __future__ import annotations

import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from klog.connector.source.row_schema import MAX_TIMESTAMP_MS
from tests.connector.log_dirs import write_log
from tests.corpus import LONGEST_VALUE_KEPT_BYTES, SCENES, Digest, Record, scene
from tests.support import batch_bytes
from tests.support.klog_command import Klog
from tests.support.legacy_bytes import wrapper

TYPES = ("CreateTime", "LogAppendTime")


def as_bytes(printed: str | dict[str, str] | None) -> bytes | None:
    if printed is None or isinstance(printed, str):
        return None if printed is None else printed.encode()
    return b64decode(printed["base64"])


def printed_record(printed: dict[str, Any]) -> tuple[Any, ...]:
    value = as_bytes(printed["value"])
    if value is not None and len(value) > LONGEST_VALUE_KEPT_BYTES:
        expected_value: Any = Digest(sha256(value).hexdigest(), len(value))
    else:
        expected_value = value
    headers = tuple((h["key"], as_bytes(h["value"])) for h in printed["headers"])
    position = (printed["topic"], printed["partition"], printed["offset"])
    return (
        *position,
        printed["timestamp"],
        printed["timestampType"],
        as_bytes(printed["key"]),
        expected_value,
        headers,
    )


def expected_record(consumed: Record) -> tuple[Any, ...]:
    time = max(consumed.timestamp, -MAX_TIMESTAMP_MS)
    position = (consumed.topic, consumed.partition, consumed.offset)
    return (
        *position,
        time,
        TYPES[consumed.timestamp_type],
        consumed.key,
        consumed.value,
        consumed.headers,
    )


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("name", SCENES)
def test_every_record_is_that_of_the_real_consumer(on_scene: Klog, name: str, level: str) -> None:
    printed: list[tuple[Any, ...]] = []
    for topic in sorted({topic for topic, _ in scene(name).partitions()}):
        result = on_scene(name, "consume", f"--topic={topic}", "--json", "--isolation-level", level)
        assert (result.code, result.err) == (0, "")
        printed += [printed_record(json.loads(line)) for line in result.out.splitlines()]
    assert printed == [
        expected_record(expected)
        for expected in scene(name).records()
        if expected.read_committed or level == "read_uncommitted"
    ]


SEGMENTS = [(0, offset) for offset in range(200)] + [(1, offset) for offset in range(40)]
FIRST_MS = 1_704_067_200_000  # records are a second apart

WINDOWS: list[tuple[list[str], list[tuple[int, int]]]] = [
    ([], SEGMENTS),
    (["--from-beginning"], SEGMENTS),
    (["-o", "beginning"], SEGMENTS),
    (["--offset", "earliest", "--partition", "1"], [(1, o) for o in range(40)]),
    (["-o", "end"], []),
    (["--offset", "LATEST"], []),
    (["-o", "37"], [(0, o) for o in range(37, 200)] + [(1, o) for o in range(37, 40)]),
    (["-o", "-3"], [(0, 197), (0, 198), (0, 199), (1, 37), (1, 38), (1, 39)]),
    (["-o", "-50", "--partition", "1"], [(1, o) for o in range(40)]),
    (["-o", "-0"], []),
    (["-o", "200", "--partition", "0"], []),
    (["-c", "2"], [(0, 0), (0, 1)]),
    (["--max-messages", "2", "-o", "199", "--partition", "0"], [(0, 199)]),
    (["-c", "0"], []),
    (["-o", f"s@{FIRST_MS + 38_001}"], [(0, o) for o in range(39, 200)] + [(1, 39)]),
    (["-o", f"e@{FIRST_MS + 2_000}"], [(0, 0), (0, 1), (1, 0), (1, 1)]),
    (
        ["-o", f"s@{FIRST_MS + 38_000}", "-o", f"e@{FIRST_MS + 39_000}"],
        [(0, 38), (1, 38)],
    ),
    (["-o", "s@1", "-o", "e@0"], []),
    (["-o", "s@99999999999999"], []),
]


@pytest.mark.parametrize(("arguments", "expected"), WINDOWS)
def test_windows(on_scene: Klog, arguments: list[str], expected: list[tuple[int, int]]) -> None:
    result = on_scene("records", "consume", "--topic", "segments", "-f", r"%p %o\n", *arguments)
    assert (result.code, result.err) == (0, "")
    assert result.out == b"".join(b"%d %d\n" % place for place in expected)


def test_the_last_offsets_are_those_that_are_kept(on_scene: Klog) -> None:
    result = on_scene("records", "consume", "--topic", "trimmed", "-f", r"%p %o\n", "-o", "-124")
    assert result.out == b"".join(
        [b"0 %d\n" % o for o in range(76, 200)] + [b"1 %d\n" % o for o in range(77, 200)]
    )


def test_values_are_the_default_and_null_is_printed(on_scene: Klog) -> None:
    result = on_scene("records", "consume", "--topic", "nulls", "-o", "e@9223372036854775807")
    values = [
        expected.value for expected in scene("records").records() if expected.topic == "nulls"
    ]
    assert None in values
    assert result.out == b"".join(
        b"%s\n" % (b"null" if value is None else value)
        for value in values
        if not isinstance(value, Digest)
    )


def test_properties_are_taken_one_by_one(on_scene: Klog) -> None:
    result = on_scene(
        "records", "consume", "--topic", "segments", "-c", "1", "--property", "print.key=true",
        "--formatter-property", "key.separator==", "--property", "print.offset=true",
    )  # fmt: skip
    assert result.out == b"Offset:0=k00000=v00000-.................\n"


@pytest.mark.parametrize(
    ("magic", "console", "kind", "timestamp"),
    [(0, "NO_TIMESTAMP", "NoTimestampType", -1), (1, "CreateTime:1001", "CreateTime", 1001)],
)
def test_older_formats(
    klog: Klog, tmp_path: Path, magic: int, console: str, kind: str, timestamp: int
) -> None:
    # Kafka's `DefaultMessageFormatter` and `TimestampType`: a record of v0 has no time.
    records = [batch_bytes.Record(0, 1000, b"k", b"one"), batch_bytes.Record(1, 1001, b"k", b"two")]
    write_log(tmp_path, {0: [wrapper(records, magic, batch_bytes.GZIP)]})
    common = ("consume", "--root", str(tmp_path), "--topic", "t", "-o", "1")
    result = klog(*common, "--property", "print.timestamp=true")
    assert result.out == b"%s\ttwo\n" % console.encode()
    printed = json.loads(klog(*common, "--json").out)
    assert (printed["offset"], printed["timestampType"], printed["timestamp"]) == (
        1,
        kind,
        timestamp,
    )


def test_an_offset_that_is_not_kept_is_refused(on_scene: Klog) -> None:
    result = on_scene("records", "consume", "--topic", "trimmed", "--partition", "1", "-o", "76")
    assert (result.code, result.out) == (1, b"")
    assert result.err.startswith(
        "klog: trimmed-1: offset 76 is out of range; the log has 77 to 200."
    )


def test_an_unknown_topic_is_refused_with_those_that_exist(on_scene: Klog) -> None:
    result = on_scene("jbod", "consume", "--topic", "spraed")
    assert (result.code, result.out) == (1, b"")
    assert "there is no topic spraed; the topics here are" in result.err
    assert "spread" in result.err


def test_an_unknown_partition_is_refused_with_those_that_exist(on_scene: Klog) -> None:
    result = on_scene("jbod", "consume", "--topic", "spread", "--partition", "6")
    assert result.code == 1
    assert "there is no partition 6 of topic spread. Use one of 0, 1, 2, 3, 4, 5" in result.err


USAGE = [
    (["--topic", "x", "-o", "stored"], "must be one of earliest, beginning, latest"),
    (["--topic", "x", "-o", "1", "-o", "2"], "give at most one start and one end"),
    (["--topic", "x", "-o", "1", "--from-beginning"], "not allowed with argument"),
    (["--topic", "x", "-f", "%q"], "%q: must be one of"),
    (["--topic", "x", "-f", "%s", "--json"], "not allowed with argument"),
    (["--topic", "x", "--property", "print.key"], "'print.key' is not NAME=VALUE"),
    (["--topic", "x", "--property", "print.keys=true"], "print.keys: must be one of"),
    (["--topic", "x", "-o", "s@9999999999999999999"], "must be one of earliest, beginning"),
    (
        ["--topic", "x", "--partition", "-1"],
        "must be the number of a partition, from 0 to 2147483647, got '-1'",
    ),
    (["--topic", "x", "-c", "many"], "must be a number of records from 0, got 'many'"),
    (["--topic", "x", "--isolation-level", "serializable"], "invalid choice"),
    (["--topic", "x", "--isolation-levl", "read_committed"], "did you mean --isolation-level?"),
    (["--topic", "x", "--part", "0"], "did you mean --partition?"),
    ([], "required: -t/--topic"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage(on_scene: Klog, arguments: list[str], message: str) -> None:
    result = on_scene("records", "consume", *arguments)
    assert (result.code, result.out) == (2, b"")
    assert result.err.startswith("usage: klog consume")
    assert message in result.err
