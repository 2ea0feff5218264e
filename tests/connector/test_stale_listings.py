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

from klog.connector.log.partition import RawPartition, TopicPartition
from klog.connector.log.raw import MAX_STALE_LISTINGS, RawRoot, retrying
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.connector.source.stream import KlogStreamReader
from klog.connector.store.local import LocalFile, LocalStore
from klog.errors import CorruptFileError, DataLossError
from klog.logformat.names import segment_name
from tests.connector.holder import holding
from tests.connector.logs import (
    many,
    offsets,
    plan_tasks,
    read_tasks,
    set_checkpoint,
    write_log,
)
from tests.encode import ABORT, COMMIT, marker, plain, transactional

NAME = TopicPartition("t", 0)
COMMITTED = {"isolationLevel": "read_committed"}


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    with holding(tmp_path) as root:
        set_checkpoint(root, "replication-offset-checkpoint", {("t", 0): 1000})
        yield root


def log(root: Path, base: int, suffix: str = "log") -> Path:
    return root / "t-0" / segment_name(base, suffix)


def clean(path: Path, batches: list[bytes], *merged: Path) -> None:
    """Put a cleaned segment in the place of one, and of those behind it that it has taken in."""
    cleaned = path.with_suffix(".cleaned")
    cleaned.write_bytes(b"".join(batches))
    for one in merged:
        one.unlink()
    cleaned.replace(path)


def before_opening(
    monkeypatch: pytest.MonkeyPatch, path: Path, change: Callable[[], object], time: int = 1
) -> list[int]:
    """Call `change` before a file is opened for this time; return the list of its openings."""
    opened: list[int] = []
    really = LocalStore.open

    def after_change(store: LocalStore, name: str, size_bytes: int | None = None) -> LocalFile:
        if name == str(path):
            opened.append(len(opened) + 1)
            if opened[-1] == time:
                change()
        return really(store, name, size_bytes)

    monkeypatch.setattr(LocalStore, "open", after_change)
    return opened


