"""Spark Connect: the client has no JVM; the server plans, writes and commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_faults import upkeep_results
from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.upkeep_driver import Upkeep, run_step
from tests.spark_faults.written_rows_check import check, write_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODULE = "tests.spark_faults.upkeep_driver"


@pytest.mark.full  # A server of Spark Connect takes a minute of CPU.
def test_a_batch_and_streams_through_connect(tmp_path: Path) -> None:
    """One stream loses the answer of its commit, and runs again."""
    source, root = write_rows(tmp_path / "rows"), str(tmp_path / "root")
    kinds = {"batch": "batch", "stream": "stream", "lost": "stream"}
    jobs = [
        Job(name, kind, root, str(source), str(tmp_path / "checkpoints" / name), tries=2)
        for name, kind in kinds.items()
    ]
    lost = Fault("lost", "lose", "put done", {"topic": "lost", "version": 1})
    with Driver(tmp_path / "driver", Plan(jobs, remote="local[2]"), [lost]) as driver:
        driver.wait()
        assert driver.events() == [
            ("batch", "done"),
            ("stream", "done"),
            ("lost", "failed"),
            ("lost", "done"),
        ]
        assert driver.has_aborted("lost")
    for job in jobs:
        check(job)


@pytest.mark.full
def test_each_job_through_connect(tmp_path: Path) -> None:
    """The results are those of a single process, even without a JVM in the client."""
    upkeep_results.make_root(tmp_path / "made")
    steps = {
        name: upkeep_results.steps(name, str(tmp_path / name), tmp_path / f"{name}-export", {})
        for name in ("here", "there")
    }
    for name in steps:
        upkeep_results.lay_out(tmp_path / "made", str(tmp_path / name), {})
    for step in steps["here"]:
        run_step(None, step)
    plan = Upkeep(steps["there"], remote="local[2]")
    with Driver(tmp_path / "driver", plan, module=MODULE) as driver:
        driver.wait()
        assert driver.events() == [(step.name, "done") for step in plan.steps], driver.tail()
        for root in ("verify", "verify-imported", "verify-adopted"):
            assert driver.report(f"there-{root}")["findings"] == []
    exports = [tmp_path / f"{name}-export" for name in steps]
    assert len(upkeep_results.names(exports[0])) > 0
    assert upkeep_results.names(exports[1]) == upkeep_results.names(exports[0])
    assert upkeep_results.files(exports[1]) == upkeep_results.files(exports[0])
    for root in ("root", "imported", "adopted"):
        expected = upkeep_results.records(str(tmp_path / "here" / root), {})
        assert any(expected.values())
        assert upkeep_results.records(str(tmp_path / "there" / root), {}) == expected, root
