"""Two drivers on one checkpoint: one that was taken for dead, and two that start together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.fault_jar import engines
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.written_rows_check import check, live_files, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STOPPED: dict[str, tuple[str, dict[str, object]]] = {
    "writing": ("batch", {"batch": 1, "task": 0, "number": 1}),
    "before-the-put": ("put", {"version": 1}),
    "after-the-put": ("put done", {"version": 1}),
}


def job_at(tmp_path: Path, name: str) -> Job:
    checkpoint = str(tmp_path / "checkpoints" / name)
    return Job(name, "stream", str(tmp_path / "root"), str(tmp_path / "rows"), checkpoint)


@engines()  # Simulations of writers fence each other in CI; so does tests/faults/test_zombie.py.
def test_a_stopped_driver_resumes_after_another_has_passed_it(
    tmp_path: Path, write_conf: Mapping[str, str]
) -> None:
    """SIGSTOP, a second driver on the same checkpoints, SIGCONT: the first one's queries fail.

    The second query `fenced` is killed before Spark records its commit, so Spark lets the first
    continue with the next micro-batch. There klog fences it, and a third driver completes.
    """
    write_rows(tmp_path / "rows")
    names = [*STOPPED, "fenced"]
    jobs = [job_at(tmp_path, name) for name in names]
    plan = Plan(jobs, conf=write_conf)
    where = {**STOPPED, "fenced": STOPPED["before-the-put"]}
    parked = [Fault(name, "park", at, {"topic": name, **w}) for name, (at, w) in where.items()]
    last = Fault("fenced", "park", "landed", {"topic": "fenced", "batch": 1})
    with Driver(tmp_path / "first", plan, parked) as first:
        first.wait_for(*names)
        first.stop()
        with Driver(tmp_path / "second", plan, [last]) as second:
            second.wait_for_events(*STOPPED)
            second.wait_for("fenced")
            second.kill()
        before = {job.name: live_files(job) for job in jobs}
        for job in jobs[:-1]:
            check(job)
        first.release(*names)
        first.resume()
        first.wait()
        for name in names:
            assert first.errors(name), first.tail()
            assert (name, "done") not in first.events()
        assert "has taken over from run" in first.errors("fenced")[0]
    with Driver(tmp_path / "third", Plan(jobs[-1:])) as third:
        third.wait()
        assert third.events() == [("fenced", "done")]
    for job in jobs:
        check(job)
        assert before[job.name] <= live_files(job)


@engines()
def test_two_drivers_at_once(tmp_path: Path, write_conf: Mapping[str, str]) -> None:
    """Both wait at the same micro-batch of one checkpoint, and continue at the same time.

    The second driver writes with Python, whichever engine the first one has.
    """
    write_rows(tmp_path / "rows")
    steps: dict[str, tuple[str, dict[str, object]]] = {
        "staging": ("stage", {"batch": 1, "task": 0}),
        "committing": ("put", {"version": 1}),
    }
    jobs = [job_at(tmp_path, name) for name in steps]
    faults = [
        Fault(name, "park", at, {"topic": name, **where}) for name, (at, where) in steps.items()
    ]
    with Driver(tmp_path / "one", Plan(jobs, conf=write_conf), faults) as first:
        first.wait_for(*steps)
        with Driver(tmp_path / "other", Plan(jobs), faults) as second:
            second.wait_for(*steps)
            for name in steps:
                first.release(name)
                second.release(name)
            first.wait()
            second.wait()
            for name in steps:
                assert first.errors(name) or second.errors(name)
    with Driver(tmp_path / "last", Plan(jobs)) as last:
        last.wait()
        assert sorted(last.events()) == [("committing", "done"), ("staging", "done")]
    for job in jobs:
        check(job)
