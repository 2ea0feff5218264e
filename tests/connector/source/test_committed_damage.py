"""A klog root whose files are damaged, missing or replaced: an error names them or is not due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import google_crc32c
import numpy as np
import pytest

import klog
from klog.connector.commit_log import (
    checkpoint_writer,
    commit_builders,
    commit_expiration,
)
from klog.connector.commit_log.committed_snapshot import CommittedRoot
from klog.connector.commit_log.rewrite_commit import replace_segments
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.segment_entries import rows_of_partition
from klog.connector.open_root import open_root
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import index_narrowing, scan_planner
from klog.connector.source.task_reader import make_reader
from klog.errors import ChangedDuringReadError, CorruptFileError, DataLossError, KlogError
from klog.logformat.indexes.offset_index import ENTRY
from tests.connector.committed_topic import (
    START_MS,
    between,
    commit,
    make_root,
    read,
    state_of,
    table,
    values,
)
from tests.support.resolved_offsets import resolve_offsets


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a root for a test that damages it."""
    return make_root(tmp_path)


def damaged(path: Path, number: int = 3) -> Path:
    """Return the file of one segment."""
    row = rows_of_partition(state_of(path).segments, 0).to_pylist()[number]
    return path / str(row["file"])


def refused(path: Path) -> str:
    with pytest.raises(CorruptFileError) as caught:
        read(path)
    return str(caught.value)


def test_a_truncated_segment_is_named(path: Path) -> None:
    file = damaged(path)
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-1])
    error = refused(path)
    assert str(file) in error
    assert "t-0" in error
    assert f"it has {size - 1} bytes, its commit says {size}" in error


@pytest.mark.parametrize("position", [3, 11, 30, 300, 9000])
def test_a_flipped_bit_is_named(path: Path, position: int) -> None:
    """Also in a base offset or an epoch, which no batch's own CRC covers."""
    file = damaged(path)
    data = bytearray(file.read_bytes())
    data[position] ^= 4
    file.write_bytes(data)
    assert str(file) in refused(path)


def test_a_swapped_segment_is_named(path: Path) -> None:
    first, second = damaged(path, 3), damaged(path, 4)
    size = min(first.stat().st_size, second.stat().st_size)
    assert size
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    assert str(first) in refused(path)


def test_missing_segment_is_named_and_others_are_read(path: Path) -> None:
    file = damaged(path)
    file.unlink()
    error = refused(path)
    assert str(file) in error
    assert "the file is missing or was replaced" in error
    row = rows_of_partition(state_of(path).segments, 0).to_pylist()[3]
    rows = read(path, **between(row["next_offset"], 3000))
    assert [r["offset"] for r in rows] == list(range(row["next_offset"], 3000))


def late(data: bytes) -> bytes:
    """Move the position of each entry to the entry after the next one."""
    return _moved(data, 2)


def early(data: bytes) -> bytes:
    """Move the position of each entry to the second entry before it."""
    return _moved(data, -2)


def _moved(data: bytes, by: int) -> bytes:
    entries = np.frombuffer(data, ENTRY).copy()
    numbers = np.clip(np.arange(len(entries)) + by, 0, len(entries) - 1)
    entries["position"] = entries["position"][numbers]
    return bytes(entries.tobytes())


def between_batches(data: bytes) -> bytes:
    """Return positions where no batch begins."""
    entries = np.frombuffer(data, ENTRY).copy()
    entries["position"] += 1
    return bytes(entries.tobytes())


SPOILERS = [late, early, between_batches, lambda data: b"", lambda data: data[:-3]]


@pytest.mark.parametrize("spoil", SPOILERS, ids=["late", "early", "between", "empty", "torn"])
def test_an_index_that_does_not_fit_costs_no_record(
    path: Path, spoil: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    for index in path.glob("t-0/*.index"):
        index.write_bytes(spoil(index.read_bytes()))
    assert_readable(path)


def test_a_missing_index_costs_no_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_narrowing, "MAX_UNINDEXED_BYTES", 0)
    for index in path.glob("t-0/*.index"):
        index.unlink()
    assert_readable(path)


def assert_readable(path: Path) -> None:
    for start, end in ((0, 3000), (1234, 1300), (555, 2789)):
        assert values(read(path, **between(start, end))) == list(range(start, end))


def merged(path: Path) -> None:
    """Replace the first three segments by one, as a merge does, and vacuum the files."""
    state = state_of(path)
    rows = rows_of_partition(state.segments, 0).to_pylist()[:3]
    data = b"".join((path / row["file"]).read_bytes() for row in rows)
    file = f"t-0/{0:020d}-{state.version:010d}-0000abcd.log"
    (path / file).write_bytes(data)
    entry = {
        **rows[0],
        "file": file,
        "next_offset": rows[-1]["next_offset"],
        "size_bytes": len(data),
        "index_bytes": 0,
        "time_index_bytes": 0,
        "crc32c": google_crc32c.value(data),
        "origin": "merge",
    }
    names = [row["file"] for row in rows]
    commit(
        path,
        replace_segments(state.topic_id, state.version, names, [entry], {}),
        "merge",
    )
    for name in names:
        (path / name).unlink()


