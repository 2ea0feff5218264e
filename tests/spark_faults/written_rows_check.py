"""The rows that jobs write, and a check that each is there once and in order.

The rule: the expected records follow from the numbers of the rows. All rows of a key are in the
files of one task in the order of their numbers, so that is the order of the key's records.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import klog
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    STORAGE_PREFIX,
    StorageOptions,
    parse_storage_options,
)
from klog.jobs import verify
from tests.spark_faults.job_driver import DEAD, FILES_PER_BATCH, OTHER, WRONG, Job

FILES, ROWS = 6, 40
MICRO_BATCHES = FILES // FILES_PER_BATCH
KEYS = 3
FIRST_TIME = 1_700_000_000


def key_of(number: int) -> str:
    """Return a row's key: `a` or `b` for its topic of two, its task's number, and its own."""
    return f"{'ab'[number % 2]}{number // ROWS % FILES_PER_BATCH}{number % KEYS}"


def write_rows(folder: Path) -> Path:
    """Write files of numbered rows, one for each task; a stream reads them in order."""
    folder.mkdir()
    for file in range(FILES):
        numbers = range(file * ROWS, (file + 1) * ROWS)
        path = folder / f"{file:02}.csv"
        path.write_text("".join(f"{number},{key_of(number)}\n" for number in numbers))
        os.utime(path, (FIRST_TIME + file, FIRST_TIME + file))
    return folder


def expected(job: Job, files: int = FILES) -> dict[str, list[int]]:
    """Return the expected numbers in each topic of a job after a number of files."""

    def numbers_where(take: Callable[[int], bool]) -> list[int]:
        return [number for number in range(files * ROWS) if take(number)]

    if job.kind in ("two", "batch two"):
        return {
            job.name: numbers_where(lambda number: key_of(number)[0] == "a"),
            f"{job.name}{OTHER}": numbers_where(lambda number: key_of(number)[0] == "b"),
        }
    if job.kind == "dead":
        return {
            job.name: numbers_where(lambda number: number % 10 != WRONG),
            f"{job.name}{DEAD}": numbers_where(lambda number: number % 10 == WRONG),
        }
    return {job.name: numbers_where(lambda number: True)}


def check(job: Job, storage: Mapping[str, str] | None = None, files: int = FILES) -> None:
    """Assert that a job's topics have each record once and in order, and that verify finds nothing.

    `storage` has a reader's options, without their prefix.
    """
    for topic, numbers in expected(job, files).items():
        _check_records(job.root, topic, numbers, storage or {})
        report = verify.run(None, job.root, topic, storage=_storage(storage))
        assert report.records == len(numbers)
        assert report.findings == ()


def _check_records(root: str, topic: str, numbers: list[int], storage: Mapping[str, str]) -> None:
    columns = ("partition", "offset", "key", "value")
    rows = klog.open(root, **storage).scan(topic, columns=columns).read_all().to_pylist()
    assert sorted(int(row["value"]) for row in rows) == numbers, topic
    by_key: dict[str, list[int]] = defaultdict(list)
    ends: dict[int, int] = defaultdict(int)
    places: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        assert row["offset"] == ends[row["partition"]], topic
        ends[row["partition"]] += 1
        key = row["key"].decode()
        by_key[key].append(int(row["value"]))
        places[key].add(row["partition"])
    assert len(ends) > 1, topic
    for key, values in by_key.items():
        assert values == [number for number in numbers if key_of(number) == key], (topic, key)
        assert len(places[key]) == 1, (topic, key)


def live_files(job: Job, storage: Mapping[str, str] | None = None) -> set[str]:
    """Return the live files of a job's topics."""
    root = find_root(job.root, _storage(storage))
    assert root is not None
    files: set[str] = set()
    for topic in expected(job):
        files |= set(root.log_to_read(topic).load().segments["file"].to_pylist())
    return files


def _storage(storage: Mapping[str, str] | None) -> StorageOptions:
    if storage is None:
        return NO_STORAGE_OPTIONS
    return parse_storage_options(
        {f"{STORAGE_PREFIX}{word}": text for word, text in storage.items()}
    )
