"""What the JVM shim is told about a plan, and what it asks."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import klog
from klog.connector.commit_log.commit_builders import delete_records
from klog.connector.datasource import KlogDataSource
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.source import index_narrowing, task_sizing
from klog.connector.source.jvm_plan import summarise
from klog.connector.source.jvm_request import with_request
from klog.connector.source.live_broker_logs import find_python_reason
from klog.connector.source.slice_contract import expand_task
from klog.errors import OptionError
from klog.logformat.topic_partition import TopicPartition
from tests.connector.committed_topic import between, commit, make_root, state_of
from tests.connector.jvm_plans import ask
from tests.connector.log_dirs import plan_tasks, write_log
from tests.corpus import scene
from tests.support.batch_bytes import marker, plain, transactional


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 2)
    for _ in range(3):
        rows = {"value": [b"v"] * 4, "partition": pa.array([0, 1, 1, 1], pa.int32())}
        log.append("t", pa.table(rows))
    return tmp_path / "root"


def test_the_first_partition_is_the_summary(root: Path) -> None:
    summary, *tasks = ask(root, {})
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    size_bytes = sum(slice_.size_bytes for slice_ in slices)
    ((of_root, path),) = summary["files"].items()
    assert of_root == str(root)
    assert path in {slice_.path for slice_ in slices}
    assert summary == {
        "format": 2,
        "pythonReason": "",
        "files": {of_root: path},
        "arePathsAscii": True,
        "segmentCount": 6,
        "sizeBytes": size_bytes,
        "totalSegmentCount": 6,
        "totalSizeBytes": size_bytes,
        "offsetCount": 12,
        "taskPartitions": [0, 1],
        "aggregates": {},
    }
    assert len(slices) == 6


def test_tasks_of_one_partition_each_say_which(root: Path) -> None:
    summary, *tasks = ask(root, {}, minPartitions="6")
    partitions = [{slice_.partition for slice_ in expand_task(task)} for task in tasks]
    assert [{number} for number in summary["taskPartitions"]] == partitions
    assert len(tasks) == len(partitions) >= 6


def test_a_segment_that_several_tasks_read_counts_once(root: Path) -> None:
    (path,) = sorted((root / "t-1").glob("*.log"))[-1:]
    options = {"startingOffsets": json.dumps({"t": {"0": 3, "1": 6}}), "minPartitions": "3"}
    summary, *tasks = ask(root, {}, **options)
    size_bytes = path.stat().st_size
    assert len(tasks) == 3
    assert (summary["segmentCount"], summary["sizeBytes"]) == (1, size_bytes)
    assert (summary["totalSegmentCount"], summary["totalSizeBytes"] > size_bytes) == (6, True)


def test_a_segment_cut_by_its_index_counts_the_bytes_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    monkeypatch.setattr(task_sizing, "TARGET_BYTES", 5000)
    summary, *tasks = ask(make_root(tmp_path), {}, **between(1234, 1567))
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    read = {(s.path, byte) for s in slices for byte in range(s.start_position, s.end_position)}
    segment_count = len({slice_.path for slice_ in slices})
    assert segment_count < len(slices)
    assert (summary["segmentCount"], summary["sizeBytes"]) == (segment_count, len(read))


def test_bounds_reach_the_plan(root: Path) -> None:
    bounds = {"partitions": [1], "startOffset": 4, "endOffset": 6}
    summary, *tasks = ask(root, {"bounds": bounds})
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    assert summary["offsetCount"] == 2
    assert [(s.partition, s.start_offset, s.end_offset) for s in slices] == [(1, 4, 6)]


def test_nothing_left_is_a_summary_alone(root: Path) -> None:
    (summary,) = ask(root, {"bounds": {"partitions": [7]}})
    assert (summary["segmentCount"], summary["sizeBytes"]) == (0, 0)
    assert summary["totalSegmentCount"] == 6


@pytest.mark.parametrize(
    ("bounds", "count"), [({}, 12), ({"partitions": [0]}, 3), ({"startOffset": 1}, 10)]
)
def test_a_count_is_that_of_the_commits(root: Path, bounds: dict[str, Any], count: int) -> None:
    (summary,) = ask(root, {"bounds": bounds, "aggregates": ["count"]})
    assert summary["aggregates"]["count"] == count


def test_an_answer_from_commits_warns_as_a_scan_does(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit(root, delete_records(state_of(root).topic_id, {0: 2}), "delete-records")
    options = {"failOnDataLoss": "false", "startingOffsets": '{"t": {"0": 0, "1": 0}}'}
    ask(root, {}, **options)
    (warning,) = caplog.messages
    ask(root, {"aggregates": ["unknown"]}, **options)
    assert caplog.messages == [warning], "the plan that follows says it"
    ask(root, {"aggregates": ["count"]}, **options)
    assert caplog.messages == [warning] * 2


def test_aggregates_of_a_broker_s_directory_do_not_look_at_it_again(
    tmp_path: Path, requests: Counter[str]
) -> None:
    log = write_log(tmp_path, {0: [plain(0)]}) / "00000000000000000000.log"
    source = KlogDataSource({"path": str(tmp_path), "subscribe": "t"})
    source.schema()
    log.unlink()
    requests.clear()
    request = json.dumps({"aggregates": ["count"]}).encode()
    (partition,) = with_request(pickle.dumps(source), request).reader(StructType()).partitions()
    assert (partition.value["aggregates"], requests) == ({}, {})


def test_a_count_that_headers_have_to_say_is_unknown() -> None:
    (log_dir, *_) = scene("records").log_dirs
    (summary,) = ask(log_dir, {"aggregates": ["count"]}, subscribe="segments")
    assert summary["aggregates"] == {}


def test_a_broker_s_transaction_without_a_snapshot_is_for_python(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [transactional(0, 5)], 1: [marker(1, 5, 0), plain(2)]})
    summary, *_ = ask(tmp_path, {})
    assert summary["pythonReason"] == "t-0: transactions may end in a later segment"


def test_a_broker_s_file_on_another_store_is_for_python(tmp_path: Path) -> None:
    write_log(tmp_path, {0: [plain(0)]})
    tasks = plan_tasks([str(tmp_path)])
    tasks[0][0]["root"] = "s3://bucket/log"
    summary = summarise(tasks)
    assert "only Python knows" in summary["pythonReason"]


def test_engine_jvm_without_the_shim_names_what_is_missing(root: Path) -> None:
    source = KlogDataSource({"path": str(root), "subscribe": "t", "engine": "jvm"})
    source.schema()
    with pytest.raises(OptionError, match=r"engine: jvm needs klog's jar.*klog.configure"):
        source.reader(StructType()).partitions()
    with pytest.raises(OptionError, match="engine: jvm needs klog's jar"):
        source.streamReader(StructType()).initialOffset()


def locked_logs(folder: Path, cleaned: str) -> Iterator[Any]:
    """Yield the partition of a directory that a running broker seems to hold."""
    from dataclasses import replace

    write_log(folder, {0: [plain(0)]})
    (folder / "cleaner-offset-checkpoint").write_text(cleaned)
    name = TopicPartition("t", 0)
    yield replace(RawRoot([str(folder)]).snapshot().open([name])[name], is_locked_by_broker=True)


@pytest.mark.parametrize(
    ("cleaned", "fail_on_data_loss", "reason"),
    [
        ("0\n0\n", True, ""),
        ("0\n1\nother 0 5\n", True, ""),
        ("0\n1\nt 0 5\n", True, "t-0: a running broker compacts it"),
        ("malformed", True, ""),
        ("0\n0\n", False, "t-0: with failOnDataLoss=false a running broker's files may be gone"),
    ],
)
def test_what_a_running_broker_replaces_is_for_python(
    tmp_path: Path, cleaned: str, fail_on_data_loss: bool, reason: str
) -> None:
    logs = locked_logs(tmp_path, cleaned)
    assert find_python_reason(logs, fail_on_data_loss=fail_on_data_loss) == reason
