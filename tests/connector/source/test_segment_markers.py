"""The markers after a segment, as far as a bounded look at them decides its transactions.

The rule: a slice that says that its markers are in its file gives the right rows to a reader that
looks at no other file; whatever a producer snapshot does not show is not said.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from klog.connector.kafka_dir import segment_markers
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import aborted_filter
from klog.connector.source.offset_ranges import batch_ranges
from klog.connector.source.read_plan import plan
from klog.connector.source.slice_contract import TaskDict, expand_task, to_dict
from klog.connector.source.slices import Slice
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.system_clock import now_ms
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.producers.producer_snapshot import ProducerEntry, encode_snapshot
from tests.connector.log_dirs import offsets, read_tasks
from tests.connector.source.test_aborted_slices import TransactionalLog, random_log
from tests.corpus import SCENES, scene
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional


def decided_tasks(directories: list[str]) -> list[TaskDict]:
    """Plan all topics as for a reader that follows no marker into another file."""
    read_options = parse_read_options({"subscribePattern": ".*"})

    def plan_now() -> list[TaskDict]:
        snapshot = RawRoot(directories).snapshot()
        names = subscribed_partitions(read_options.consumer_strategy, snapshot, lambda _: None)
        ranges = batch_ranges(snapshot.open(names), read_options, now_ms())
        return plan(ranges, decide_markers=True)

    return retry_stale_listing(plan_now)


def slices_of(tasks: list[TaskDict]) -> list[Slice]:
    return [slice_ for task in tasks for slice_ in expand_task(task)]


def open_at(log: TransactionalLog, base: int) -> dict[int, int]:
    """Return the transactions that are open where a segment begins, by producer id."""
    still_open: dict[int, int] = {}
    for first, batches in sorted(log.segments.items()):
        if first >= base:
            break
        for data in batches:
            offset = int.from_bytes(data[:8], "big")
            attributes = int.from_bytes(data[21:23], "big")
            producer = int.from_bytes(data[43:51], "big", signed=True)
            if attributes & 0x20:
                still_open.pop(producer, None)
            elif attributes & 0x10:
                still_open.setdefault(producer, offset)
    return still_open


def write_snapshots(directory: Path, log: TransactionalLog) -> None:
    """Write the producer snapshot of each segment but the first, as a broker rolls."""
    for base in sorted(log.segments)[1:]:
        entries = [
            ProducerEntry(producer, 0, 0, first, 0, 0, -1, first)
            for producer, first in open_at(log, base).items()
        ]
        (directory / segment_file_name(base, "snapshot")).write_bytes(encode_snapshot(entries))


def confined(slices: list[Slice]) -> list[TaskDict]:
    """Return tasks whose reader looks for no marker after the segment."""
    return [
        [to_dict(replace(slice_, markers_end_offset=min(slice_.limit_offset, 1 << 40)))]
        for slice_ in slices
    ]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("has_indexes", [True, False])
def test_slices_whose_markers_are_in_their_file_need_no_other(
    tmp_path: Path, seed: int, has_indexes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = random_log(seed)
    directory = log.write(tmp_path)
    write_snapshots(directory, log)
    if not has_indexes:
        for path in directory.glob("*.txnindex"):
            path.unlink()
    monkeypatch.setattr(aborted_filter, "list_consistently", pytest.fail)
    slices = slices_of(decided_tasks([str(tmp_path)]))
    assert all(slice_.are_markers_in_file for slice_ in slices)
    rows = read_tasks([str(tmp_path)], confined(slices))
    assert offsets(rows) == sorted(o for o in log.visible if o < log.stable_offset)


def spanning_log(kind: int) -> TransactionalLog:
    """Return a log of four segments; a transaction of the first one ends in the third one."""
    return TransactionalLog(
        {0: [transactional(0, 5), plain(1)], 2: [plain(2)], 3: [marker(3, 5, kind), plain(4)],
         5: [plain(5)]}
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "aborted"), [(ABORT, [[5, 0, 3]]), (COMMIT, [])])
def test_a_marker_in_a_later_segment_decides(
    tmp_path: Path, kind: int, aborted: list[list[int]]
) -> None:
    log = spanning_log(kind)
    write_snapshots(log.write(tmp_path), log)
    first, *_ = slices_of(decided_tasks([str(tmp_path)]))
    assert (first.are_markers_in_file, first.aborted) == (True, aborted)


def test_a_marker_that_is_far_away_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = spanning_log(ABORT)
    write_snapshots(log.write(tmp_path), log)
    monkeypatch.setattr(segment_markers, "MAX_SCANNED_BYTES", 10)
    slices = slices_of(decided_tasks([str(tmp_path)]))
    assert [slice_.are_markers_in_file for slice_ in slices] == [False, False, True, True]


@pytest.mark.parametrize("damage", ["missing", "malformed", "marker"])
def test_what_cannot_be_read_decides_nothing(tmp_path: Path, damage: str) -> None:
    log = spanning_log(ABORT)
    directory = log.write(tmp_path)
    write_snapshots(directory, log)
    snapshot = directory / segment_file_name(2, "snapshot")
    if damage == "missing":
        snapshot.unlink()
    elif damage == "malformed":
        snapshot.write_bytes(snapshot.read_bytes()[:-1])
    else:
        path = directory / segment_file_name(3, "log")
        data = bytearray(path.read_bytes())
        data[70] ^= 1
        path.write_bytes(data)
    first, *_ = slices_of(decided_tasks([str(tmp_path)]))
    assert not first.are_markers_in_file


def test_a_transaction_that_is_open_at_the_end_does_not_matter(tmp_path: Path) -> None:
    log = TransactionalLog({0: [plain(0), transactional(1, 5)], 2: [plain(2)]})
    write_snapshots(log.write(tmp_path), log)
    (first,) = slices_of(decided_tasks([str(tmp_path)]))
    assert (first.end_offset, first.are_markers_in_file) == (1, True)


@pytest.mark.parametrize("name", SCENES)
def test_slices_of_brokers_that_need_no_other_file_give_the_same_rows(name: str) -> None:
    dirs = [str(path) for path in scene(name).log_dirs]
    tasks = decided_tasks(dirs)
    expected = [slice_ for slice_ in slices_of(tasks) if slice_.are_markers_in_file]
    decided = read_tasks(dirs, [[to_dict(slice_)] for slice_ in expected], columns="offset")
    assert read_tasks(dirs, confined(expected), columns="offset") == decided
