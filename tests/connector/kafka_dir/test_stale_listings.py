"""A broker's directory that changes between two calls of klog, at that very call.

The rule: klog lists and plans again; no record is missing, read twice or reported as damage.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.kafka_dir.stale_listings import MAX_STALE_LISTINGS, retry_stale_listing
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.stream_reader import KlogStreamReader
from klog.connector.store.local_store import LocalFile, LocalStore
from klog.errors import ChangedDuringReadError, CorruptFileError, DataLossError
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.topic_partition import TopicPartition
from tests.connector.kafka_dir.lock_holder import holding
from tests.connector.log_dirs import (
    many,
    offsets,
    plan_tasks,
    read_tasks,
    set_checkpoint,
    write_log,
)
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional

NAME = TopicPartition("t", 0)
COMMITTED = {"isolationLevel": "read_committed"}


@pytest.fixture
def locked_dir(tmp_path: Path) -> Iterator[Path]:
    with holding(tmp_path) as root:
        set_checkpoint(root, "replication-offset-checkpoint", {("t", 0): 1000})
        yield root


def log(root: Path, base: int, suffix: str = "log") -> Path:
    return root / "t-0" / segment_file_name(base, suffix)


def clean(path: Path, batches: list[bytes], *merged: Path) -> None:
    """Put a cleaned segment in the place of one, and of the later ones that it includes."""
    cleaned = path.with_suffix(".cleaned")
    cleaned.write_bytes(b"".join(batches))
    for segment in merged:
        segment.unlink()
    cleaned.replace(path)


def before_opening(
    monkeypatch: pytest.MonkeyPatch, path: Path, change: Callable[[], object], time: int = 1
) -> list[int]:
    """Call `change` before a file is opened for this time; return the list of its openings."""
    openings: list[int] = []
    really = LocalStore.open

    def after_change(store: LocalStore, name: str, size_bytes: int | None = None) -> LocalFile:
        if name == str(path):
            openings.append(len(openings) + 1)
            if openings[-1] == time:
                change()
        return really(store, name, size_bytes)

    monkeypatch.setattr(LocalStore, "open", after_change)
    return openings


def while_listing(
    monkeypatch: pytest.MonkeyPatch, directory: Path, change: Callable[[], object]
) -> None:
    """Call `change` once, when the names of a directory are read but not yet looked up."""
    really, done = os.scandir, list[str]()

    @contextmanager
    def names_first(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with really(path) as names:
            names_now = list(names)
            if path == str(directory) and not done:
                done.append(path)
                change()
            yield iter(names_now)

    monkeypatch.setattr(os, "scandir", names_first)


def slices_of(root: Path, start: int, end: int) -> list[TaskDict]:
    return scan_planner.plan_tasks(
        RawRoot([str(root)]),
        [ResolvedRange(TopicPartition("t", 0), "", start, end)],
        parse_read_options({"subscribe": "t"}),
    )


def test_segments_merged_between_the_listing_and_the_plan(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(locked_dir, {0: many(5), 5: many(5, 5), 10: many(5, 10)})
    before_opening(
        monkeypatch,
        log(locked_dir, 0),
        lambda: clean(log(locked_dir, 0), many(10), log(locked_dir, 5)),
    )
    assert offsets(read_tasks([str(locked_dir)], slices_of(locked_dir, 0, 5))) == list(range(5))


def test_the_active_segment_rolled_and_merged_between_its_end_and_the_plan(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(locked_dir, {0: many(5)})

    def roll_and_clean() -> None:
        log(locked_dir, 20).touch()
        clean(log(locked_dir, 0), [*many(5)[::2], *many(15, 5)])

    openings = before_opening(monkeypatch, log(locked_dir, 0), roll_and_clean, time=2)
    assert offsets(read_tasks([str(locked_dir)], slices_of(locked_dir, 0, 5))) == [0, 2, 4]
    assert len(openings) > 2, "it was never replaced, so this showed nothing"


def test_a_finished_cleaning_renamed_while_it_is_listed(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(locked_dir, {0: many(5), 5: many(5, 5), 10: many(5, 10)})
    log(locked_dir, 5).rename(log(locked_dir, 5, "log.swap"))
    while_listing(
        monkeypatch,
        locked_dir / "t-0",
        lambda: log(locked_dir, 5, "log.swap").rename(log(locked_dir, 5)),
    )
    assert offsets(read_tasks([str(locked_dir)], slices_of(locked_dir, 0, 15))) == list(range(15))


def test_a_markers_segment_renamed_while_the_task_lists(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(locked_dir, {0: [transactional(0, 5)], 1: [marker(1, 5, ABORT)], 2: [plain(2)]})
    tasks = plan_tasks([str(locked_dir)], **COMMITTED)
    log(locked_dir, 1).rename(log(locked_dir, 1, "log.swap"))
    while_listing(
        monkeypatch,
        locked_dir / "t-0",
        lambda: log(locked_dir, 1, "log.swap").rename(log(locked_dir, 1)),
    )
    assert offsets(read_tasks([str(locked_dir)], tasks, **COMMITTED)) == [2]


def test_an_aborted_transaction_whose_marker_was_cleaned_away(locked_dir: Path) -> None:
    write_log(
        locked_dir,
        {
            0: [transactional(0, 5), plain(1)],
            2: [marker(2, 5, ABORT), transactional(3, 5)],
            4: [marker(4, 5, COMMIT), plain(5)],
        },
    )
    index = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (5, 0, 2, 3))
    log(locked_dir, 2, "txnindex").write_bytes(index)
    tasks = plan_tasks([str(locked_dir)], **COMMITTED)
    shutil.move(log(locked_dir, 0), log(locked_dir, 0, "log.deleted"))
    log(locked_dir, 0).write_bytes(plain(1))
    log(locked_dir, 2, "txnindex").unlink()
    clean(log(locked_dir, 2), [transactional(3, 5)])
    assert offsets(read_tasks([str(locked_dir)], tasks, **COMMITTED)) == [1, 3, 5]


def test_a_directory_that_never_settles(locked_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(locked_dir, {0: many(5)})
    really = LocalStore.entries

    def changing(store: LocalStore, directory: str) -> Any:
        shutil.copy(log(locked_dir, 0), log(locked_dir, 0, "copy"))
        log(locked_dir, 0, "copy").replace(log(locked_dir, 0))
        return really(store, directory)

    monkeypatch.setattr(LocalStore, "entries", changing)
    with pytest.raises(FileNotFoundError, match="t-0 changes faster than it can be listed"):
        opened(locked_dir)


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_topic_deleted_between_two_listings(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch, fail_on_data_loss: str
) -> None:
    for partition in ("t-0", "u-0"):
        write_log(locked_dir, {0: many(5)}, partition)
    set_checkpoint(locked_dir, "replication-offset-checkpoint", {("t", 0): 5, ("u", 0): 5})
    reader = KlogStreamReader(
        {"subscribePattern": ".", "startingOffsets": "earliest", "path": str(locked_dir)}
        | {"failOnDataLoss": fail_on_data_loss}
    )
    start = {"t": {"0": 0}}
    while_listing(
        monkeypatch,
        locked_dir / "t-0",
        lambda: (locked_dir / "u-0").rename(locked_dir / "u-0.5f-delete"),
    )
    assert reader.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 5}}


def test_listing_is_repeated_with_a_growing_pause() -> None:
    waited: list[int] = []

    def list_later() -> str:
        if len(waited) < MAX_STALE_LISTINGS - 1:
            raise FileNotFoundError("a file")
        return "all"

    assert retry_stale_listing(list_later, waited.append) == "all"
    assert waited == list(range(1, MAX_STALE_LISTINGS))
    waited.clear()
    with pytest.raises(
        ChangedDuringReadError, match=r"vanish as fast as they are listed \(a file\)"
    ):
        retry_stale_listing(list_nothing, waited.append)
    assert waited == list(range(1, MAX_STALE_LISTINGS))


def list_nothing() -> None:
    raise FileNotFoundError("a file")


def opened(root: Path) -> RawPartition:
    return RawRoot([str(root)]).open([NAME])[NAME]


def test_partition_answers_after_a_cleaning(locked_dir: Path) -> None:
    write_log(
        locked_dir, {0: [*many(5), transactional(5, 7)], 6: [marker(6, 7, COMMIT), *many(3, 7)]}
    )
    partition = opened(locked_dir)
    clean(log(locked_dir, 0), [*many(5)[1:], transactional(5, 7)])
    clean(log(locked_dir, 6), [marker(6, 7, COMMIT), *many(3, 7), transactional(10, 7)])
    assert partition.log_end == 10
    assert partition.offset_for_time(0, 10) == 1
    assert partition.last_stable_offset() == 10
    assert opened(locked_dir).last_stable_offset() == 10
    assert opened(locked_dir).log_end == 11


def test_partition_that_was_created_again_is_not_read_on(locked_dir: Path) -> None:
    directory = write_log(locked_dir, {0: many(5)})
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    partition = opened(locked_dir)
    directory.rename(f"{directory}.5f-delete")
    write_log(locked_dir, {0: many(9)})
    with pytest.raises(FileNotFoundError, match="t-0 was deleted and created again"):
        partition.last_stable_offset()


def test_records_expired_before_the_plan_are_data_loss(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(locked_dir, {0: many(5), 5: many(5, 5)})
    before_opening(monkeypatch, log(locked_dir, 0), lambda: log(locked_dir, 0).unlink())
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 4 were deleted since"):
        slices_of(locked_dir, 0, 8)


def test_a_file_replaced_at_each_turn_for_a_while(
    locked_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(locked_dir, {0: many(10), 10: []})
    tasks = plan_tasks([str(locked_dir)])
    really, turns = LocalStore.open, list[str]()

    def replaced(store: LocalStore, name: str, size_bytes: int | None = None) -> LocalFile:
        # A task opens the file to read it; the plan that follows opens it again.
        if name == str(log(locked_dir, 0)) and len(turns) < 12:
            turns.append(name)
            if len(turns) % 2:
                clean(log(locked_dir, 0), many(10))
        return really(store, name, size_bytes)

    monkeypatch.setattr(LocalStore, "open", replaced)
    assert offsets(read_tasks([str(locked_dir)], tasks)) == list(range(10))
    assert len(turns) == 12


def test_another_file_under_the_same_inode_is_no_damage(locked_dir: Path) -> None:
    write_log(locked_dir, {0: many(10)})
    tasks = plan_tasks([str(locked_dir)])
    cleaned = [*many(9)[::2], plain(10, [b"v" * 5000])]
    log(locked_dir, 0).write_bytes(b"".join(cleaned))  # In place: its inode's number stays.
    log(locked_dir, 11).touch()
    assert offsets(read_tasks([str(locked_dir)], tasks)) == [0, 2, 4, 6, 8]


def test_damage_in_the_planned_file_is_an_error(locked_dir: Path) -> None:
    batches = many(10)
    batches[4] = batches[4][:-1] + b"!"
    write_log(locked_dir, {0: batches, 10: []})
    tasks = plan_tasks([str(locked_dir)])
    with pytest.raises(CorruptFileError, match="CRC-32C"):
        read_tasks([str(locked_dir)], tasks)


def test_open_transactions_of_another_file_under_the_same_inode(locked_dir: Path) -> None:
    batches, opening = [plain(offset) for offset in range(10)], transactional(10, 5)
    assert {len(data) for data in batches} == {len(opening)}
    write_log(locked_dir, {0: batches})
    root = RawRoot([str(locked_dir)])
    assert root.open([NAME])[NAME].last_stable_offset() == 10
    log(locked_dir, 0).rename(log(locked_dir, 10))
    log(locked_dir, 10).write_bytes(
        b"".join([opening, *(plain(offset) for offset in range(11, 23))])
    )
    assert root.open([NAME])[NAME].last_stable_offset() == 10


def test_listing_has_the_identity_of_files(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    store = LocalStore()
    (entry,) = store.entries(str(tmp_path))
    file = store.open(entry.path)
    file.close()
    assert entry.identity == file.identity
