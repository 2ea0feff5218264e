"""Each job on a cluster of two workers, on S3 and HDFS, as in one process on local disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from klog.jobs import vacuum
from tests.spark_faults import upkeep_results
from tests.spark_faults.drivers import HOOKS, Driver, Fault
from tests.spark_faults.standalone_cluster import WORKERS, Cluster
from tests.spark_faults.upkeep_driver import Step, Upkeep, run_step
from tests.support.kafka_broker import die_with_parent
from tests.support.project import PROJECT
from tests.support.store_servers import BUCKET, Hdfs, S3Server
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.stores, pytest.mark.slow]

ON_PYTHON = "BatchEvalPython"
MODULE = "tests.spark_faults.upkeep_driver"


def hosts_of_python_tasks(events: Path) -> dict[str, set[str]]:
    """Return the workers on which Python tasks of each job group ran, from Spark's event log."""
    hosts_by_group: dict[str, set[str]] = defaultdict(set)
    groups: dict[int, str] = {}
    for file in sorted(events.rglob("events_*")):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerStageSubmitted":
                stage = event["Stage Info"]
                scopes = [json.loads(rdd.get("Scope", "{}")) for rdd in stage["RDD Info"]]
                if any(scope.get("name") == ON_PYTHON for scope in scopes):
                    groups[stage["Stage ID"]] = event["Properties"].get("spark.jobGroup.id", "")
            elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in groups:
                assert event["Task End Reason"]["Reason"] == "Success"
                hosts_by_group[groups[event["Stage ID"]]].add(event["Task Info"]["Host"])
    return hosts_by_group


@pytest.mark.full  # tests/spark_faults/test_stores.py is on both stores, too.
def test_each_job_on_two_workers_on_s3_and_hdfs(
    cluster: Cluster, pyfiles: Path, s3_server: S3Server, hdfs: Hdfs, tmp_path: Path
) -> None:
    """klog comes by `--py-files`; the stores' options reach the executors with the tasks."""
    upkeep_results.make_root(tmp_path / "made")
    places: dict[str, tuple[str, dict[str, str]]] = {
        "local": (str(tmp_path / "local"), {}),
        "s3": (f"s3://{BUCKET}/{tmp_path.name}-jobs", s3_server.options()),
        "hdfs": (f"{hdfs.url}/{tmp_path.name}-jobs", {}),
    }
    exports = {place: tmp_path / f"{place}-export" for place in places}
    steps = {
        place: upkeep_results.steps(place, url, exports[place], options)
        for place, (url, options) in places.items()
    }
    for url, options in places.values():
        upkeep_results.lay_out(tmp_path / "made", url, options)
    for step in steps["local"]:
        report = run_step(None, step)
        assert report.get("findings", []) == []
    (tmp_path / "events").mkdir()
    folder = tmp_path / "driver"
    conf = {
        **cluster.conf(folder / "faults", HOOKS),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.compress": "false",
    }
    plan = Upkeep([*steps["s3"], *steps["hdfs"]], cluster.url, conf=conf)
    path, submit = [str(PROJECT)], ("--py-files", str(pyfiles))
    with Driver(folder, plan, path=path, submit=submit, module=MODULE) as driver:
        driver.wait()
        assert driver.events() == [(step.name, "done") for step in plan.steps], driver.tail()
        assert all(pyfiles.name in at for at in driver.report("")["klog"])
        ran = hosts_of_python_tasks(tmp_path / "events")
        for place in ("s3", "hdfs"):
            for job in upkeep_results.DISTRIBUTED:
                assert ran[f"{place}-{job}"] == set(WORKERS), (place, job, ran)
            # The driver exports: a worker would write to a directory of its own machine.
            assert f"{place}-export" not in ran
            for job in ("verify", "verify-imported", "verify-adopted"):
                assert driver.report(f"{place}-{job}")["findings"] == []
    for root in ("root", "imported", "adopted"):
        expected = upkeep_results.records(f"{places['local'][0]}/{root}", {})
        assert any(expected.values())
        for place in ("s3", "hdfs"):
            url, options = places[place]
            assert upkeep_results.records(f"{url}/{root}", options) == expected, (place, root)
    for place in ("s3", "hdfs"):
        assert upkeep_results.files(exports[place]) == upkeep_results.files(exports["local"])
        assert upkeep_results.names(exports[place]) == upkeep_results.names(exports["local"])


