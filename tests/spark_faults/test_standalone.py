"""A real cluster, with klog on its executors by --py-files and by an installed wheel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.spark_faults.drivers import HOOKS, Driver, Fault
from tests.spark_faults.fault_jar import PYTHON, engines, point
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.standalone_cluster import Cluster
from tests.spark_faults.written_rows_check import check, write_rows
from tests.support.project import PROJECT
from tests.test_package import clean_python

pytestmark = [pytest.mark.package, pytest.mark.spark, pytest.mark.slow]


def jobs_at(tmp_path: Path, kinds: dict[str, str]) -> list[Job]:
    source, root = write_rows(tmp_path / "rows"), str(tmp_path / "root")
    return [
        Job(name, kind, root, str(source), str(tmp_path / "checkpoints" / name))
        for name, kind in kinds.items()
    ]


@pytest.mark.full  # tests/test_package.py reads from the zip, too.
def test_klog_by_py_files(cluster: Cluster, pyfiles: Path, locked: Path, tmp_path: Path) -> None:
    python = str(clean_python(tmp_path / "python", "--requirement", locked))
    jobs = jobs_at(tmp_path, {"batch": "batch", "stream": "stream"})
    folder = tmp_path / "driver"
    conf = cluster.conf(folder / "faults", HOOKS)
    plan = Plan(jobs, cluster.url, conf=conf, register=True)
    submit = ("--py-files", str(pyfiles))
    with Driver(folder, plan, python=python, path=[str(PROJECT)], submit=submit) as driver:
        driver.wait()
        assert driver.events() == [("batch", "done"), ("stream", "done")]
    for job in jobs:
        check(job)


@engines(PYTHON)
def test_klog_by_an_installed_wheel(
    cluster: Cluster, wheel: Path, locked: Path, write_conf: Mapping[str, str], tmp_path: Path
) -> None:
    """Executors are killed during and after a write; a slow task gets a speculative copy."""
    python = str(clean_python(tmp_path / "python", "--constraint", locked, wheel))
    kinds = {
        "batch": "batch",
        "stream": "stream",
        "killed-encoding": "stream",
        "killed-writing": "stream",
        "killed-when-done": "batch",
        "slow": "stream",
    }
    jobs = jobs_at(tmp_path, kinds)
    late = {"topic": "slow", "batch": 1, "task": 1}
    faults = [
        Fault(
            "killed-encoding",
            "executor",
            point("rows", write_conf),
            {"topic": "killed-encoding", "batch": 1, "task": 1},
        ),
        Fault(
            "killed-writing",
            "executor",
            "batch",
            {"topic": "killed-writing", "batch": 1, "task": 1, "number": 2},
        ),
        Fault("killed-when-done", "executor", "staged", {"topic": "killed-when-done", "task": 1}),
        Fault("slept", "sleep", "batch", {**late, "number": 2}, seconds=60),
        Fault("copied", "note", "staged", late),
    ]
    folder = tmp_path / "driver"
    conf = {
        **cluster.conf(folder / "faults", HOOKS),
        **write_conf,
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "2s",
    }
    plan = Plan(jobs, cluster.url, conf=conf)
    with Driver(folder, plan, faults, python, path=[str(PROJECT)]) as driver:
        driver.wait()
        assert driver.events() == [(job.name, "done") for job in jobs]
        assert driver.pid_of("killed-encoding")
        assert driver.pid_of("killed-writing")
        assert driver.pid_of("killed-when-done")
        assert driver.pid_of("copied") not in (0, driver.pid_of("slept"))
        assert driver.pid_of("slept")
    for job in jobs:
        check(job)