def emptied(path: Path) -> Path:
    """Replace the first segment by one that has no bytes, and return its file."""
    state = state_of(path)
    row = rows_of_partition(state.segments, 0).to_pylist()[0]
    file = f"t-0/{0:020d}-{state.version:010d}-0000abcd.log"
    (path / file).write_bytes(b"")
    sizes = dict.fromkeys(
        ("size_bytes", "index_bytes", "time_index_bytes", "crc32c", "record_count", "batch_count"),
        0,
    )
    empty = {**row, **sizes, "file": file, "origin": "compact"}
    build = replace_segments(state.topic_id, state.version, [row["file"]], [empty], {})
    commit(path, build, "compact")
    return path / file


def test_empty_segment_costs_no_record_after_it(path: Path) -> None:
    next_offset = rows_of_partition(state_of(path).segments, 0)["next_offset"][0].as_py()
    emptied(path)
    assert values(read(path)) == list(range(next_offset, 3000))
    assert values(read(path, **between(3, next_offset + 3))) == list(
        range(next_offset, next_offset + 3)
    )


def test_an_empty_segment_is_held_to_its_commit(path: Path) -> None:
    file = emptied(path)
    file.write_bytes(b"1")
    assert "it has 1 bytes, its commit says 0" in refused(path)
    file.unlink()
    error = refused(path)
    assert str(file) in error
    assert "the file is missing or was replaced, and the topic's log still names it" in error


def test_crc_of_0_is_compared(path: Path) -> None:
    """One of 2^32 segments has it; an unknown CRC is -1."""
    state = state_of(path)
    row = rows_of_partition(state.segments, 0).to_pylist()[0]
    file = f"t-0/{0:020d}-{state.version:010d}-0000abcd.log"
    (path / file).write_bytes((path / row["file"]).read_bytes())
    changed = {**row, "file": file, "crc32c": 0, "origin": "merge"}
    build = replace_segments(state.topic_id, state.version, [row["file"]], [changed], {})
    commit(path, build, "merge")
    assert "its commit says 00000000" in refused(path)


def test_a_plan_outlives_a_merge(path: Path) -> None:
    parsed = parse_read_options({"subscribe": "t"})
    root = open_root([str(path)])
    tasks = scan_planner.plan_snapshot(root.snapshot(), parsed)
    merged(path)
    reader = make_reader([str(path)], parsed)
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    assert values(rows) == list(range(3000))


def test_what_was_deleted_under_a_plan_is_data_loss(path: Path) -> None:
    parsed = parse_read_options({"subscribe": "t"})
    root = open_root([str(path)])
    tasks = scan_planner.plan_snapshot(root.snapshot(), parsed)
    state = state_of(path)
    first, second, *_ = rows_of_partition(state.segments, 0).to_pylist()
    start = second["base_offset"] + 3
    commit(path, commit_builders.delete_records(state.topic_id, {0: start}), "delete-records")
    (path / first["file"]).unlink()
    with pytest.raises(ChangedDuringReadError, match=f"to {second['base_offset'] - 1} were"):
        list(make_reader([str(path)], parsed).read(tasks[0]))
    lenient = parse_read_options({"subscribe": "t", "failOnDataLoss": "false"})
    reader = make_reader([str(path)], lenient)
    rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    # The plan is as of its load: what its files still have of the second segment, it gives.
    assert [row["offset"] for row in rows] == list(range(second["base_offset"], 3000))
    assert read(path)[0]["offset"] == start


def test_data_loss_names_only_offsets_of_the_range(path: Path) -> None:
    parsed = parse_read_options({"subscribe": "t", **between(2, 5)})
    root = open_root([str(path)])
    resolved = resolve_offsets(root, parsed)
    topic_id = state_of(path).topic_id
    for log_start, lost in ((3, "2 to 2"), (900, "2 to 4")):
        commit(path, commit_builders.delete_records(topic_id, {0: log_start}), "delete-records")
        with pytest.raises(DataLossError, match=f"t-0: offsets {lost} were deleted since"):
            scan_planner.plan_tasks(root, resolved, parsed)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_longer_than_its_commit_says_is_not_read(path: Path, suffix: str) -> None:
    for index in path.glob(f"t-0/*.{suffix}"):
        with index.open("ab") as file:
            file.truncate(1 << 40)
    assert_readable(path)
    at = datetime.fromtimestamp(START_MS / 1000 + 2222, timezone.utc)
    rows = klog.open(str(path)).scan("t", start=at, columns=["offset"]).read_all()
    assert rows["offset"].to_pylist() == list(range(2222, 3000))


def test_a_lost_description_is_named_by_a_reader_that_knew_the_topic(path: Path) -> None:
    """Cleaning overtakes its state, so it loads from a checkpoint."""
    root = find_root(str(path))
    assert root is not None
    reader = CommittedRoot(root)
    assert reader.state("t").version == 3
    klog.open(str(path)).append("t", table(3000, 10))
    log = root.log("t")
    checkpointed = log.load()
    checkpoint_writer.write_checkpoint(log, checkpointed)
    klog.open(str(path)).append("t", table(3010, 10))
    assert commit_expiration.expire_log(log, 0) == checkpointed.version
    Path(log.paths.description).unlink()
    with pytest.raises(KlogError, match=r"topic\.json: this file is lost"):
        reader.state("t")