@pytest.mark.full  # CI runs jobs in the session of tests/spark/test_jobs_on_spark.py.
def test_spark_submit_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """A job's file started as in docs/jobs.md; klog is installed on the workers."""
    upkeep_results.make_root(tmp_path / "made")
    for name in ("here", "there"):
        upkeep_results.lay_out(tmp_path / "made", str(tmp_path / name), {})
    root = str(tmp_path / "there" / "root")
    conf = cluster.conf(tmp_path, HOOKS)
    command = [
        *(str(Path(sys.executable).with_name("spark-submit")), "--master", cluster.url),
        *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")),
        *(
            str(PROJECT / "jobs" / "compact.py"),
            "--root",
            root,
            "--topic",
            upkeep_results.COMPACTED,
        ),
        *("--min-dirty-ratio", "0", "--json"),
    ]
    outside = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**outside, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        preexec_fn=die_with_parent,
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    report = json.loads(done.stdout)
    options = {"topic": upkeep_results.COMPACTED, "min_dirty_ratio": 0.0}
    step = Step("compact", "compact", str(tmp_path / "here" / "root"), options)
    expected = run_step(None, step)
    counted = ("partition", "records", "recordsAfter", "segmentsAfter")
    assert [{name: partition[name] for name in counted} for partition in report["partitions"]] == [
        {name: partition[name] for name in counted} for partition in expected["partitions"]
    ]
    assert upkeep_results.records(root, {}) == upkeep_results.records(step.root, {})


@pytest.mark.full  # CI kills executors that write (test_standalone.py).
def test_a_killed_worker_and_a_killed_executor(cluster: Cluster, tmp_path: Path) -> None:
    """SIGKILL during a job: Spark runs the task again; the first attempt leaves orphan files."""
    roots = {name: str(tmp_path / name) for name in ("here", "there")}
    upkeep_results.make_root(tmp_path / "made")
    for root in roots.values():
        upkeep_results.lay_out(tmp_path / "made", root, {})

    def steps(name: str) -> list[Step]:
        root = f"{roots[name]}/root"
        ratio = {"min_dirty_ratio": 0.0}
        return [
            Step("compact", "compact", root, {"topic": upkeep_results.COMPACTED, **ratio}),
            Step("merge", "merge", root, {"topic": upkeep_results.SMALL}),
            Step("verify", "verify", root),
        ]

    for step in steps("here"):
        run_step(None, step)
    faults = [
        Fault("marking", "kill", "task done", {"work": "clean_or_mark"}),
        Fault("rewriting", "executor", "file done", {"number": 0}),
        Fault("merging", "kill", "task done", {"work": "merge_group", "partition": 2}),
    ]
    folder = tmp_path / "driver"
    path = ":".join(map(str, (HOOKS, PROJECT / "src", PROJECT)))
    conf = {**cluster.conf(folder / "faults", HOOKS), "spark.executorEnv.PYTHONPATH": path}
    plan = Upkeep(steps("there"), cluster.url, conf=conf)
    with Driver(folder, plan, faults, module=MODULE) as driver:
        driver.wait()
        assert driver.events() == [(step.name, "done") for step in plan.steps], driver.tail()
        assert all(driver.pid_of(fault.name) for fault in faults), driver.tail()
        assert driver.report("verify")["findings"] == []
    root = f"{roots['there']}/root"
    assert upkeep_results.records(root, {}) == upkeep_results.records(f"{roots['here']}/root", {})
    report = vacuum.run(None, root, grace_ms=0, dry_run=False)
    assert any(topic.orphan_files.uncommitted for topic in report.topics)
