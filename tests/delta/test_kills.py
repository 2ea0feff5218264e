"""SIGKILL of to-delta at each of its steps, and of what it runs on; two real runs at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from klog.jobs.copying_to_delta.batch_writer import MODES
from klog.jobs.to_delta import run
from tests.delta.copied_rows import TOPIC, append, new_log, rows_of_table, rows_of_topic
from tests.delta.copy_process import CopyProcess, commits, data_files
from tests.delta.killed_executors import ExecutorKills
from tests.spark_faults.standalone_cluster import Cluster

pytestmark = [pytest.mark.delta, pytest.mark.slow]

BATCH = 40
RECORDS = 400
STEPS: dict[str, tuple[Callable[[Path], int], int]] = {
    "the table was created": (commits, 1),
    "a file is written, and no commit": (data_files, 1),
    "a commit has landed": (commits, 1),
    "the next batch is on its way": (data_files, 4),
}
"""What is seen of the table when a run is killed: so many more commits or data files."""
IN_CI = ["the next batch is on its way"]


def records(start: int, end: int) -> list[tuple[str | None, str | None]]:
    return [(f"k{number}", f"v{number}") for number in range(start, end)]


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        pytest.param("append", IN_CI, id="ci"),
        *(pytest.param(mode, [*STEPS], id=mode, marks=pytest.mark.full) for mode in MODES),
    ],
)
def test_killed_at_each_step(
    delta_spark: SparkSession, tmp_path: Path, mode: str, steps: Sequence[str]
) -> None:
    """Each run is killed at its step; the last one ends. Each record is in the table once."""
    root, table = tmp_path / "root", tmp_path / "table"
    log = new_log(str(root))
    append(log, records(0, RECORDS))
    _kill_at_each_step(tmp_path, ["--mode", mode], steps)
    assert rows_of_table(delta_spark, str(table)) == rows_of_topic(log)


@pytest.mark.full
def test_killed_with_dead_letters(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Values of four bytes are integers, the others are dead letters; each is there once."""
    append(new_log(str(tmp_path / "root")), records(0, RECORDS))
    dead = str(tmp_path / "dead")
    options = ["-s", "key=string", "-s", "value=integer"]
    _kill_at_each_step(
        tmp_path, [*options, "--on-error", "dead-letters", "--dead-letter-table", dead], [*STEPS]
    )
    keys = [
        [row["key"] for row in delta_spark.read.format("delta").load(path).select("key").collect()]
        for path in (str(tmp_path / "table"), dead)
    ]
    decoded = [f"k{number}" for number in range(100, RECORDS)]
    assert sorted(keys[0]) == sorted(decoded)
    assert sorted(map(bytes, keys[1])) == sorted(f"k{number}".encode() for number in range(100))


def after(count: Callable[[Path], int], table: Path, more: int) -> Callable[[], bool]:
    """Return a function: whether a table has so many more commits or data files than now."""
    number = count(table)
    return lambda: count(table) >= number + more


def _kill_at_each_step(folder: Path, options: Sequence[str], steps: Sequence[str]) -> None:
    root, table = folder / "root", folder / "table"
    arguments = [
        *("--root", str(root), "--topic", TOPIC, "--table", str(table), *options),
        *("--option", f"maxOffsetsPerTrigger={BATCH}"),
    ]
    for number, (count, more) in enumerate(map(STEPS.__getitem__, steps)):
        with CopyProcess(folder / str(number), arguments) as process:
            process.wait_until(after(count, table, more))
    with CopyProcess(folder / "last", arguments) as process:
        report = process.report()
    assert report["partitions"][0]["startOffset"] > 0, "no killed run has committed anything"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.full
