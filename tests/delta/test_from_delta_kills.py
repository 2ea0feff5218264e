"""SIGKILL of from-delta at each of its steps, of workers and of executors: every change once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import klog
from klog.jobs import verify
from tests.delta.changed_table import ChangedTable
from tests.delta.copied_rows import TOPIC
from tests.delta.from_delta_process import NO_SETTINGS, PYTHON_PATH, FromDeltaProcess
from tests.spark_faults.drivers import HOOKS, Fault
from tests.spark_faults.standalone_cluster import Cluster

pytestmark = [pytest.mark.delta, pytest.mark.slow]

FIRST: Mapping[str, tuple[str, dict[str, object]]] = {
    "topic-made": ("put done", {"version": 0}),
    "snapshot-fixed": ("put done", {"version": 1}),
    "snapshot-staged": ("staged", {"batch": 2}),
    "before-the-snapshot": ("put", {"version": 2}),
    "snapshot-landed": ("put done", {"version": 2}),
}
"""The steps of a first copy, by the commits of the topic: created, fixed, snapshot."""
LATER: Mapping[str, tuple[str, dict[str, object]]] = {
    "changes-staged": ("staged", {"batch": 3}),
    "before-the-changes": ("put", {"version": 3}),
    "changes-landed": ("landed", {"batch": 3}),
    "deletes-landed": ("put done", {"version": 4}),
    "before-the-position": ("put", {"version": 5}),
    "position-landed": ("put done", {"version": 5}),
}
"""The steps of later versions: an update, a delete, and an OPTIMIZE, which has no records."""
IN_CI = ["snapshot-landed", "changes-landed"]


@pytest.fixture
def table(delta_spark: SparkSession, tmp_path: Path) -> ChangedTable:
    return ChangedTable(delta_spark, str(tmp_path / "table"), str(tmp_path / "root"))


def words_of(table: ChangedTable) -> list[str]:
    words = ["--root", table.root, "--topic", TOPIC, "--table", table.path, "--key", "id"]
    return [*words, "--option", "numPartitions=3", "--option", "engine=python"]


def fault_of(name: str) -> Fault:
    at, where = {**FIRST, **LATER}[name]
    return Fault(name, "park", at, {"topic": TOPIC, **where})


def fill(table: ChangedTable) -> None:
    """Make versions 0 to 2."""
    table.create()
    table.sql("insert into {t} values (0, 'a'), (1, 'b')")
    table.sql("insert into {t} values (2, 'c')")


def change(table: ChangedTable) -> None:
    """Make versions 3 to 5."""
    table.sql("update {t} set name = 'x' where id = 1")
    table.sql("delete from {t} where id = 2")
    table.sql("optimize {t}")


def check(table: ChangedTable) -> None:
    """Check that each version was written once, in order, and that all files are well."""
    assert table.last_values() == table.rows()
    assert table.records() == [
        ("0", {"id": 0, "name": "a"}),
        ("1", {"id": 1, "name": "b"}),
        ("1", {"id": 1, "name": "x"}),
        ("2", {"id": 2, "name": "c"}),
        ("2", None),
    ]
    commits = klog.open(table.root).history(TOPIC)
    transactions = [commit.actions.writer_transaction for commit in commits]
    versions = [t.batch_id for t in transactions if t is not None and t.name.count(":") == 1]
    assert versions == [5, 4, 3, 2]
    assert verify.run(None, table.root).findings == ()


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(IN_CI, id="ci"),
        pytest.param([*FIRST, *LATER], id="all", marks=pytest.mark.full),
    ],
)
def test_killed_at_each_step(table: ChangedTable, tmp_path: Path, steps: Sequence[str]) -> None:
    """Each run is killed where it waits; the next one goes on, and the last one ends."""
    fill(table)
    is_changed = False
    for name in steps:
        if name in LATER and not is_changed:
            change(table)
            is_changed = True
        with FromDeltaProcess(tmp_path / name, words_of(table), [fault_of(name)]) as process:
            process.wait_for(name)
    table.copy()
    check(table)


@pytest.mark.full
def test_killed_workers_and_executors(table: ChangedTable, tmp_path: Path) -> None:
    kill_workers_and_executors(table, tmp_path, words_of(table))


def kill_workers_and_executors(
    table: ChangedTable,
    folder: Path,
    words: Sequence[str],
    settings: Mapping[str, str] = NO_SETTINGS,
    publish: Callable[[], None] = lambda: None,
) -> None:
    """Copy a table on a cluster of two workers, and check it; Spark runs the tasks again.

    `publish` is called after each change of the table.
    """
    fill(table)
    publish()
    faults = [
        Fault("worker", "kill", "staged", {"topic": TOPIC, "batch": 2}),
        Fault("executor", "executor", "stage", {"topic": TOPIC, "batch": 3}),
        Fault("another-worker", "kill", "staged", {"topic": TOPIC, "batch": 4}),
    ]
    with Cluster(folder / "cluster") as cluster:
        for name, expected in (("first", faults[:1]), ("later", faults[1:])):
            conf = {
                **cluster.conf(folder / name / "faults", HOOKS),
                "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
                "spark.master": cluster.url,
                "spark.task.maxFailures": "8",
                **settings,
            }
            with FromDeltaProcess(folder / name, words, expected, conf) as process:
                process.report()
                assert all(process.has_reached(fault.name) for fault in expected)
            if name == "first":
                change(table)
                publish()
    check(table)


@pytest.mark.full
def test_two_processes_that_go_on(table: ChangedTable, tmp_path: Path) -> None:
    """Two runs with --continuous and a writer; each is killed in the end, wherever it is."""
    fill(table)
    words = [*words_of(table), "--continuous", "--interval", "100ms"]
    with (
        FromDeltaProcess(tmp_path / "a", words) as first,
        FromDeltaProcess(tmp_path / "b", words) as second,
    ):
        for number in range(20):
            table.sql(f"update {{t}} set name = '{number}' where id = {number % 3}")
        first.wait_until(table.has_topic, "a topic with records")
        assert first.process.poll() is None
        assert second.process.poll() is None
    table.copy()
    assert table.last_values() == table.rows()
    commits = klog.open(table.root).history(TOPIC)
    names = [commit.actions.writer_transaction for commit in commits if commit.actions.add]
    versions = [name.batch_id for name in names if name is not None]
    assert versions == list(range(versions[0], versions[-1] - 1, -1))
