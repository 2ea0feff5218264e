"""The work of jobs and their expected results, which are the same on every store.

The rule: the expected results are those of the same jobs on local disk, in one process and without
Spark.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import klog
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store.store_for_url import writable_store_for
from tests.corpus import scene
from tests.spark_faults.upkeep_driver import Step

PARTITIONS = 4
KEYS = 50
DAY_MS = 86_400_000
COMPACTED, EXPIRED, SMALL = "compacted", "expired", "small"
SCENE, TOPICS = "transactions", ("txn.interleaved", "txn.aborted")
ABORT = {"open_transactions": "abort"}
CONFIGS = {
    COMPACTED: {"cleanup.policy": "compact"},
    EXPIRED: {"retention.ms": str(7 * DAY_MS)},
    SMALL: {"retention.ms": "-1"},
}
DISTRIBUTED = ("import", "adopt", "compact", "merge", "verify", "vacuum")
"""The steps that run tasks; retention only changes metadata, in the driver."""


def make_root(root: Path) -> None:
    """Create topics in which each job has work to do, in every partition."""
    log, now = klog.open(root), time.time_ns() // 1_000_000
    for topic, config in CONFIGS.items():
        log.create_topic(topic, PARTITIONS, config)
        for batch in range(3):
            age_ms = 30 * DAY_MS if topic == EXPIRED and not batch else 0
            log.append(topic, _rows(batch, now - age_ms))


def _rows(batch: int, time_ms: int) -> pa.Table:
    numbers = range(batch * 100, batch * 100 + 100)
    return pa.table(
        {
            "key": [f"k{number * 7 % KEYS}" for number in numbers],
            "value": [None if number % 11 == 0 else str(number) for number in numbers],
            "partition": pa.array([number * 7 % PARTITIONS for number in numbers], pa.int32()),
            "timestamp": pa.array([time_ms] * len(numbers), pa.timestamp("ms", "UTC")),
        }
    )


def lay_out(work: Path, url: str, options: Mapping[str, str]) -> None:
    """Copy a root, and a broker's directory twice, to a URL on a store."""
    store, path = writable_store_for(url, parse_storage_options(options))
    (broker,) = scene(SCENE).log_dirs
    for name, folder in {"root": work, "broker": broker, "adopted": broker}.items():
        for file in sorted(folder.rglob("*")):
            if file.is_file() and (folder == work or _is_taken(file)):
                put_at = f"{path}/{name}/{file.relative_to(folder).as_posix()}"
                store.put(put_at, [file.read_bytes()])


def _is_taken(file: Path) -> bool:
    """Whether to copy a broker's file: on HDFS each file takes a while."""
    topic = file.parent.name.rpartition("-")[0]
    return not topic or (topic in TOPICS and file.suffix in (".log", ".metadata"))


def steps(place: str, url: str, export: Path, options: Mapping[str, str]) -> list[Step]:
    """Return one step for each job, and a verify step for each resulting root."""
    root, imported, adopted = (f"{url}/{name}" for name in ("root", "imported", "adopted"))
    all_of_it: dict[str, Any] = {"grace_ms": 0, "log_retention_ms": 0, "dry_run": False}
    jobs: list[tuple[str, str, str, dict[str, Any]]] = [
        ("import", "import_log", imported, {"source": f"{url}/broker", **ABORT}),
        ("adopt", "adopt", adopted, ABORT),
        ("compact", "compact", root, {"min_dirty_ratio": 0.0}),
        ("merge", "merge", root, {}),
        ("retain", "retain", root, {}),
        ("vacuum", "vacuum", root, all_of_it),
        ("export", "export_log", root, {"topic": None, "to": str(export)}),
        ("verify", "verify", root, {}),
        ("verify-imported", "verify", imported, {}),
        ("verify-adopted", "verify", adopted, {}),
    ]
    return [
        Step(f"{place}-{name}", job, at, arguments, options) for name, job, at, arguments in jobs
    ]


def records(root: str, options: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return all columns of the committed records of each topic."""
    words = {name.removeprefix("storage."): text for name, text in options.items()}
    log = klog.open(root, **words)
    columns = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
    return {
        topic: log.scan(topic, columns=columns).read_all().to_pylist() for topic in log.topics()
    }


def files(directory: Path) -> dict[str, bytes]:
    """Return the files of an export except compacted ones, which vary from run to run.

    Compacted batches have the time until which their tombstones stay.
    """
    return {
        name: (directory / name).read_bytes()
        for name in names(directory)
        if not name.startswith(f"{COMPACTED}-")
    }


def names(directory: Path) -> set[str]:
    """Return the names of the files of an export."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
