"""`klog offsets` prints what kafka-get-offsets does, `klog count` what a consumer gets."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import klog as klog_package
from tests.corpus import scene
from tests.support.klog_command import Klog

TIMES_MS = (1000, 3000, 2000)


@pytest.fixture
def root(tmp_path: Path) -> str:
    log = klog_package.open(tmp_path / "root")
    log.create_topic("a.orders", 3)
    times = pa.array(TIMES_MS, pa.timestamp("ms", "UTC"))
    table = pa.table({"value": ["x", "y", "z"], "partition": [0, 0, 0], "timestamp": times})
    log.append("a.orders", table)
    log.create_topic("b", 12)
    log.create_topic("gone")
    log.delete_topic("gone")
    return str(tmp_path / "root")


def lines(klog: Klog, *arguments: str) -> list[str]:
    result = klog(*arguments)
    assert (result.code, result.err) == (0, "")
    return result.out.decode().splitlines()


@pytest.mark.parametrize("word", ["earliest", "latest"])
def test_offsets_are_those_that_the_broker_said(on_scene: Klog, word: str) -> None:
    result = on_scene("transactions", "offsets", "--time", word, "--exclude-internal-topics")
    expected = [
        f"{topic}:{partition}:{bounds.earliest if word == 'earliest' else bounds.high_watermark}"
        for (topic, partition), bounds in sorted(scene("transactions").partitions().items())
    ]
    assert (result.code, result.out.decode().splitlines()) == (0, expected)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_counts_are_what_the_consumer_got(on_scene: Klog, level: str) -> None:
    result = on_scene(
        "compacted-again", "count", "--isolation-level", level, "--exclude-internal-topics"
    )
    got = Counter(
        (record.topic, record.partition)
        for record in scene("compacted-again").records()
        if level == "read_uncommitted" or record.read_committed
    )
    expected = [
        f"{topic}:{partition}:{got[topic, partition]}"
        for topic, partition in sorted(scene("compacted-again").partitions())
    ]
    assert (result.code, result.out.decode().splitlines()) == (0, expected)


@pytest.mark.parametrize(
    ("when", "offset"),
    [
        ("latest", 3), ("-1", 3), ("earliest", 0), ("-2", 0), ("earliest-local", 0), ("-4", 0),
        ("max-timestamp", 1), ("-3", 1), ("latest-tiered", None), ("-5", None), ("0", 0),
        ("1001", 1), ("3001", None), ("1970-01-01T00:00:02Z", 1),
    ],
)  # fmt: skip
def test_every_time(klog: Klog, root: str, when: str, offset: int | None) -> None:
    arguments = ("offsets", "--root", root, "--topic-partitions", "a.orders:0", f"--time={when}")
    assert lines(klog, *arguments) == ([] if offset is None else [f"a.orders:0:{offset}"])
    (row,) = json.loads(lines(klog, *arguments, "--json")[0])
    assert row == {"topic": "a.orders", "partition": 0, "offset": offset}


@pytest.mark.parametrize(
    ("arguments", "partitions"),
    [
        ([], [f"a.orders:{n}" for n in range(3)] + [f"b:{n}" for n in range(12)]),
        (["--topic", "a.orders"], ["a.orders:0", "a.orders:1", "a.orders:2"]),
        (["--topic", "b,a", "--partitions", "2,11"], ["b:2", "b:11"]),
        (["--partitions", "2"], ["a.orders:2", "b:2"]),
        (["--topic-partitions", "a.*:1-"], ["a.orders:1", "a.orders:2"]),
        (["--topic-partitions", ":10-,a.orders:-1"], ["a.orders:0", "b:10", "b:11"]),
        (["--topic-partitions", "b:2-4"], ["b:2", "b:3"]),
    ],
)
def test_partitions_are_selected(
    klog: Klog, root: str, arguments: list[str], partitions: list[str]
) -> None:
    printed = lines(klog, "offsets", "--root", root, *arguments)
    assert [line.rpartition(":")[0] for line in printed] == partitions
    assert len(lines(klog, "count", "--root", root, *arguments)) == len(partitions)


@pytest.mark.parametrize(
    ("bounds", "records"),
    [
        ([], 3), (["--start=-2"], 2), (["--end=-1"], 2), (["--start", "latest"], 0),
        (["--start", "1970-01-01T00:00:02Z"], 2), (["--end", "1970-01-01T00:00:02Z"], 1),
        (["--start", '{"a.orders": {"0": 1}}', "--end", '{"a.orders": {"0": 2}}'], 1),
        (["--start", "2100-01-01T00:00:00Z"], 0),
    ],
)  # fmt: skip
def test_counts_between_bounds(klog: Klog, root: str, bounds: list[str], records: int) -> None:
    selection = ("--topic", "a.orders", "--partitions", "0", "--json")
    (line,) = lines(klog, "count", "--root", root, *selection, *bounds)
    assert json.loads(line) == [{"topic": "a.orders", "partition": 0, "records": records}]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["offsets", "--topic", "c"], 1, "no partition matches; the topics here are a.orders, b"),
        (["offsets", "--partitions", "12"], 1, "no partition matches"),
        (["offsets", "--time", "soon"], 1, "--time: must be latest, earliest"),
        (["count", "--start", "soon"], 1, "--start: must be"),
        (["offsets", "--partitions", "x"], 2, "must be numbers of partitions, got 'x'"),
        (["offsets", "--topic", "("], 2, "must be a regular expression"),
        (["offsets", "--topic-partitions", "a:1-2-3"], 2, "must be TOPIC, TOPIC:PARTITION"),
        (["count", "--topic-partitions", "a", "--topic", "a"], 2, "not both"),
    ],
)
def test_mistakes(klog: Klog, root: str, arguments: list[str], code: int, message: str) -> None:
    result = klog(*arguments, "--root", root)
    assert (result.code, result.out) == (code, b"")
    assert message in result.err


def test_a_topic_that_cannot_be_read_is_left_out(klog: Klog, root: str) -> None:
    (Path(root) / "_klog" / "topics" / "b" / "topic.json").write_text('{"format": 99}')
    result = klog("offsets", "--root", root)
    assert result.code == 1
    assert result.out.decode().splitlines() == ["a.orders:0:3", "a.orders:1:0", "a.orders:2:0"]
    assert "klog: warning: b: left out" in result.err


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ('{"a.orders": {"0": 1, "1": 0, "2": 0}}', "klog: warning: b: left out"),
        ('{"a.orders": {"0": 1, "1": 0, "2": 0}, "b": {"0": 1}}', "klog: warning: b: left out"),
        ('{"a.orders": {"0": 1, "1": 0, "2": 0}, "c": {"0": 1}}', "--start: the JSON must name"),
    ],
)
def test_bounds_are_checked_without_a_topic_that_cannot_be_read(
    klog: Klog, root: str, bounds: str, message: str
) -> None:
    (Path(root) / "_klog" / "topics" / "b" / "topic.json").write_text('{"format": 99}')
    result = klog("count", "--root", root, "--start", bounds)
    assert result.code == 1
    assert message in result.err
    counts = [b"a.orders:0:2", b"a.orders:1:0", b"a.orders:2:0"]
    assert result.out.splitlines() == ([] if "c" in json.loads(bounds) else counts)


def test_options_of_a_client_have_no_effect(klog: Klog, root: str) -> None:
    result = klog("offsets", "--root", root, "--bootstrap-server", "x:9092", "--partitions", "2")
    assert (result.code, result.out) == (0, b"a.orders:2:0\nb:2:0\n")
    assert "--bootstrap-server" in result.err


BOTH = '{"a.orders": {"0": 1, "1": 0, "2": 0}, "b": {"0": 0}}'


def test_json_bounds_are_of_all_selected_partitions(klog: Klog, root: str) -> None:
    selected = ("count", "--root", root, "--topic-partitions", "a.orders,b:0")
    assert lines(klog, *selected, "--start", BOTH) == [
        "a.orders:0:2", "a.orders:1:0", "a.orders:2:0", "b:0:0",
    ]  # fmt: skip
    assert lines(klog, *selected, "--start=latest", "--end", BOTH.replace("1", "3", 1))[0].endswith(
        ":0"
    )


@pytest.mark.parametrize("option", ["--start", "--end"])
def test_wrong_json_bounds_are_one_error(klog: Klog, root: str, option: str) -> None:
    result = klog("count", "--root", root, option, BOTH, "--topic", "a.orders,c")
    assert (result.code, result.out) == (1, b"")
    assert result.err == (
        f"klog: {option}: the JSON must name every partition of the read and no other. Remove b-0\n"
    )


def test_one_wrong_offset_leaves_out_one_partition(klog: Klog, root: str) -> None:
    bounds = BOTH.replace("1", "9", 1)
    selected = ("count", "--root", root, "--topic-partitions", "a.orders,b:0")
    result = klog(*selected, "--start", bounds)
    assert (result.code, result.out.decode().splitlines()) == (
        1, ["a.orders:1:0", "a.orders:2:0", "b:0:0"],
    )  # fmt: skip
    assert result.err.startswith("klog: warning: a.orders-0: left out: a.orders-0: --start 9 is")
    result = klog(*selected, "--start=latest", "--end=-1000")
    assert result.code == 1
    assert "a.orders-0: --start 3 is after the end of the read at 0" in result.err
