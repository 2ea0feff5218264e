"""A log that changes between plan and read: read as planned, planned anew, or missed loudly.

Each case is a race that a live broker's appender, cleaner, retention or admin can win.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from klog.connector.log.raw import RawRoot
from klog.connector.options import ReadOptions, read_options
from klog.connector.source import scan
from klog.connector.source.slices import Slice
from klog.errors import DataLossError
from tests.corpus import scene
from tests.corpus.damage import copy

TOPIC = "segments"


def options(**given: str) -> ReadOptions:
    return read_options({"assign": f'{{"{TOPIC}": [0]}}', **given})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return copy(scene("records").partition_dir(TOPIC, 0), tmp_path)


def planned(directory: Path, **given: str) -> list[list[Slice]]:
    root = RawRoot([str(directory.parent)])
    return scan.slices(root, scan.pin(root, options(**given)), options(**given))


def read(directory: Path, tasks: list[list[Slice]], **given: str) -> list[int]:
    reader = scan.reader([str(directory.parent)], options(**given))
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
    tasks = planned(directory)
    first = first_segment(directory)
    first.rename(f"{first}.deleted")
    assert read(directory, tasks) == everything()


def test_expired_records_are_missed_loudly(directory: Path) -> None:
    tasks = planned(directory)
    end = int(sorted(directory.glob("*.log"))[1].stem)
    first_segment(directory).unlink()
    with pytest.raises(DataLossError, match=f"segments-0: offsets 0 to {end - 1} were deleted"):
        read(directory, tasks)
    left = [offset for offset in everything() if offset >= end]
    assert read(directory, planned(directory), failOnDataLoss="false") == left


def test_another_file_of_the_same_name_is_planned_anew(directory: Path) -> None:
    tasks = planned(directory, minPartitions="20")
    for log in directory.glob("*.log"):
        content = log.read_bytes()
        log.unlink()
        log.write_bytes(content)
    assert read(directory, tasks) == everything()


def test_a_file_changed_in_place_is_planned_anew(directory: Path) -> None:
    """The inode is the same; the stamp is not."""
    tasks = planned(directory)
    first = first_segment(directory)
    batches = first.read_bytes()
    size = 12 + int.from_bytes(batches[8:12], "big")
    first.write_bytes(batches[size:])
    kept = int.from_bytes(batches[size : size + 8], "big")
    assert read(directory, tasks) == [offset for offset in everything() if offset >= kept]


def test_a_topic_made_anew_is_not_read_for_the_old_one(directory: Path) -> None:
    tasks = planned(directory)
    metadata = directory / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    with pytest.raises(DataLossError, match="were deleted while they were read"):
        read(directory, tasks)


def test_a_pin_whose_topic_was_made_anew_is_refused(directory: Path) -> None:
    root = RawRoot([str(directory.parent)])
    pinned = scan.pin(root, options())
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    with pytest.raises(DataLossError, match="the topic was deleted and made anew"):
        scan.slices(root, pinned, options())


def test_a_pin_whose_end_was_cut_off_is_refused(directory: Path) -> None:
    root = RawRoot([str(directory.parent)])
    pinned = scan.pin(root, options())
    base = int(max(directory.glob("*.log")).stem)
    for file in directory.glob(f"{base:020d}.*"):
        file.unlink()
    (directory.parent / "recovery-point-offset-checkpoint").unlink()
    with pytest.raises(DataLossError, match=f"offsets {base} to {everything()[-1]} were cut off"):
        scan.slices(RawRoot([str(directory.parent)]), pinned, options())


def test_a_segment_that_grew_and_rolled_since_it_was_listed(directory: Path) -> None:
    """The listing gave the second last segment half its size: its file is what counts."""
    root = RawRoot([str(directory.parent)])
    pinned = scan.pin(root, options())
    log = sorted(directory.glob("*.log"))[-2]
    whole = log.read_bytes()
    there = root.partitions()
    log.write_bytes(whole[: len(whole) // 2])
    logs = root.open(there, there)
    log.write_bytes(whole)
    (found,) = [one for name, one in logs.items() if (name.topic, name.partition) == (TOPIC, 0)]
    assert found.segments[-2].log.size_bytes == len(whole) // 2
    reader = found.open(found.segments[-2])
    assert found.readable_bytes(reader) == len(whole)
    reader.close()
    assert read(directory, scan.slices(root, pinned, options())) == everything()


def test_a_long_lived_root_forgets_a_topic_made_anew(directory: Path) -> None:
    root = RawRoot([str(directory.parent)])
    before = scan.pin(root, options())
    shutil.rmtree(directory)
    copied = copy(scene("records").partition_dir("batches.single", 0), directory.parent.parent)
    copied.rename(directory)
    after = scan.pin(root, options())
    assert [row[4] for row in before] == [everything()[-1] + 1]
    assert [row[4] for row in after] == [30]