def test_two_real_runs_and_a_topic_that_grows(
    delta_spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    root, table = tmp_path / "root", tmp_path / "table"
    log = new_log(str(root))
    append(log, records(0, RECORDS))
    run(delta_spark, str(root), TOPIC, str(table), mode=mode)
    before = commits(table)
    append(log, records(RECORDS, 2 * RECORDS))
    arguments = ["--root", str(root), "--topic", TOPIC, "--table", str(table), "--mode", mode]
    arguments += ["--option", f"maxOffsetsPerTrigger={BATCH}"]
    is_over = threading.Event()

    def grow() -> None:
        number = 2 * RECORDS
        while not is_over.wait(0.5):
            append(log, records(number, number + 5))
            number += 5

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        with (
            CopyProcess(tmp_path / "a", arguments) as first,
            CopyProcess(tmp_path / "b", arguments) as second,
        ):
            reports = [first.report(), second.report()]
    finally:
        is_over.set()
        thread.join()
    assert commits(table) == before + sum(report["batches"] for report in reports)
    assert sum(report["rowsInserted"] for report in reports) >= RECORDS
    run(delta_spark, str(root), TOPIC, str(table), mode=mode)
    assert rows_of_table(delta_spark, str(table)) == rows_of_topic(log)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_continuous_runs_are_killed(delta_spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """The second run follows a topic that grows, round by round, from where the first one was."""
    root, table = tmp_path / "root", tmp_path / "table"
    log = new_log(str(root))
    arguments = ["--root", str(root), "--topic", TOPIC, "--table", str(table), "--mode", mode]
    arguments += ["--continuous", "--interval", "100ms"]
    for start in (0, 30):
        with CopyProcess(tmp_path / str(start), arguments) as process:
            for number in range(start, start + 30, 10):
                is_copied = after(commits, table, 1)
                append(log, records(number, number + 10))
                process.wait_until(is_copied)
    run(delta_spark, str(root), TOPIC, str(table), mode=mode)
    assert rows_of_table(delta_spark, str(table)) == rows_of_topic(log)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_python_worker(delta_spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Spark runs the task again, and its second file is the one that is committed."""
    root, table = tmp_path / "root", tmp_path / "table"
    log = new_log(str(root))
    append(log, records(0, RECORDS))
    arguments = ["--root", str(root), "--topic", TOPIC, "--table", str(table), "--mode", mode]
    arguments += ["--option", "engine=python", "--option", f"maxOffsetsPerTrigger={BATCH}"]
    killed: list[int] = []

    def kill_a_worker(process: CopyProcess) -> bool:
        for child in psutil.Process(process.process.pid).children(recursive=True):
            try:
                words = child.cmdline()
            except psutil.Error:
                continue
            if "pyspark.daemon" in words and child.parent() and commits(table) > 2:
                for worker in child.children():
                    os.kill(worker.pid, signal.SIGKILL)
                    killed.append(worker.pid)
        return bool(killed)

    settings = {"spark.master": "local[2,4]"}
    with CopyProcess(tmp_path / "run", arguments, **settings) as process:
        process.wait_until(lambda: kill_a_worker(process))
        process.report()
    assert killed
    assert rows_of_table(delta_spark, str(table)) == rows_of_topic(log)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_killed_executors(
    delta_spark: SparkSession, tmp_path: Path, engine: str, mode: str
) -> None:
    """On a cluster of two workers: an executor is killed at each commit of the first ones."""
    root, table = tmp_path / "root", tmp_path / "table"
    log = new_log(str(root))
    append(log, records(0, RECORDS))
    arguments = ["--root", str(root), "--topic", TOPIC, "--table", str(table), "--mode", mode]
    arguments += ["--option", f"engine={engine}", "--option", f"maxOffsetsPerTrigger={BATCH}"]
    with Cluster(tmp_path / "cluster") as cluster:
        kills = ExecutorKills(cluster, table)
        with CopyProcess(tmp_path / "run", arguments, **kills.settings()) as process:
            process.wait_until(kills.are_done)
            process.report()
    assert rows_of_table(delta_spark, str(table)) == rows_of_topic(log)
