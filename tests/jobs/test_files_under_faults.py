"""Runs of to-files and import-files whose puts fail, get lost, or sleep while other runs go on.

The rule: a seed decides what happens at each put: the run dies before or after it, its answer is
lost, or other things happen first: a complete run of the job, new records or files, a compaction,
a file that changes. A run that goes on after another is one that has slept. After each seed one run
without faults ends the work, and every record is there once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.connector.store.local_store import LocalStore
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitConflictError, KlogError
from klog.jobs import compact, import_files, to_files
from klog.jobs.importing_files import import_ledger, import_plan
from tests.jobs.file_rows import START_MS, directory_rows, log_rows, manifest_rows

SEEDS = [
    *range(12),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 24)),
    *(pytest.param(seed, marks=[pytest.mark.slow, pytest.mark.full]) for seed in range(24, 120)),
]
MAX_DEPTH = 3


class KilledError(Exception):
    """A run ends here."""


class Faults:
    """What happens at each put of the paths that a job decides by."""

    def __init__(self, seed: int, words: tuple[str, ...], happen: Callable[[], None]) -> None:
        self._random, self._words, self._happen = random.Random(seed), words, happen
        self._depth, self._real = 0, LocalStore.put_if_absent
        self.are_on = True

    def put_if_absent(self, store: LocalStore, path: str, data: bytes) -> PutResult:
        """Put a file, or not."""
        if not self.are_on or not any(word in path for word in self._words):
            return self._real(store, path, data)
        fault = self._random.random()
        if fault < 0.08:
            raise KilledError
        if fault < 0.16:
            self._real(store, path, data)
            raise KilledError
        if fault < 0.22:
            return PutResult.UNKNOWN
        if fault < 0.28:
            self._real(store, path, data)
            return PutResult.UNKNOWN
        if fault < 0.5 and self._depth < MAX_DEPTH:
            self._depth += 1
            try:
                self._happen()
            finally:
                self._depth -= 1
        return self._real(store, path, data)


def attempt(run: Callable[[], object]) -> None:
    """Run a job that may die, or lose a race that its message names."""
    with suppress(KilledError, CommitConflictError):
        run()


@pytest.mark.parametrize("seed", SEEDS)
def test_to_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, to = tmp_path / "root", tmp_path / "files"
    choices = random.Random(seed)
    log = klog.open(str(root))
    log.create_topic("t", 2, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    written: set[tuple[int, int, bytes]] = set()

    def append() -> None:
        log.append("t", keyed(choices, choices.randrange(1, 6)))
        written.update(keys(log_rows(root, "t")))

    def copy() -> None:
        options = {"maxOffsetsPerTrigger": str(choices.randrange(1, 8))}
        to_files.run(None, str(root), "t", str(to), options=options)

    def happen() -> None:
        event = choices.choice(["append", "copy", "compact"])
        if event == "append":
            append()
        elif event == "copy":
            attempt(copy)
        else:
            compact.run(None, str(root), "t")
        check()

    def check() -> None:
        there = keys(directory_rows(to / "t"))
        assert len({key[:2] for key in there}) == len(there), "a record is there twice"
        assert set(there) <= written, "a record is there that never was in the log"

    faults = Faults(seed, (str(to),), happen)
    monkeypatch.setattr(LocalStore, "put_if_absent", faults_put(faults))
    append()
    for _ in range(6):
        attempt(copy)
        check()
        append()
    faults.are_on = False
    to_files.run(None, str(root), "t", str(to), remove_orphans=True)
    check()
    listed = keys(manifest_rows(to / "t"))
    assert keys(directory_rows(to / "t")) == listed
    assert set(keys(log_rows(root, "t"))) <= set(listed), "a record is lost"


class SourceFolder:
    """A directory of files that come, are wrong and get corrected."""

    def __init__(self, path: Path, choices: random.Random) -> None:
        path.mkdir()
        self.path, self._choices, self._numbers = path, choices, count()

    def add(self) -> None:
        for _ in range(self._choices.randrange(1, 4)):
            self._write('{"n":%d}\n')

    def spoil(self) -> None:
        """Write a file that is wrong, for runs that read a field."""
        self._write("wrong %d\n")

    def correct(self) -> None:
        for path in self.path.glob("*.json"):
            text = path.read_text()
            if text.startswith("wrong"):
                path.write_text(f'{{"n":{text.split()[1]},"was":"wrong"}}\n')

    def lines(self) -> list[bytes]:
        return sorted(path.read_bytes().rstrip() for path in self.path.glob("*.json"))

    def _write(self, text: str) -> None:
        number = next(self._numbers)
        name = f"{self._choices.randrange(9)}-{number:03}.json"
        (self.path / name).write_text(text % number)


@pytest.mark.parametrize("seed", SEEDS)
def test_import_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, choices = tmp_path / "root", random.Random(seed)
    source = SourceFolder(tmp_path / "source", choices)
    log = klog.open(str(root))
    log.create_topic("t", 1)
    monkeypatch.setattr(import_plan, "MAX_BATCH_FILES", 2)
    monkeypatch.setattr(import_ledger, "FULL_ENTRIES", 3)

    def run() -> None:
        import_files.run(None, str(root), "t", str(source.path), key="n")

    def copy() -> None:
        try:
            run()
        except KlogError as exc:
            if not any(reason in str(exc) for reason in ("no field n", "JSON object", "bytes")):
                raise

    def happen() -> None:
        again = lambda: attempt(copy)  # noqa: E731
        choices.choice([source.add, again, again, source.spoil, source.correct])()

    faults = Faults(seed, ("/_klog/imports/", "/topics/t/log/"), happen)
    monkeypatch.setattr(LocalStore, "put_if_absent", faults_put(faults))
    for _ in range(8):
        source.add()
        attempt(copy)
        source.correct()
    faults.are_on = False
    run()
    assert sorted(row["value"] for row in log_rows(root, "t")) == source.lines()


def faults_put(faults: Faults) -> Callable[[LocalStore, str, bytes], PutResult]:
    def put_if_absent(store: LocalStore, path: str, data: bytes) -> PutResult:
        return faults.put_if_absent(store, path, data)

    return put_if_absent


def keyed(choices: random.Random, row_count: int) -> pa.Table:
    numbers = [choices.randrange(6) for _ in range(row_count)]
    return pa.table(
        {
            "key": [f"k{number}" for number in numbers],
            "value": [f"{choices.random()}" for _ in numbers],
            "timestamp": pa.array(
                [START_MS + choices.randrange(3) * 3_600_000 for _ in numbers],
                pa.timestamp("ms", "UTC"),
            ),
        }
    )


def keys(rows: list[dict[str, object]]) -> list[tuple[int, int, bytes]]:
    return sorted(
        (int(str(row["partition"])), int(str(row["offset"])), bytes(row["value"] or b""))  # type: ignore[call-overload]
        for row in rows
    )
