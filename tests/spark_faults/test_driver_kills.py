"""SIGKILL of a driver with writes at every step that they make, and a new driver that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.job_driver import OTHER, Job, Plan
from tests.spark_faults.written_rows_check import check, named, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS: dict[str, tuple[str, dict[str, object]]] = {
    "before-writing": ("stage", {"batch": 1, "task": 0}),
    "while-writing": ("batch", {"batch": 1, "task": 1, "number": 2}),
    "task-done": ("staged", {"batch": 1, "task": 1}),
    "all-tasks-done": ("commit", {"batch": 1}),
    "before-the-put": ("put", {"version": 1}),
    "after-the-put": ("put done", {"version": 1}),
    "before-sparks-commit": ("landed", {"batch": 1}),
    "topic-made": ("put done", {"version": 0}),
}
"""By job, where its driver is killed: in the second micro-batch, and where the topic is made."""

OTHERS: list[tuple[str, str, str, dict[str, object]]] = [
    ("two", "two", "put", {"topic": f"two{OTHER}", "version": 1}),
    ("dead", "dead", "put", {"topic": "dead", "version": 1}),
    ("foreach", "foreach", "landed", {"topic": "foreach", "batch": 1}),
    ("batch", "batch", "put done", {"topic": "batch"}),
    ("batch-two", "batch two", "put", {"topic": f"batch-two{OTHER}"}),
]
"""Job, its kind, where its driver is killed; commits go by topic, dead letters first."""

FAULTS = [
    *(Fault(name, "park", at, {"topic": name, **where}) for name, (at, where) in STEPS.items()),
    *(Fault(name, "park", at, where) for name, _, at, where in OTHERS),
]


def test_killed_at_each_step_of_each_kind_of_write(tmp_path: Path) -> None:
    """All writes wait at their steps when the driver is killed; one worker lives on as an orphan.

    The orphan puts its commit when the new driver has done the same batch, and all others.
    """
    source, root = write_rows(tmp_path / "rows"), str(tmp_path / "root")
    kinds = [*((name, "stream") for name in (*STEPS, "orphan")), *((o[0], o[1]) for o in OTHERS)]
    jobs = [
        Job(name, kind, root, str(source), str(tmp_path / "checkpoints" / name))
        for name, kind in kinds
    ]
    orphan = Fault("orphan", "park", "put", {"topic": "orphan", "version": 1})
    plan = Plan(jobs)
    with Driver(tmp_path / "killed", plan, [*FAULTS, orphan]) as killed:
        killed.wait_for(*(job.name for job in jobs))
        assert killed.events() == []
        killed.kill(but=["orphan"])
        before = {job.name: named(job) for job in jobs}
        with Driver(tmp_path / "next", plan) as following:
            following.wait()
            assert sorted(following.events()) == sorted((job.name, "done") for job in jobs)
        killed.release_orphan("orphan")
    for job in jobs:
        check(job)
        assert before[job.name] <= named(job)
