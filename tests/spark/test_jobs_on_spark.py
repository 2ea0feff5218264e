"""Jobs as Spark tasks: what they leave is what they leave in one process."""

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
from klog.connector.compiled_kernels import LOADING_COST_RECORDS
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.errors import CorruptFileError
from klog.jobs import compact, export_log, merge, vacuum, verify
from klog.jobs.shared import spark_tasks
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.marking import cleaning_workload
from klog.jobs.shared.process_shares import remaining_workloads
from klog.logformat.cleaning.offset_map import MIN_MAP_BYTES

CONFIG = {"cleanup.policy": "compact"}
KEYS = 12_000
"""More than the least memory holds of a partition."""


@pytest.fixture
def roots(tmp_path: Path) -> tuple[str, str]:
    """Give two roots with the same records, in several segments of each partition."""
    made = []
    for name in ("one", "two"):
        log = klog.open(tmp_path / name)
        log.create_topic("t", partitions=3, config=CONFIG)
        for batch in range(6):
            numbers = range(batch * 4000, batch * 4000 + 4000)
            keys = [f"k{number * 7 % KEYS}" for number in numbers]
            values = [None if number % 11 == 0 else str(number) for number in numbers]
            log.append("t", pa.table({"key": keys, "value": values}))
        made.append(str(tmp_path / name))
    return made[0], made[1]


def records(root: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = klog.open(root).scan("t").read_all().to_pylist()
    kept = ("partition", "offset", "key", "value")
    found = [{name: row[name] for name in kept} for row in rows]
    return sorted(found, key=lambda row: (str(row["partition"]), int(str(row["offset"]))))


@pytest.mark.spark
def test_on_spark_as_in_one_process(
    spark: SparkSession, roots: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = roots
    reports = [compact.run(None, here, "t")]
    # There by loops that numba compiled, for each task brings so much that is still to do, and
    # with little memory, so that a partition is marked for one range of keys after the other.
    monkeypatch.setattr(cleaning_workload, "BATCH_RECORDS", LOADING_COST_RECORDS)
    reports.append(compact.run(spark, there, "t", map_bytes=MIN_MAP_BYTES))
    assert records(here) == records(there)
    assert len(records(here)) == KEYS
    assert [one.records_after for one in reports[0].partitions] == [
        one.records_after for one in reports[1].partitions
    ]
    for batch in range(3):
        for root in roots:
            klog.open(root).append("t", pa.table({"key": ["new"], "value": [str(batch)]}))
    for session, root in ((None, here), (spark, there)):
        merged = merge.run(session, root)
        assert sum(one.segments_after for one in merged.partitions) < sum(
            one.segments for one in merged.partitions
        )
        found = verify.run(session, root)
        assert found.findings == ()
        assert found.records == KEYS + 3
        assert vacuum.run(session, root).exit_code == 0
    assert records(here) == records(there)


@pytest.mark.spark
def test_spark_says_how_many_processes_share_the_tasks(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2]"
    assert remaining_workloads(spark, [10, 10, 10, 10]) == [20, 15, 10, 10]


def files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.mark.spark
def test_an_export_is_tasks_where_they_reach_its_directory(
    spark: SparkSession, roots: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, at = tmp_path / "here", tmp_path / "there", 1_700_000_000_000
    export_log.run(None, roots[0], "t", str(here), clock_ms=lambda: at)
    sessions = []

    def seen(session: Any, *given: Any) -> Any:
        sessions.append(session)
        return run_tasks(session, *given)

    monkeypatch.setattr("klog.jobs.exporting.export_tasks.run_tasks", seen)
    export_log.run(spark, roots[0], "t", str(there), clock_ms=lambda: at)
    assert sessions == [spark]
    assert len(files(here)) > 3
    assert files(there) == files(here)
    hurt = next(Path(roots[0]).glob("t-1/*.log"))
    hurt.write_bytes(hurt.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="t-1: corrupt log"):
        export_log.run(spark, roots[0], "t", str(tmp_path / "none"))
    assert [path.name for path in (tmp_path / "none").iterdir()] == [".lock"]


@pytest.mark.spark
def test_what_a_task_raises_is_told_of_its_partition(
    spark: SparkSession, roots: tuple[str, str]
) -> None:
    root = Path(roots[0])
    hurt = next(root.glob("t-1/*.log"))
    hurt.write_bytes(hurt.read_bytes()[:-1])
    report = compact.run(spark, str(root), "t")
    assert [one.failure is None for one in report.partitions] == [True, False, True]
    failure = report.partitions[1].failure
    assert failure is not None
    assert (failure.file, failure.position) == (str(hurt), hurt.stat().st_size)
    assert report.exit_code == 1
    assert "\n" not in "".join(report.lines())
    assert merge.run(spark, str(root), "t").partitions[1].failure == failure


@pytest.mark.spark
def test_tasks_need_no_pandas(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """klog does not bring it, and of PySpark's ways to run Python some ask for it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert list(run_tasks(spark, abs, [-2, 0, -1], "task")) == [2, 0, 1]


CANARY = "canary0sings"


def shown(task: tuple[StorageOptions, str, int]) -> tuple[str, str, int]:
    """Give what a task has, so that it is known to have come there."""
    storage, root, number = task
    return dict(storage.values)["secret_access_key"][::-1], root[::-1], number


@pytest.mark.spark
def test_no_secret_of_a_task_is_shown(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither plans, nor what a DataFrame holds, nor the event log, of several waves."""
    frames: list[DataFrame] = []
    made = type(spark).createDataFrame

    def noted(self: SparkSession, *given: Any, **named: Any) -> DataFrame:
        frames.append(made(self, *given, **named))
        return frames[-1]

    monkeypatch.setattr(type(spark), "createDataFrame", noted)
    monkeypatch.setattr(spark_tasks, "WAVE_TASKS", 2)
    storage = parse_storage_options({"storage.secret_access_key": CANARY})
    url = f"webhdfs://user:{CANARY}@host/root"
    given = ((storage, url, number) for number in range(5))
    with event_log(spark, tmp_path) as log:
        done = list(run_tasks(spark, shown, given, "show"))
    assert done == [(CANARY[::-1], url[::-1], number) for number in range(5)]
    assert len(frames) == 3
    said = [repr(frame.collect()) for frame in frames]
    for frame in frames:
        execution = cast(Any, frame)._jdf.queryExecution()
        said += [execution.toString(), execution.analyzed().toJSON()]
    events = log.read_text()
    assert "BatchEvalPython" in events
    assert "payload" in events
    assert CANARY not in "".join(said)
    assert CANARY not in events


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[Path]:
    """Have Spark write its event log, of which its UI is made, while something is done."""
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
