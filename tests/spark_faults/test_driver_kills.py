"""SIGKILL of a driver whose writes are at different steps, and a new driver that continues."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.fault_jar import JVM, engines, point
from tests.spark_faults.job_driver import OTHER, Job, Plan
from tests.spark_faults.written_rows_check import check, live_files, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS: dict[str, tuple[str, dict[str, object]]] = {
    "before-writing": ("stage", {"batch": 1, "task": 0}),
    "while-encoding": ("rows", {"batch": 1, "task": 1}),
    "while-writing": ("batch", {"batch": 1, "task": 1, "number": 2}),
    "task-done": ("staged", {"batch": 1, "task": 1}),
    "all-tasks-done": ("commit", {"batch": 1}),
    "before-the-put": ("put", {"version": 1}),
    "after-the-put": ("put done", {"version": 1}),
    "before-sparks-commit": ("landed", {"batch": 1}),
    "topic-made": ("put done", {"version": 0}),
}
"""The step of each job at the kill: in the second micro-batch, and when the topic is created."""

OTHERS: list[tuple[str, str, str, dict[str, object]]] = [
    ("two", "two", "put", {"topic": f"two{OTHER}", "version": 1}),
    ("dead", "dead", "put", {"topic": "dead", "version": 1}),
    ("foreach", "foreach", "landed", {"topic": "foreach", "batch": 1}),
    ("batch", "batch", "put done", {"topic": "batch"}),
    ("batch-two", "batch two", "put", {"topic": f"batch-two{OTHER}"}),
]
"""Each job, its kind and its step at the kill; topics commit in order, dead letters first."""


def faults(write_conf: Mapping[str, str]) -> list[Fault]:
    """Return a fault that parks each job at its step."""
    points = [(name, at, {"topic": name, **where}) for name, (at, where) in STEPS.items()]
    points += [(name, at, where) for name, _, at, where in OTHERS]
    return [Fault(name, "park", point(at, write_conf), where) for name, at, where in points]


@engines(JVM)
def test_killed_at_each_step_of_each_kind_of_write(
    tmp_path: Path, write_conf: Mapping[str, str]
) -> None:
    """All writes wait at their steps when the driver is killed; one worker survives as an orphan.

    The orphan puts its commit after the new driver has written the same batch, and all others.
    """
    source, root = write_rows(tmp_path / "rows"), str(tmp_path / "root")
    kinds = [*((name, "stream") for name in (*STEPS, "orphan")), *((o[0], o[1]) for o in OTHERS)]
    jobs = [
        Job(name, kind, root, str(source), str(tmp_path / "checkpoints" / name))
        for name, kind in kinds
    ]
    orphan = Fault("orphan", "park", "put", {"topic": "orphan", "version": 1})
    plan = Plan(jobs, conf=write_conf)
    with Driver(tmp_path / "killed", plan, [*faults(write_conf), orphan]) as killed:
        killed.wait_for(*(job.name for job in jobs))
        assert killed.events() == []
        killed.kill(but=["orphan"])
        before = {job.name: live_files(job) for job in jobs}
        with Driver(tmp_path / "next", plan) as following:
            following.wait()
            assert sorted(following.events()) == sorted((job.name, "done") for job in jobs)
        killed.release_orphan("orphan")
    for job in jobs:
        check(job)
        assert before[job.name] <= live_files(job)
