"""A log that changes between plan and read: read as planned, planned again, or data loss.

Each case is a race that a live broker's appender, cleaner, retention or admin can win.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.task_reader import make_reader
from klog.errors import DataLossError
from tests.corpus import scene
from tests.corpus.damage import copy
from tests.support.resolved_offsets import resolve_offsets

TOPIC = "segments"


def options(**more: str) -> ReadOptions:
    return parse_read_options({"assign": f'{{"{TOPIC}": [0]}}', **more})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return copy(scene("records").partition_dir(TOPIC, 0), tmp_path)


def plan(directory: Path, **more: str) -> list[TaskDict]:
    root = RawRoot([str(directory.parent)])
    return scan_planner.plan_snapshot(root.snapshot(), options(**more))


def read(directory: Path, tasks: list[TaskDict], **more: str) -> list[int]:
    reader = make_reader([str(directory.parent)], options(**more))
    return [
        offset
        for task in tasks
        for rows in reader.read(task)
        for offset in rows.column("offset").to_pylist()
    ]


def everything() -> list[int]:
    return [r.offset for r in scene("records").records() if (r.topic, r.partition) == (TOPIC, 0)]


def first_segment(directory: Path) -> Path:
    return min(directory.glob("*.log"))


def test_deleted_files_are_read_while_they_are_there(directory: Path) -> None:
    tasks = plan(directory)
    first = first_segment(directory)
    first.rename(f"{first}.deleted")
    assert read(directory, tasks) == everything()


def test_expired_records_are_data_loss(directory: Path) -> None:
    tasks = plan(directory)
    end = int(sorted(directory.glob("*.log"))[1].stem)
    first_segment(directory).unlink()
    with pytest.raises(DataLossError, match=f"segments-0: offsets 0 to {end - 1} were deleted"):
        read(directory, tasks)
    remaining = [offset for offset in everything() if offset >= end]
    assert read(directory, plan(directory), failOnDataLoss="false") == remaining


def test_other_file_under_the_same_name_is_planned_again(directory: Path) -> None:
    tasks = plan(directory, minPartitions="20")
    for log in directory.glob("*.log"):
        content = log.read_bytes()
        log.unlink()
        log.write_bytes(content)
    assert read(directory, tasks) == everything()


def test_file_changed_in_place_is_planned_again(directory: Path) -> None:
    """The inode is the same; the stamp is not."""
    tasks = plan(directory)
    first = first_segment(directory)
    batches = first.read_bytes()
    size = 12 + int.from_bytes(batches[8:12], "big")
    first.write_bytes(batches[size:])
    kept = int.from_bytes(batches[size : size + 8], "big")
    assert read(directory, tasks) == [offset for offset in everything() if offset >= kept]


def test_topic_created_again_is_not_read_for_the_old_one(directory: Path) -> None:
    tasks = plan(directory)
    metadata = directory / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    with pytest.raises(DataLossError, match="were deleted while they were read"):
        read(directory, tasks)


def test_range_of_a_topic_created_again_is_data_loss(directory: Path) -> None:
    root = RawRoot([str(directory.parent)])
    resolved = resolve_offsets(root, options())
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    with pytest.raises(DataLossError, match="the topic was deleted and created again"):
        scan_planner.plan_tasks(root, resolved, options())


def test_range_whose_end_was_cut_off_is_data_loss(directory: Path) -> None:
    root = RawRoot([str(directory.parent)])
    resolved = resolve_offsets(root, options())
    base = int(max(directory.glob("*.log")).stem)
    for file in directory.glob(f"{base:020d}.*"):
        file.unlink()
    (directory.parent / "recovery-point-offset-checkpoint").unlink()
    with pytest.raises(DataLossError, match=f"offsets {base} to {everything()[-1]} were cut off"):
        scan_planner.plan_tasks(RawRoot([str(directory.parent)]), resolved, options())


def test_a_segment_that_grew_and_rolled_since_it_was_listed(directory: Path) -> None:
    """The listing gave the second last segment half its size: its file is what counts."""
    root = RawRoot([str(directory.parent)])
    resolved = resolve_offsets(root, options())
    log = sorted(directory.glob("*.log"))[-2]
    content = log.read_bytes()
    listed = root.partitions()
    log.write_bytes(content[: len(content) // 2])
    logs = root.open(listed, listed)
    log.write_bytes(content)
    (partition,) = [
        opened for name, opened in logs.items() if (name.topic, name.partition) == (TOPIC, 0)
    ]
    assert partition.segments[-2].log.size_bytes == len(content) // 2
    reader = partition.open(partition.segments[-2])
    assert partition.readable_bytes(reader) == len(content)
    reader.close()
    assert read(directory, scan_planner.plan_tasks(root, resolved, options())) == everything()


def test_long_lived_root_forgets_a_topic_created_again(directory: Path) -> None:
    root = RawRoot([str(directory.parent)])
    before = resolve_offsets(root, options())
    shutil.rmtree(directory)
    copied = copy(scene("records").partition_dir("batches.single", 0), directory.parent.parent)
    copied.rename(directory)
    after = resolve_offsets(root, options())
    assert [resolved.end_offset for resolved in before] == [everything()[-1] + 1]
    assert [resolved.end_offset for resolved in after] == [30]
