"""`klog.open`: a whole log without Spark, and its Arrow in the hands of others."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid1

import pyarrow as pa
import pytest

import klog
from klog.connector.embedded import Log
from klog.errors import KlogError, OffsetOutOfRangeError, OptionError, UnsupportedFormatError
from tests.corpus import scene

ORDERS = pa.table(
    {
        "key": ["ann", "bob", "ann", "cid"],
        "value": ["1", "2", "3", None],
        "timestamp": pa.array([1, 2, 3, 4], pa.timestamp("s", "UTC")),
    }
)


@pytest.fixture(params=["local", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """Open a root with a topic of four rows, on local disk and in memory."""
    memory = f"memory://{uuid1().hex}"
    made = klog.open(memory if request.param == "memory" else str(tmp_path / "root"))
    made.create_topic("orders", partitions=3)
    made.append("orders", ORDERS)
    return made


def test_what_is_appended_is_scanned(log: Log) -> None:
    rows = log.scan("orders").read_all()
    assert rows.schema.names == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
    ]  # fmt: skip
    told = {(row["key"], row["value"], row["timestamp"].timestamp()) for row in rows.to_pylist()}
    assert told == {(b"ann", b"1", 1), (b"bob", b"2", 2), (b"ann", b"3", 3), (b"cid", None, 4)}
    places = {(row["partition"], row["offset"]) for row in rows.to_pylist()}
    assert len(places) == 4


def test_a_version_that_is_there_is_not_written_again(log: Log) -> None:
    first = log.append("orders", ORDERS, transactional_id="load", transaction_version=7)
    again = log.append("orders", ORDERS, transactional_id="load", transaction_version=7)
    older = log.append("orders", ORDERS, transactional_id="load", transaction_version=6)
    assert (first.is_new, again.is_new, older.is_new) == (True, False, False)
    assert log.scan("orders").read_all().num_rows == 8
    assert len(log.history("orders")) == 3
    log.append("orders", ORDERS, transactional_id="load", transaction_version=8)
    assert log.scan("orders").read_all().num_rows == 12


def test_an_append_says_which_offsets_it_got(log: Log) -> None:
    table = pa.table({"value": ["a", "b", "c"], "partition": pa.array([0, 0, 2])})
    ends = {p.partition: p.log_end for p in log.describe("orders").partitions}
    done = log.append("orders", table)
    assert done.offsets == {0: (ends[0], ends[0] + 2), 2: (ends[2], ends[2] + 1)}
    assert done.version == 2


def test_bounds_are_offsets_of_each_partition_or_times(log: Log) -> None:
    log.create_topic("t", partitions=2)
    times = pa.array([10, 20, 30, 40], pa.timestamp("s", "UTC"))
    table = {"value": list("abcd"), "partition": pa.array([0, 0, 1, 1]), "timestamp": times}
    log.append("t", pa.table(table))

    def read(**bounds: object) -> str:
        found = log.scan("t", columns=["value"], **bounds)  # type: ignore[arg-type]
        return b"".join(found.read_all()["value"].to_pylist()).decode()

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
    ("bounds", "words"),
    [
        ({"start": 3}, "t-0: start is offset 3, but there start can be from 0 to 2. Give one"),
        ({"start": -2}, "t-0: start is offset -2, but there"),
        ({"end": {1: 9}}, "t-1: end is offset 9, but there end can be from 0 to 2"),
        ({"start": 2, "end": 1}, "t-0: start is offset 2, behind end, which is 1"),
        (
            {"start": {1: 2}, "end": datetime(1970, 1, 1, tzinfo=timezone.utc)},
            "t-1: start is offset 2, behind end, which is 0",
        ),
    ],
)
def test_an_offset_that_is_not_there_is_refused_in_the_callers_words(
    log: Log, bounds: dict[str, Any], words: str
) -> None:
    log.create_topic("t", partitions=2)
    log.append("t", pa.table({"value": list("abcd"), "partition": pa.array([0, 0, 1, 1])}))
    with pytest.raises(OffsetOutOfRangeError, match=words) as caught:
        log.scan("t", **bounds)
    assert "Offsets" not in str(caught.value), "those are words of Spark's options"
    assert "failOnDataLoss" not in str(caught.value)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (datetime(2020, 1, 1), "has no time zone"),  # noqa: DTZ001 - that is the point
        ({0: datetime(2020, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({7: 0}, "orders has no partition 7, only 0 to 2"),
        ("latest", "'latest' is neither an offset nor a time"),
        ({0: 1.0}, "1.0 is neither an offset nor a time"),
    ],
)
def test_what_is_no_bound_is_refused(log: Log, bound: Any, words: str) -> None:
    for name in ("start", "end"):
        with pytest.raises(OptionError, match=f"^{name}: .*{words}"):
            log.scan("orders", **{name: bound})


def test_a_topic_that_is_not_there_is_refused(log: Log) -> None:
    with pytest.raises(OptionError, match=r"there is no topic order in .*did you mean orders"):
        log.scan("order", start=99)
    path = str(scene("records").log_dirs[0])
    with pytest.raises(OptionError, match=f"^there is no topic order in {path}"):
        klog.open(path).scan("order")


def test_a_log_that_looked_before_its_root_was_there_finds_it(tmp_path: Path) -> None:
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


def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_time_more_than_an_hour_ahead_is_refused_unless_the_topic_takes_it(log: Log) -> None:
    ahead = datetime.now(timezone.utc) + timedelta(hours=2)
    rows = pa.table({"value": ["x"], "timestamp": pa.array([ahead], pa.timestamp("ms", "UTC"))})
    with pytest.raises(KlogError, match=r"row 0: .*message\.timestamp\.after\.max\.ms"):
        log.append("orders", rows)
    log.alter_config("orders", {"message.timestamp.after.max.ms": str((1 << 63) - 1)})
    assert log.append("orders", rows).is_new


@pytest.mark.parametrize("root", ["", 7, b"events", None])
def test_what_is_no_path_is_refused(root: Any) -> None:
    with pytest.raises(OptionError, match="give a path or a URL"):
        klog.open(root)


def test_numbers_are_taken_where_options_are_texts(log: Log) -> None:
    given: Any = {"retention.ms": 1000}
    assert log.create_topic("t", config=given).config == {"retention.ms": "1000"}
    assert log.alter_config("t", {"segment.ms": 7}).config["segment.ms"] == "7"  # type: ignore[dict-item]
    size: Any = {"batch.size": 1000}
    assert log.append("t", ORDERS, options=size).is_new
    wrong: Any = {"batch.size": True}
    with pytest.raises(OptionError, match=r"batch\.size is 'true'"):
        log.append("t", ORDERS, options=wrong)
    with pytest.raises(OptionError, match="limit is -1"):
        log.history("t", -1)
    assert log.history("t", 0) == []


def test_a_topic_of_a_newer_klog_hides_no_other(tmp_path: Path) -> None:
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


def test_the_columns_are_those_named(log: Log) -> None:
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
    with pytest.raises(OptionError, match="columns: vlaue is none of key, value"):
        log.scan("t", columns=["vlaue"])


def test_topics_are_made_altered_and_deleted(log: Log) -> None:
    made = log.create_topic("t", config={"retention.ms": "1000"})
    assert (made.topic, len(made.partitions), dict(made.config)) == (
        "t", 1, {"retention.ms": "1000"},
    )  # fmt: skip
    assert log.topics() == ["orders", "t"]
    altered = log.alter_config("t", {"cleanup.policy": "compact"}, unset=["retention.ms"])
    assert dict(altered.config) == {"cleanup.policy": "compact"}
    assert len(log.add_partitions("t", 4).partitions) == 4
    with pytest.raises(OptionError, match="is there already"):
        log.create_topic("t")
    log.delete_topic("t")
    assert log.topics() == ["orders"]
    with pytest.raises(OptionError, match="was deleted"):
        log.append("t", ORDERS)
    with pytest.raises(OptionError, match=r"topic t of .* was deleted"):
        log.scan("t")
    assert log.create_topic("t").topic_id != made.topic_id
    assert log.scan("t").read_all().num_rows == 0


def test_a_row_that_cannot_be_written_is_named_and_nothing_lands(log: Log) -> None:
    table = pa.table({"value": ["a", "b"], "partition": pa.array([0, 3])})
    with pytest.raises(KlogError, match="row 1: there is no partition 3"):
        log.append("orders", table)
    assert log.scan("orders").read_all().num_rows == 4
    assert len(log.history("orders")) == 2


def test_a_brokers_directory_is_read_and_never_written() -> None:
    path = scene("records").log_dirs[0]
    before = sorted(one.name for one in path.iterdir())
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
    assert sorted(one.name for one in path.iterdir()) == before


def test_a_place_where_nothing_is_says_so(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no directory"):
        klog.open(str(tmp_path / "none")).topics()
    with pytest.raises(OptionError, match=r"storage\.colour"):
        klog.open("s3://bucket/x", colour="red")


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another, as docs/embedded.md has them; what one prints stands below it."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "embedded.md").read_text()
    names: dict[str, object] = {}
    shown = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", page, re.DOTALL)
    assert len(shown) >= 5
    for code, printed in shown:
        with redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        assert out.getvalue() == printed
