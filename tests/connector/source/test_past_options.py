"""`asOfVersion` and `asOfTimestamp` as Spark hands them over, without Spark."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import klog
from klog.connector.datasource import KlogDataSource
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import load_plan
from klog.connector.source.batch_reader import KlogBatchReader
from klog.errors import KlogError, OptionError
from klog.jobs import merge, vacuum
from tests.connector.log_dirs import many, write_log


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Make two topics: version N of `t` has N values; `other` has one."""
    log = klog.open(tmp_path / "root")
    for topic, count in (("t", 4), ("other", 1)):
        log.create_topic(topic)
        for number in range(count):
            log.append(topic, pa.table({"value": [f"{topic} {number}"]}))
    return str(tmp_path / "root")


def reader_of(path: str, **options: str) -> KlogBatchReader:
    """Return the reader that Spark's second process gets."""
    source = KlogDataSource({"path": path, "subscribe": "t"} | options)
    source.schema()
    again: KlogDataSource = pickle.loads(pickle.dumps(source))
    return again.reader(StructType())


def values(reader: KlogBatchReader) -> list[str]:
    task_reader: Any = pickle.loads(pickle.dumps(reader))
    tasks: list[Any] = reader.partitions()
    batches = [batch for task in tasks for batch in task_reader.read(task)]
    return [value.decode() for batch in batches for value in batch["value"].to_pylist()]


def numbered(count: int) -> list[str]:
    return [f"t {number}" for number in range(count)]


@pytest.mark.parametrize("max_bytes", [load_plan.MAX_BYTES, 0])
def test_a_version_is_read(path: str, max_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klog.connector.source.scan_planner.MAX_BYTES", max_bytes)
    for version in range(5):
        assert values(reader_of(path, asOfVersion=str(version))) == numbered(version)
    assert values(reader_of(path, asOfVersion="4", startingOffsets="-2")) == numbered(4)[2:]
    bounded = reader_of(path, asOfVersion="3", endingOffsets='{"t": {"0": 2}}')
    assert values(bounded) == numbered(2)
    assigned = {"assign": '{"t": [0]}', "asOfVersion": "2", "isolationLevel": "read_uncommitted"}
    source = KlogDataSource({"path": path, **assigned})
    source.schema()
    assert values(source.reader(StructType())) == numbered(2)


@pytest.mark.parametrize("max_bytes", [load_plan.MAX_BYTES, 0])
def test_a_time_is_resolved_at_load(
    path: str, max_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klog.connector.source.scan_planner.MAX_BYTES", max_bytes)
    times = {commit.version: commit.timestamp_ms for commit in klog.open(path).history("t")}
    readers = [reader_of(path, asOfTimestamp=str(times[version])) for version in range(5)]
    future = reader_of(path, asOfTimestamp="2100-01-01T00:00:00Z")
    now = reader_of(path, asOfTimestamp="now")
    klog.open(path).append("t", pa.table({"value": ["later"]}))
    assert [values(reader) for reader in readers] == [numbered(version) for version in range(5)]
    assert values(future) == values(now) == numbered(4)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"asOfVersion": "9"}, "asOfVersion: topic t has no version 9: those that can be loaded"),
        ({"asOfVersion": "-1"}, "asOfVersion: must be a whole number from 0, got '-1'"),
        ({"asOfVersion": "last"}, "asOfVersion: must be a whole number from 0, got 'last'"),
        ({"asOfTimestamp": "0"}, "asOfTimestamp: topic t has no version at 1970-01-01T00:00:00"),
        ({"asOfTimestamp": "now-1d"}, "asOfTimestamp: topic t has no version at 20"),
        ({"asOfTimestamp": "-1"}, "asOfTimestamp: must be a time in ms since 1970, an age such as"),
        ({"asOfTimestamp": "2026-11-01T00:00:00"}, "it has no time zone, such as Z"),
        (
            {"asOfVersion": "1", "asOfTimestamp": "now"},
            "asOfVersion, asOfTimestamp: must set at most one, got both",
        ),
        ({"versionAsOf": "1"}, "versionasof: unknown read option. Did you mean asOfVersion?"),
        (
            {"versionAsOf": "1"},
            "It is for spark.read; a stream starts where startingOffsets or startingTimestamp says",
        ),
        ({"timestampAsOf": "1"}, "timestampasof: unknown read option. Did you mean asOfTimestamp?"),
        (
            {"asOfVersion": "1", "subscribe": "t,other"},
            "asOfVersion: must be of one topic, as each topic has versions of its own, and this "
            "read subscribes to other, t",
        ),
        ({"asOfVersion": "2", "startingOffsets": '{"t": {"0": 3}}'}, "the log has offsets 0 to 2"),
    ],
)
def test_what_is_refused(path: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(KlogError) as caught:
        reader_of(path, **options).partitions()
    assert reason in str(caught.value)


def test_a_pattern_may_find_one_topic(path: str) -> None:
    options = {"path": path, "asOfVersion": "2"}
    for pattern, expected in (("^t$", numbered(2)), (".*", None), ("x", None)):
        source = KlogDataSource(options | {"subscribePattern": pattern})
        source.schema()
        reader = source.reader(StructType())
        if expected is not None:
            assert values(reader) == expected
            continue
        with pytest.raises(OptionError, match=r"^asOfVersion: must be of one topic"):
            reader.partitions()


@pytest.mark.parametrize("name", ["asOfVersion", "asOfTimestamp"])
def test_a_stream_has_no_past(path: str, name: str) -> None:
    options = {"path": path, "subscribe": "t", name: "1"}
    with pytest.raises(OptionError, match=rf"^{name}: a stream reads what commits add.*spark.read"):
        parse_read_options(options, is_streaming=True)


def test_a_directory_of_a_broker_has_no_past(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(3)})
    with pytest.raises(OptionError, match=r"^asOfVersion: the path has log directories of a bro"):
        reader_of(str(tmp_path), asOfVersion="0").partitions()


def test_a_task_whose_file_is_gone_says_so_and_loses_nothing(path: str) -> None:
    """Also with `failOnDataLoss=false`: a version is read as it was, or not at all."""
    reader = reader_of(path, asOfVersion="3", failOnDataLoss="false")
    tasks = reader.partitions()
    merge.run(None, path, "t")
    vacuum.run(None, path, "t", dry_run=False, grace_ms=0)
    merged = klog.open(path).history("t", 2)[-1].version
    reason = rf"^asOfVersion: version 3 of .* Version {merged} can be read: give"
    with pytest.raises(OptionError, match=reason):
        [list(reader.read(task)) for task in tasks]
    with pytest.raises(OptionError, match=r"^asOfVersion: version 3 of topic t needs t-0/"):
        reader_of(path, asOfVersion="3").partitions()
    assert values(reader_of(path, asOfVersion=str(merged))) == numbered(4)


def test_a_task_whose_topic_is_gone_names_the_option_that_was_given(path: str) -> None:
    reader = reader_of(path, asOfVersion="3")
    tasks = reader.partitions()
    klog.open(path).delete_topic("t")
    shutil.rmtree(Path(path) / "t-0")
    with pytest.raises(OptionError, match=r"^asOfVersion: topic t was deleted .* here are other$"):
        [list(reader.read(task)) for task in tasks]
