"""Jobs as Spark tasks leave the same files and records as in one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.errors import CorruptFileError
from klog.jobs import compact, export_log, merge, vacuum, verify
from klog.jobs.shared import spark_tasks
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.marking import cleaning_workload
from klog.jobs.shared.marking.compiled_kernels import LOADING_COST_RECORDS
from klog.jobs.shared.process_shares import remaining_workloads
from klog.logformat.cleaning.offset_map import MIN_MAP_BYTES

CONFIG = {"cleanup.policy": "compact"}
KEYS = 12_000
"""More keys of a partition than the smallest map holds."""


@pytest.fixture
def roots(tmp_path: Path) -> tuple[str, str]:
    """Return two roots with the same records, in several segments of each partition."""
    paths = []
    for name in ("one", "two"):
        log = klog.open(tmp_path / name)
        log.create_topic("t", partitions=3, config=CONFIG)
        for batch in range(6):
            numbers = range(batch * 4000, batch * 4000 + 4000)
            keys = [f"k{number * 7 % KEYS}" for number in numbers]
            values = [None if number % 11 == 0 else str(number) for number in numbers]
            log.append("t", pa.table({"key": keys, "value": values}))
        paths.append(str(tmp_path / name))
    return paths[0], paths[1]


def records(root: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = klog.open(root).scan("t").read_all().to_pylist()
    columns = ("partition", "offset", "key", "value")
    selected = [{name: row[name] for name in columns} for row in rows]
    return sorted(selected, key=lambda row: (str(row["partition"]), int(str(row["offset"]))))


@pytest.mark.spark
def test_jobs_on_spark_match_jobs_in_one_process(
    spark: SparkSession, roots: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = roots
    reports = [compact.run(None, here, "t")]
    # On Spark numba's loops run, because each task has that much left to do. Memory is small, so a
    # partition is marked for one range of keys after the other.
    monkeypatch.setattr(cleaning_workload, "BATCH_RECORDS", LOADING_COST_RECORDS)
    reports.append(compact.run(spark, there, "t", map_bytes=MIN_MAP_BYTES))
    assert records(here) == records(there)
    assert len(records(here)) == KEYS
    local_counts, spark_counts = (
        [partition.records_after for partition in report.partitions] for report in reports
    )
    assert local_counts == spark_counts
    for batch in range(3):
        for root in roots:
            klog.open(root).append("t", pa.table({"key": ["new"], "value": [str(batch)]}))
    for session, root in ((None, here), (spark, there)):
        merged = merge.run(session, root)
        assert sum(partition.segments_after for partition in merged.partitions) < sum(
            partition.segments for partition in merged.partitions
        )
        verified = verify.run(session, root)
        assert verified.findings == ()
        assert verified.records == KEYS + 3
        assert vacuum.run(session, root).exit_code == 0
    assert records(here) == records(there)


@pytest.mark.spark
def test_tasks_are_shared_by_the_processes_of_spark(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2]"
    assert remaining_workloads(spark, [10, 10, 10, 10]) == [20, 15, 10, 10]


def files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.mark.spark
def test_export_runs_as_tasks_if_they_reach_its_directory(
    spark: SparkSession, roots: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, at = tmp_path / "here", tmp_path / "there", 1_700_000_000_000
    export_log.run(None, roots[0], "t", str(here), clock_ms=lambda: at)
    sessions = []

    def run_and_record(session: Any, *args: Any) -> Any:
        sessions.append(session)
        return run_tasks(session, *args)

    monkeypatch.setattr("klog.jobs.exporting.export_tasks.run_tasks", run_and_record)
    export_log.run(spark, roots[0], "t", str(there), clock_ms=lambda: at)
    assert sessions == [spark]
    assert len(files(here)) > 3
    assert files(there) == files(here)
    damaged = next(Path(roots[0]).glob("t-1/*.log"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="t-1: corrupt log"):
        export_log.run(spark, roots[0], "t", str(tmp_path / "none"))
    assert [path.name for path in (tmp_path / "none").iterdir()] == [".lock"]


@pytest.mark.spark
def test_failure_of_a_task_is_reported_for_its_partition(
    spark: SparkSession, roots: tuple[str, str]
) -> None:
    root = Path(roots[0])
    damaged = next(root.glob("t-1/*.log"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    report = compact.run(spark, str(root), "t")
    assert [partition.failure is None for partition in report.partitions] == [True, False, True]
    failure = report.partitions[1].failure
    assert failure is not None
    assert (failure.file, failure.position) == (str(damaged), damaged.stat().st_size)
    assert report.exit_code == 1
    assert "\n" not in "".join(report.lines())
    assert merge.run(spark, str(root), "t").partitions[1].failure == failure


@pytest.mark.spark
def test_tasks_need_no_pandas(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """klog does not install pandas, and some of PySpark's ways to run Python need it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert list(run_tasks(spark, abs, [-2, 0, -1], "task")) == [2, 0, 1]


CANARY = "canary0sings"


def reverse_secret(task: tuple[StorageOptions, str, int]) -> tuple[str, str, int]:
    """Return what a task has, reversed, to show that the task got it."""
    storage, root, number = task
    return dict(storage.values)["secret_access_key"][::-1], root[::-1], number


@pytest.mark.spark
def test_no_secret_of_a_task_is_shown(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans, DataFrames and the event log of several waves show none."""
    frames: list[DataFrame] = []
    create = type(spark).createDataFrame

    def create_and_record(self: SparkSession, *args: Any, **kwargs: Any) -> DataFrame:
        frames.append(create(self, *args, **kwargs))
        return frames[-1]

    monkeypatch.setattr(type(spark), "createDataFrame", create_and_record)
    monkeypatch.setattr(spark_tasks, "WAVE_TASKS", 2)
    storage = parse_storage_options({"storage.secret_access_key": CANARY})
    url = f"webhdfs://user:{CANARY}@host/root"
    tasks = ((storage, url, number) for number in range(5))
    with event_log(spark, tmp_path) as log:
        results = list(run_tasks(spark, reverse_secret, tasks, "show"))
    assert results == [(CANARY[::-1], url[::-1], number) for number in range(5)]
    assert len(frames) == 3
    outputs = [repr(frame.collect()) for frame in frames]
    for frame in frames:
        execution = cast(Any, frame)._jdf.queryExecution()
        outputs += [execution.toString(), execution.analyzed().toJSON()]
    events = log.read_text()
    assert "BatchEvalPython" in events
    assert "payload" in events
    assert CANARY not in "".join(outputs)
    assert CANARY not in events


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[Path]:
    """Have Spark write its event log, the source of its UI, while the block runs."""
    jvm, context = cast(Any, spark)._jvm, cast(Any, spark).sparkContext._jsc.sc()
    conf = context.conf().clone()
    for name in ("compress", "rolling.enabled"):
        conf.set(f"spark.eventLog.{name}", "false")
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "events",
        jvm.scala.Option.empty(),
        jvm.java.net.URI(folder.as_uri()),
        conf,
        context.hadoopConfiguration(),
    )
    listener.start()
    context.addSparkListener(listener)
    try:
        yield folder / "events"
    finally:
        context.listenerBus().waitUntilEmpty()
        context.removeSparkListener(listener)
        listener.stop()
