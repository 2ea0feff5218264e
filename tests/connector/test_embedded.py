"""`klog.open`: topics are created, written and read without Spark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid1

import numpy as np
import pyarrow as pa
import pytest

import klog
from klog.connector.embedded import Log
from klog.errors import KlogError, OffsetOutOfRangeError, OptionError, UnsupportedFormatError
from tests.corpus import scene
from tests.support.project import PROJECT

ORDERS = pa.table(
    {
        "key": ["ann", "bob", "ann", "cid"],
        "value": ["1", "2", "3", None],
        "timestamp": pa.array([1, 2, 3, 4], pa.timestamp("s", "UTC")),
    }
)


@pytest.fixture(params=["local", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """Return a root with a topic of four rows, on local disk and in memory."""
    memory = f"memory://{uuid1().hex}"
    log = klog.open(memory if request.param == "memory" else str(tmp_path / "root"))
    log.create_topic("orders", partitions=3)
    log.append("orders", ORDERS)
    return log


def test_appended_rows_are_scanned(log: Log) -> None:
    rows = log.scan("orders").read_all()
    assert rows.schema.names == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
    ]  # fmt: skip
    records = {(row["key"], row["value"], row["timestamp"].timestamp()) for row in rows.to_pylist()}
    assert records == {(b"ann", b"1", 1), (b"bob", b"2", 2), (b"ann", b"3", 3), (b"cid", None, 4)}
    positions = {(row["partition"], row["offset"]) for row in rows.to_pylist()}
    assert len(positions) == 4


def test_committed_version_is_not_written_again(log: Log) -> None:
    first = log.append("orders", ORDERS, transactional_id="load", transaction_version=7)
    again = log.append("orders", ORDERS, transactional_id="load", transaction_version=7)
    older = log.append("orders", ORDERS, transactional_id="load", transaction_version=6)
    assert (first.is_new, again.is_new, older.is_new) == (True, False, False)
    assert log.scan("orders").read_all().num_rows == 8
    assert len(log.history("orders")) == 3
    log.append("orders", ORDERS, transactional_id="load", transaction_version=8)
    assert log.scan("orders").read_all().num_rows == 12


def test_append_returns_the_offsets_of_its_rows(log: Log) -> None:
    table = pa.table({"value": ["a", "b", "c"], "partition": pa.array([0, 0, 2])})
    ends = {p.partition: p.log_end for p in log.describe("orders").partitions}
    result = log.append("orders", table)
    assert result.offsets == {0: (ends[0], ends[0] + 2), 2: (ends[2], ends[2] + 1)}
    assert result.version == 2


def test_bounds_may_be_offsets_or_times_for_all_partitions_or_each(log: Log) -> None:
    log.create_topic("t", partitions=2)
    times = pa.array([10, 20, 30, 40], pa.timestamp("s", "UTC"))
    table = {"value": list("abcd"), "partition": pa.array([0, 0, 1, 1]), "timestamp": times}
    log.append("t", pa.table(table))

    def read(**bounds: object) -> str:
        reader = log.scan("t", columns=["value"], **bounds)  # type: ignore[arg-type]
        return b"".join(reader.read_all()["value"].to_pylist()).decode()

    def at(second: int) -> datetime:
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=second)

    assert read() == "abcd"
    assert read(start=1) == "bd"
    assert read(end=1) == "ac"
    assert read(start={1: 1}) == "abd"
    assert read(end={0: 0}) == "cd"
    assert read(start=at(20)) == "bcd"
    assert read(start=at(20), end=at(40)) == "bc"
    assert read(start=at(41)) == ""
    assert read(start={0: at(20)}, end={1: at(40)}) == "bc"
    assert read(start=2) == ""


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"start": 3}, "t-0: start 3 is out of range; start can be from 0 to 2. Give one"),
        ({"start": -2}, "t-0: start -2 is out of range"),
        ({"end": {1: 9}}, "t-1: end 9 is out of range; end can be from 0 to 2"),
        ({"start": 2, "end": 1}, "t-0: start 2 is after end 1"),
        (
            {"start": {1: 2}, "end": datetime(1970, 1, 1, tzinfo=timezone.utc)},
            "t-1: start 2 is after end 0",
        ),
    ],
)
def test_offset_out_of_range_error_names_the_parameter(
    log: Log, bounds: dict[str, Any], message: str
) -> None:
    log.create_topic("t", partitions=2)
    log.append("t", pa.table({"value": list("abcd"), "partition": pa.array([0, 0, 1, 1])}))
    with pytest.raises(OffsetOutOfRangeError, match=message) as caught:
        log.scan("t", **bounds)
    assert "Offsets" not in str(caught.value), "those are Spark's options"
    assert "failOnDataLoss" not in str(caught.value)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (datetime(2020, 1, 1), "has no time zone"),  # noqa: DTZ001 - the subject of the test
        ({0: datetime(2020, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({7: 0}, "orders has no partition 7, only 0 to 2"),
        ("latest", "must be an offset, .*got 'latest'"),
        ({0: 1.0}, "must be an offset, .*got 1.0"),
    ],
)
def test_invalid_bound_is_refused(log: Log, bound: Any, message: str) -> None:
    for name in ("start", "end"):
        with pytest.raises(OptionError, match=f"^{name}: .*{message}"):
            log.scan("orders", **{name: bound})


def test_scan_of_a_missing_topic_is_refused(log: Log) -> None:
    with pytest.raises(OptionError, match=r"there is no topic order in .*did you mean orders"):
        log.scan("order", start=99)
    path = str(scene("records").log_dirs[0])
    with pytest.raises(OptionError, match=f"^there is no topic order in {path}"):
        klog.open(path).scan("order")


def test_log_opened_before_its_root_was_created_reads_it(tmp_path: Path) -> None:
    early = klog.open(tmp_path)
    assert early.topics() == []
    missing = klog.open(tmp_path / "root")
    with pytest.raises(OptionError, match="there is no directory"):
        missing.topics()
    for root in (tmp_path, tmp_path / "root"):
        klog.open(root).create_topic("orders")
        klog.open(root).append("orders", ORDERS)
    for log in (early, missing):
        assert log.topics() == ["orders"]
        assert log.scan("orders").read_all().num_rows == 4


def test_relative_path_is_resolved_when_the_log_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    log = klog.open("events")
    log.create_topic("orders")
    log.append("orders", ORDERS)
    rows = log.scan("orders")
    monkeypatch.chdir(tmp_path / "there")
    assert rows.read_all().num_rows == 4
    assert log.append("orders", ORDERS).version == 2
    log.create_topic("more")
    assert not list((tmp_path / "there").iterdir())
    with pytest.raises(OptionError, match=f"{tmp_path}/here/events"):
        log.scan("none")


def test_timestamp_an_hour_ahead_is_rejected_unless_the_topic_allows_it(log: Log) -> None:
    ahead = datetime.now(timezone.utc) + timedelta(hours=2)
    rows = pa.table({"value": ["x"], "timestamp": pa.array([ahead], pa.timestamp("ms", "UTC"))})
    with pytest.raises(KlogError, match=r"row 0: .*message\.timestamp\.after\.max\.ms"):
        log.append("orders", rows)
    log.alter_config("orders", {"message.timestamp.after.max.ms": str((1 << 63) - 1)})
    assert log.append("orders", rows).is_new


@pytest.mark.parametrize("root", ["", 7, b"events", None])
def test_invalid_path_is_refused(root: Any) -> None:
    with pytest.raises(OptionError, match="must be a path or a URL"):
        klog.open(root)


def test_option_values_may_be_numbers(log: Log) -> None:
    config: Any = {"retention.ms": 1000}
    assert log.create_topic("t", config=config).config == {"retention.ms": "1000"}
    assert log.alter_config("t", {"segment.ms": 7}).config["segment.ms"] == "7"  # type: ignore[dict-item]
    options: Any = {"batch.size": 1000}
    assert log.append("t", ORDERS, options=options).is_new
    wrong_options: Any = {"batch.size": True}
    with pytest.raises(OptionError, match=r"batch\.size: must be a number of bytes.*got 'true'"):
        log.append("t", ORDERS, options=wrong_options)
    with pytest.raises(OptionError, match=r"limit: must be .* got -1"):
        log.history("t", -1)
    assert log.history("t", 0) == []


def test_topic_of_a_newer_klog_does_not_hide_others(tmp_path: Path) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic("orders")
    newer = tmp_path / "root" / "_klog" / "topics" / "newer" / "topic.json"
    newer.parent.mkdir()
    newer.write_text('{"format": 99, "since": "9.0"}')
    log.create_topic("gone")
    log.delete_topic("gone")
    assert log.topics() == klog.open(tmp_path / "root").topics() == ["newer", "orders"]
    with pytest.raises(UnsupportedFormatError, match=r"newer/topic\.json.*9\.0"):
        log.scan("newer")


def test_scan_returns_the_named_columns(log: Log) -> None:
    table = pa.table(
        {
            "value": ["x"],
            "headers": pa.array(
                [[{"key": "h", "value": b"1"}]],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    log.create_topic("t")
    log.append("t", table)
    rows = log.scan("t", columns=["headers", "offset"]).read_all()
    assert rows.to_pylist() == [{"headers": [{"key": "h", "value": b"1"}], "offset": 0}]
    with pytest.raises(
        OptionError, match=r"columns: there is no column 'vlaue'\. Choose from key, value"
    ):
        log.scan("t", columns=["vlaue"])


def test_topics_are_created_altered_and_deleted(log: Log) -> None:
    created = log.create_topic("t", config={"retention.ms": "1000"})
    assert (created.topic, len(created.partitions), dict(created.config)) == (
        "t", 1, {"retention.ms": "1000"},
    )  # fmt: skip
    assert log.topics() == ["orders", "t"]
    altered = log.alter_config("t", {"cleanup.policy": "compact"}, unset=["retention.ms"])
    assert dict(altered.config) == {"cleanup.policy": "compact"}
    assert len(log.add_partitions("t", 4).partitions) == 4
    with pytest.raises(OptionError, match="already exists"):
        log.create_topic("t")
    log.delete_topic("t")
    assert log.topics() == ["orders"]
    with pytest.raises(OptionError, match="was deleted"):
        log.append("t", ORDERS)
    with pytest.raises(OptionError, match=r"topic t of .* was deleted"):
        log.scan("t")
    assert log.create_topic("t").topic_id != created.topic_id
    assert log.scan("t").read_all().num_rows == 0


@pytest.mark.parametrize("number", ["3", 2.0, True, -1])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("partitions", lambda log, number: log.add_partitions("t", number)),
        ("partitions", lambda log, number: log.create_topic("u", partitions=number)),
        ("version", lambda log, number: log.restore("t", number)),
        ("limit", lambda log, number: log.history("t", number)),
    ],
)
def test_what_is_no_whole_number_is_refused(
    log: Log, name: str, call: Callable[[Log, Any], object], number: object
) -> None:
    log.create_topic("t", partitions=1)
    with pytest.raises(OptionError, match=f"{name}: must be a whole number from"):
        call(log, number)
    assert log.topics() == ["orders", "t"]


def test_numbers_of_numpy_are_whole_numbers(log: Log) -> None:
    log.create_topic("t", partitions=np.int64(2))
    assert log.restore("t", np.int32(0)).version == 0


def test_rejected_row_is_named_and_nothing_is_committed(log: Log) -> None:
    table = pa.table({"value": ["a", "b"], "partition": pa.array([0, 3])})
    with pytest.raises(KlogError, match="row 1: there is no partition 3"):
        log.append("orders", table)
    assert log.scan("orders").read_all().num_rows == 4
    assert len(log.history("orders")) == 2


def test_brokers_directory_is_read_and_never_written() -> None:
    path = scene("records").log_dirs[0]
    before = sorted(file.name for file in path.iterdir())
    log = klog.open(str(path))
    assert log.topics()
    rows = sum(log.scan(topic).read_all().num_rows for topic in log.topics())
    assert rows
    for write in (
        lambda: log.append(log.topics()[0], ORDERS),
        lambda: log.create_topic("mine"),
        lambda: log.delete_topic(log.topics()[0]),
    ):
        with pytest.raises(OptionError, match=r"klog root|broker's files"):
            write()
    assert sorted(file.name for file in path.iterdir()) == before


def test_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no directory"):
        klog.open(str(tmp_path / "none")).topics()
    with pytest.raises(OptionError, match=r"storage\.colour"):
        klog.open("s3://bucket/x", colour="red")


def test_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of docs/embedded.md, which has the output of each below it."""
    monkeypatch.chdir(tmp_path)
    page = (PROJECT / "docs" / "embedded.md").read_text()
    names: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", page, re.DOTALL)
    assert len(examples) >= 5
    for code, output in examples:
        with redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        assert out.getvalue() == output