def while_listing(
    monkeypatch: pytest.MonkeyPatch, directory: Path, change: Callable[[], object]
) -> None:
    """Call `change` once, when the names of a directory are read but not yet looked up."""
    really, done = os.scandir, list[str]()

    @contextmanager
    def names_first(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with really(path) as names:
            found = list(names)
            if path == str(directory) and not done:
                done.append(path)
                change()
            yield iter(found)

    monkeypatch.setattr(os, "scandir", names_first)


def slices_of(root: Path, start: int, end: int) -> list[list[dict[str, Any]]]:
    return scan.slices(
        RawRoot([str(root)]), [("t", 0, "", start, end)], read_options({"subscribe": "t"})
    )


def test_segments_merged_between_the_listing_and_the_plan(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(held, {0: many(5), 5: many(5, 5), 10: many(5, 10)})
    before_opening(monkeypatch, log(held, 0), lambda: clean(log(held, 0), many(10), log(held, 5)))
    assert offsets(read_tasks([str(held)], slices_of(held, 0, 5))) == list(range(5))


def test_the_active_segment_rolled_and_merged_between_its_end_and_the_plan(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(held, {0: many(5)})

    def roll_and_clean() -> None:
        log(held, 20).touch()
        clean(log(held, 0), [*many(5)[::2], *many(15, 5)])

    opened = before_opening(monkeypatch, log(held, 0), roll_and_clean, time=2)
    assert offsets(read_tasks([str(held)], slices_of(held, 0, 5))) == [0, 2, 4]
    assert len(opened) > 2, "it was never replaced, so this showed nothing"


def test_a_finished_cleaning_renamed_while_it_is_listed(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(held, {0: many(5), 5: many(5, 5), 10: many(5, 10)})
    log(held, 5).rename(log(held, 5, "log.swap"))
    while_listing(monkeypatch, held / "t-0", lambda: log(held, 5, "log.swap").rename(log(held, 5)))
    assert offsets(read_tasks([str(held)], slices_of(held, 0, 15))) == list(range(15))


def test_a_markers_segment_renamed_while_the_task_lists(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(held, {0: [transactional(0, 5)], 1: [marker(1, 5, ABORT)], 2: [plain(2)]})
    tasks = plan_tasks([str(held)], **COMMITTED)
    log(held, 1).rename(log(held, 1, "log.swap"))
    while_listing(monkeypatch, held / "t-0", lambda: log(held, 1, "log.swap").rename(log(held, 1)))
    assert offsets(read_tasks([str(held)], tasks, **COMMITTED)) == [2]


def test_an_aborted_transaction_whose_marker_was_cleaned_away(held: Path) -> None:
    write_log(
        held,
        {
            0: [transactional(0, 5), plain(1)],
            2: [marker(2, 5, ABORT), transactional(3, 5)],
            4: [marker(4, 5, COMMIT), plain(5)],
        },
    )
    index = b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (5, 0, 2, 3))
    log(held, 2, "txnindex").write_bytes(index)
    tasks = plan_tasks([str(held)], **COMMITTED)
    shutil.move(log(held, 0), log(held, 0, "log.deleted"))
    log(held, 0).write_bytes(plain(1))
    log(held, 2, "txnindex").unlink()
    clean(log(held, 2), [transactional(3, 5)])
    assert offsets(read_tasks([str(held)], tasks, **COMMITTED)) == [1, 3, 5]


def test_a_directory_that_never_settles(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(held, {0: many(5)})
    really = LocalStore.entries

    def changing(store: LocalStore, directory: str) -> Any:
        shutil.copy(log(held, 0), log(held, 0, "copy"))
        log(held, 0, "copy").replace(log(held, 0))
        return really(store, directory)

    monkeypatch.setattr(LocalStore, "entries", changing)
    with pytest.raises(FileNotFoundError, match="t-0 changes as fast as it is listed"):
        look_of(held)


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_topic_deleted_between_two_listings(
    held: Path, monkeypatch: pytest.MonkeyPatch, fail_on_data_loss: str
) -> None:
    for partition in ("t-0", "u-0"):
        write_log(held, {0: many(5)}, partition)
    set_checkpoint(held, "replication-offset-checkpoint", {("t", 0): 5, ("u", 0): 5})
    reader = KlogStreamReader(
        {"subscribePattern": ".", "startingOffsets": "earliest", "path": str(held)}
        | {"failOnDataLoss": fail_on_data_loss}
    )
    start = {"t": {"0": 0}}
    while_listing(monkeypatch, held / "t-0", lambda: (held / "u-0").rename(held / "u-0.5f-delete"))
    assert reader.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 5}}


def test_looks_go_on_for_a_while_with_a_pause_that_grows() -> None:
    waited: list[int] = []

    def found() -> str:
        if len(waited) < MAX_STALE_LISTINGS - 1:
            raise FileNotFoundError("a file")
        return "all"

    assert retrying(found, waited.append) == "all"
    assert waited == list(range(1, MAX_STALE_LISTINGS))
    waited.clear()
    with pytest.raises(DataLossError, match=r"vanish as fast as they are listed \(a file\)"):
        retrying(missing, waited.append)
    assert waited == list(range(1, MAX_STALE_LISTINGS))


def missing() -> None:
    raise FileNotFoundError("a file")


def look_of(root: Path) -> RawPartition:
    return RawRoot([str(root)]).open([NAME])[NAME]


def test_what_is_asked_of_a_partition_after_a_cleaning_is_answered(held: Path) -> None:
    write_log(held, {0: [*many(5), transactional(5, 7)], 6: [marker(6, 7, COMMIT), *many(3, 7)]})
    seen = look_of(held)
    clean(log(held, 0), [*many(5)[1:], transactional(5, 7)])
    clean(log(held, 6), [marker(6, 7, COMMIT), *many(3, 7), transactional(10, 7)])
    assert seen.log_end == 10
    assert seen.offset_for_time(0, 10) == 1
    assert seen.last_stable_offset() == 10
    assert look_of(held).last_stable_offset() == 10
    assert look_of(held).log_end == 11


def test_a_partition_that_became_another_is_not_gone_on_with(held: Path) -> None:
    directory = write_log(held, {0: many(5)})
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA")
    seen = look_of(held)
    directory.rename(f"{directory}.5f-delete")
    write_log(held, {0: many(9)})
    with pytest.raises(FileNotFoundError, match="t-0 was deleted and created again"):
        seen.last_stable_offset()


def test_records_expired_before_the_plan_are_data_loss(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(held, {0: many(5), 5: many(5, 5)})
    before_opening(monkeypatch, log(held, 0), lambda: log(held, 0).unlink())
    with pytest.raises(DataLossError, match="t-0: offsets 0 to 4 were deleted since"):
        slices_of(held, 0, 8)


def test_a_file_replaced_at_each_turn_for_a_while(
    held: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(held, {0: many(10), 10: []})
    tasks = plan_tasks([str(held)])
    really, turns = LocalStore.open, list[str]()

    def replaced(store: LocalStore, name: str, size_bytes: int | None = None) -> LocalFile:
        # A task opens the file to read it; the plan that follows opens it once more.
        if name == str(log(held, 0)) and len(turns) < 12:
            turns.append(name)
            if len(turns) % 2:
                clean(log(held, 0), many(10))
        return really(store, name, size_bytes)

    monkeypatch.setattr(LocalStore, "open", replaced)
    assert offsets(read_tasks([str(held)], tasks)) == list(range(10))
    assert len(turns) == 12


def test_another_file_under_the_same_inode_is_no_damage(held: Path) -> None:
    write_log(held, {0: many(10)})
    tasks = plan_tasks([str(held)])
    cleaned = [*many(9)[::2], plain(10, [b"v" * 5000])]
    log(held, 0).write_bytes(b"".join(cleaned))  # In place: its inode's number stays.
    log(held, 11).touch()
    assert offsets(read_tasks([str(held)], tasks)) == [0, 2, 4, 6, 8]


def test_damage_is_told_of_the_file_that_still_has_it(held: Path) -> None:
    batches = many(10)
    batches[4] = batches[4][:-1] + b"!"
    write_log(held, {0: batches, 10: []})
    tasks = plan_tasks([str(held)])
    with pytest.raises(CorruptFileError, match="CRC-32C"):
        read_tasks([str(held)], tasks)


def test_open_transactions_of_another_file_under_the_same_inode(held: Path) -> None:
    before, opening = [plain(offset) for offset in range(10)], transactional(10, 5)
    assert {len(one) for one in before} == {len(opening)}
    write_log(held, {0: before})
    root = RawRoot([str(held)])
    assert root.open([NAME])[NAME].last_stable_offset() == 10
    log(held, 0).rename(log(held, 10))
    log(held, 10).write_bytes(b"".join([opening, *(plain(offset) for offset in range(11, 23))]))
    assert root.open([NAME])[NAME].last_stable_offset() == 10


def test_a_listing_says_which_file_a_name_is(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    store = LocalStore()
    (entry,) = store.entries(str(tmp_path))
    file = store.open(entry.path)
    file.close()
    assert entry.identity == file.identity
