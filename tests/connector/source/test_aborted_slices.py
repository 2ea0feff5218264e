"""Slices of a broker's directory say what its `.txnindex` files call aborted, and no more.

The rule: whatever the files say or have lost, rows are those that the markers alone would give.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from klog.connector.source import aborted_filter
from klog.connector.source.slice_contract import TaskDict, expand_task, to_dict
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.indexes.transaction_index import (
    NO_ABORTED_TRANSACTIONS,
    AbortedTransaction,
    encode_aborted,
)
from tests.connector.log_dirs import offsets, plan_tasks, read_tasks, write_log
from tests.corpus import SCENES, scene
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional

LIMIT = 1 << 40
"""After the end of every log here."""


@dataclass
class TransactionalLog:
    """A log of random transactions, written as a broker writes it; and what a reader sees of it."""

    segments: dict[int, list[bytes]] = field(default_factory=lambda: {0: []})
    indexes: dict[int, list[AbortedTransaction]] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)
    visible: list[int] = field(default_factory=list)
    next_offset: int = 0

    def append(self, random_: random.Random, abort_share: float) -> None:
        offset, producer = self.next_offset, random_.randrange(4)
        segment = self.segments[max(self.segments)]
        kind = random_.random()
        if kind < 0.2:
            segment.append(plain(offset))
            self.visible.append(offset)
        elif kind < 0.6 or producer not in self.open:
            segment.append(transactional(offset, producer))
            self.open.setdefault(producer, []).append(offset)
        else:
            self._end(producer, COMMIT if random_.random() > abort_share else ABORT)
        self.next_offset += 1
        if random_.random() < 0.15:
            self.segments[self.next_offset] = []

    def _end(self, producer: int, kind: int) -> None:
        offset, data = self.next_offset, self.open.pop(producer)
        self.segments[max(self.segments)].append(marker(offset, producer, kind))
        if kind == COMMIT:
            self.visible += data
            return
        stable_offset = min((first for first, *_ in self.open.values()), default=offset + 1)
        entry = AbortedTransaction(producer, data[0], offset, stable_offset)
        self.indexes.setdefault(max(self.segments), []).append(entry)

    @property
    def stable_offset(self) -> int:
        return min((first for first, *_ in self.open.values()), default=self.next_offset)

    def write(self, root: Path) -> Path:
        directory = write_log(root, self.segments)
        for base, entries in self.indexes.items():
            data = encode_aborted(NO_ABORTED_TRANSACTIONS.with_entries(entries))
            (directory / segment_file_name(base, "txnindex")).write_bytes(data)
        return directory


def random_log(seed: int) -> TransactionalLog:
    random_, log = random.Random(seed), TransactionalLog()
    abort_share = random_.choice([0.0, 0.3, 1.0])
    for _ in range(random_.randrange(20, 80)):
        log.append(random_, abort_share)
    return log


def undecided(tasks: list[TaskDict]) -> list[TaskDict]:
    """Return tasks that say nothing about aborted transactions: the markers decide."""
    return [
        [
            to_dict(replace(slice_, aborted=[], markers_end_offset=LIMIT))
            for slice_ in expand_task(task)
        ]
        for task in tasks
    ]


def lose(directory: Path, random_: random.Random) -> None:
    """Remove, empty or tear some indexes, or take any of their entries."""
    for path in sorted(directory.glob("*.txnindex")):
        data = path.read_bytes()
        match random_.randrange(6):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(b"")
            case 2:
                path.write_bytes(data[: -random_.randrange(1, 34)])
            case 3:
                entries = [data[start : start + 34] for start in range(0, len(data), 34)]
                path.write_bytes(b"".join(entry for entry in entries if random_.random() < 0.5))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("has_lost_indexes", [False, True], ids=["intact", "lost"])
def test_rows_are_those_that_the_markers_give(
    tmp_path: Path, seed: int, has_lost_indexes: bool
) -> None:
    log = random_log(seed)
    directory = log.write(tmp_path)
    if has_lost_indexes:
        lose(directory, random.Random(seed))
    expected = sorted(offset for offset in log.visible if offset < log.stable_offset)
    root = [str(tmp_path)]
    for options in ({}, {"minPartitions": "7"}):
        tasks = plan_tasks(root, **options)
        assert offsets(read_tasks(root, tasks)) == expected
        assert offsets(read_tasks(root, undecided(tasks))) == expected


@pytest.mark.parametrize("name", SCENES)
def test_rows_of_brokers_are_those_that_the_markers_give(name: str) -> None:
    dirs = [str(path) for path in scene(name).log_dirs]
    for topic, partition in scene(name).partitions():
        tasks = plan_tasks(dirs, assign=f'{{"{topic}":[{partition}]}}')
        rows = read_tasks(dirs, tasks, columns="offset,value")
        assert rows == read_tasks(dirs, undecided(tasks), columns="offset,value")


LOST_AND_GONE_ON = {
    "an earlier segment's index is lost": (
        {0: [transactional(0, 5)],
         1: [marker(1, 5, ABORT), transactional(2, 6), marker(3, 6, ABORT), plain(4)]},
        {1: [AbortedTransaction(6, 2, 3, 4)]}, [4],
    ),
    "an index that is lost goes on in a new file": (
        {0: [transactional(0, 5), marker(1, 5, ABORT), transactional(2, 6), marker(3, 6, ABORT)]},
        {0: [AbortedTransaction(6, 2, 3, 4)]}, [],
    ),
    "the broker has forgotten an open transaction": (
        {0: [transactional(0, 5)],
         1: [transactional(1, 6), marker(2, 6, ABORT), marker(3, 5, ABORT), plain(4)]},
        {1: [AbortedTransaction(6, 1, 2, 3)]}, [4],
    ),
}  # fmt: skip
"""What a broker leaves that goes on after a loss: an entry whose last stable offset is later."""


@pytest.mark.parametrize("name", LOST_AND_GONE_ON)
def test_a_later_entry_does_not_prove_an_index_complete(tmp_path: Path, name: str) -> None:
    segments, indexes, expected = LOST_AND_GONE_ON[name]
    TransactionalLog(segments, indexes).write(tmp_path)
    root = [str(tmp_path)]
    assert offsets(read_tasks(root, plan_tasks(root))) == expected


def abort_log() -> TransactionalLog:
    """Return a log of two segments, with a transaction that spans both; all of it is aborted."""
    return TransactionalLog(
        {0: [transactional(0, 5), marker(1, 5, ABORT), transactional(2, 6)],
         3: [marker(3, 6, ABORT), plain(4)]},
        {0: [AbortedTransaction(5, 0, 1, 2)], 3: [AbortedTransaction(6, 2, 3, 4)]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("end_offset", "expected"),
    [
        (2, [(5, [[5, 0, 1]])]),
        (3, [(5, [[5, 0, 1], [6, 2, 3]])]),
        (5, [(5, [[5, 0, 1], [6, 2, 3]]), (5, [[6, 2, 3]])]),
    ],
)
def test_a_slice_has_what_the_indexes_say_of_its_offsets(
    tmp_path: Path, end_offset: int, expected: list[Any]
) -> None:
    abort_log().write(tmp_path)
    tasks = plan_tasks([str(tmp_path)], endingOffsets=f'{{"t":{{"0":{end_offset}}}}}')
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    assert [(slice_.markers_end_offset, slice_.aborted) for slice_ in slices] == expected


def test_uncommitted_reads_have_no_flag(tmp_path: Path) -> None:
    abort_log().write(tmp_path)
    tasks = plan_tasks([str(tmp_path)], isolationLevel="read_uncommitted")
    slices = [slice_ for task in tasks for slice_ in expand_task(task)]
    assert [(slice_.markers_end_offset, slice_.aborted) for slice_ in slices] == [(-1, [])] * 2


def test_task_lists_no_directory_if_its_markers_are_in_its_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionalLog(
        {0: [transactional(0, 5), transactional(1, 6), marker(2, 5, ABORT), marker(3, 6, COMMIT)],
         4: [transactional(4, 5), marker(5, 5, ABORT)]},
        {4: [AbortedTransaction(5, 4, 5, 6)]},
    )  # fmt: skip
    log.write(tmp_path)
    monkeypatch.setattr(aborted_filter, "list_consistently", pytest.fail)
    root = [str(tmp_path)]
    assert offsets(read_tasks(root, plan_tasks(root))) == [1]
