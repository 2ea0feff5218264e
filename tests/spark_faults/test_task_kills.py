"""Tasks, workers and commits that fail while their driver runs: Spark or the user retries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.fault_jar import engines, point
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.written_rows_check import check, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# By job: its kind, the act and point of its fault, the facts of the point, its failed tries.
CASES: dict[str, tuple[str, str, str, dict[str, object], int]] = {
    "killed-writing": ("stream", "kill", "batch", {"batch": 1, "task": 1, "number": 2}, 0),
    "killed-encoding": ("stream", "kill", "rows", {"batch": 1, "task": 1}, 0),
    "killed-when-done": ("stream", "kill", "staged", {"batch": 1, "task": 0}, 0),
    "error-writing": ("stream", "raise", "batch", {"batch": 1, "task": 0, "number": 1}, 0),
    "batch-error": ("batch", "raise", "staged", {"task": 0}, 0),
    "unnamed-error": ("batch", "kill", "staged", {"task": 1}, 0),
    "killed-committing": ("stream", "kill", "put", {"version": 1}, 1),
    "killed-committed": ("stream", "kill", "put done", {"version": 1}, 1),
    "answer-lost": ("stream", "lose", "put done", {"version": 1}, 1),
    "foreach-lost": ("foreach", "lose", "put done", {"version": 1}, 1),
    "batch-lost": ("batch", "lose", "put done", {}, 1),
}
UNNAMED = {"transactionalId": "", "transactionVersion": ""}
REUSED = [("reused", "stream", "a"), ("reused", "stream", "b")]
REUSED += [("reused-foreach", "foreach", "c"), ("reused-foreach", "foreach", "d")]
"""Name, kind and checkpoint; the second job of a name is another query."""


@pytest.fixture(scope="module")
def finished_jobs(
    tmp_path_factory: pytest.TempPathFactory, write_conf: Mapping[str, str]
) -> Iterator[tuple[Driver, dict[str, Job]]]:
    """Run all jobs one after another; return the driver and the jobs."""
    folder = tmp_path_factory.mktemp("tasks")
    source, root = str(write_rows(folder / "rows")), str(folder / "root")

    def checkpoint(name: str) -> str:
        return str(folder / "checkpoints" / name)

    jobs = {
        name: Job(
            name,
            kind,
            root,
            source,
            checkpoint(name),
            UNNAMED if name.startswith("unnamed") else {},
            tries=1 + fails,
        )
        for name, (kind, _, _, _, fails) in CASES.items()
    }
    named = {"transactionalId": "mine"}
    reused = [Job(name, kind, root, source, checkpoint(its), named) for name, kind, its in REUSED]
    faults = [
        Fault(name, act, point(at, write_conf), {"topic": name, **where})
        for name, (_, act, at, where, _) in CASES.items()
    ]
    plan = Plan([*jobs.values(), *reused], conf=write_conf)
    with Driver(folder / "driver", plan, faults) as driver:
        driver.wait()
        yield driver, {**jobs, **{job.name: job for job in reused}}


@engines()  # CI kills tasks on stores, with both engines (test_stores.py).
@pytest.mark.parametrize("name", CASES)
def test_tasks_and_commits_that_fail(
    finished_jobs: tuple[Driver, dict[str, Job]], name: str
) -> None:
    """Spark retries a task; the user retries a write, with the same stream or version."""
    driver, jobs = finished_jobs
    fails = CASES[name][4]
    assert driver.pid_of(name)
    events = [event for job, event in driver.events() if job == name]
    assert events == ["failed"] * fails + ["done"], driver.errors(name)
    check(jobs[name])
    if name.endswith("-lost"):
        assert driver.has_aborted(name)
        assert "did not say whether" in driver.errors(name)[0]


@engines()  # CI kills tasks on stores, with both engines (test_stores.py).
@pytest.mark.parametrize("name", ["reused", "reused-foreach"])
def test_an_id_used_by_another_checkpoint_is_an_error(
    finished_jobs: tuple[Driver, dict[str, Job]], name: str
) -> None:
    """After its checkpoint is deleted, a query counts from 0: klog must not skip its batches."""
    driver, jobs = finished_jobs
    assert [event for job, event in driver.events() if job == name] == ["done", "failed"]
    (error,) = driver.errors(name)
    assert "it would be skipped" in error
    assert "Use another transactional id, or the checkpoint of that query" in error
    check(jobs[name])
