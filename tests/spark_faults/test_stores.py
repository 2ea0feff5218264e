"""Faults on an S3 server and on HDFS: a kill after the put, a lost answer, a retried task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from klog.connector.options.storage_options import STORAGE_PREFIX
from tests.faults.proxy import RESET, Wrong, proxy_to
from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.fault_jar import JVM, engines
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.written_rows_check import check, live_files, write_rows
from tests.support.store_servers import BUCKET, Hdfs, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.stores, pytest.mark.slow]

SECOND = f"{1:020}.json"


CASES = ("retried", "lost", "killed")


@engines(JVM)
def test_each_batch_is_there_once_after_faults_on_s3_and_hdfs(
    s3_server: S3Server, hdfs: Hdfs, write_conf: Mapping[str, str], tmp_path: Path
) -> None:
    """On S3 a proxy loses the answer and all later ones of that commit; Spark aborts.

    Python writes to S3: the JVM would need more jars.
    """
    url = urlsplit(s3_server.endpoint)
    with proxy_to(str(url.hostname), url.port or 80) as proxy:
        roots = {
            "s3": (
                f"s3://{BUCKET}/{tmp_path.name}",
                {
                    **s3_server.options(),
                    "storage.endpoint": proxy.endpoint,
                    "engine": "python",
                },
            ),
            "hdfs": (f"{hdfs.url}/{tmp_path.name}", {}),
        }
        jobs = stream_jobs(roots, tmp_path)
        proxy.fail(
            Wrong(RESET, applied=True, only="PUT", path=f"s3-lost/log/{SECOND}", to_the_end=True)
        )
        run_with_faults(jobs, tmp_path / "killed", write_conf)
        methods = [request.split()[0] for request in proxy.requests]
        assert methods[0] == "PUT"
        assert "GET" in methods
        proxy.fail(None)
        before = {name: live_files(job, storage_of(job)) for name, job in jobs.items()}
        run_again([job for name, job in jobs.items() if not name.endswith("retried")], tmp_path)
        for name, job in jobs.items():
            check(job, storage_of(job))
            assert before[name] <= live_files(job, storage_of(job))


def stream_jobs(roots: dict[str, tuple[str, dict[str, str]]], folder: Path) -> dict[str, Job]:
    """Return a stream for each case on each store, all of the same rows."""
    source = write_rows(folder / "rows")
    return {
        f"{store}-{case}": Job(
            f"{store}-{case}",
            "stream",
            root,
            str(source),
            str(folder / "checkpoints" / f"{store}-{case}"),
            options,
        )
        for case in CASES
        for store, (root, options) in roots.items()
    }


def storage_of(job: Job) -> dict[str, str]:
    """Return the options of a job's store, without their prefix."""
    return {
        name.removeprefix(STORAGE_PREFIX): text
        for name, text in job.options.items()
        if name.startswith(STORAGE_PREFIX)
    }


def faults_of(store: str) -> list[Fault]:
    """Return the faults of a store's streams: a killed task, and a driver that waits."""
    retried, killed = f"{store}-retried", f"{store}-killed"
    return [
        Fault(retried, "kill", "staged", {"topic": retried, "batch": 1, "task": 0}),
        Fault(killed, "park", "put done", {"topic": killed, "version": 1}),
    ]


def run_with_faults(jobs: dict[str, Job], folder: Path, conf: Mapping[str, str]) -> None:
    """Run the streams, and kill their driver while two of them wait after a put."""
    lost = Fault("hdfs-lost", "lose", "put done", {"topic": "hdfs-lost", "version": 1})
    faults = [lost, *faults_of("s3"), *faults_of("hdfs")]
    with Driver(folder, Plan(list(jobs.values()), conf=conf), faults) as driver:
        driver.wait_for("s3-killed", "hdfs-killed")
        assert sorted(driver.events()) == [
            ("hdfs-lost", "failed"),
            ("hdfs-retried", "done"),
            ("s3-lost", "failed"),
            ("s3-retried", "done"),
        ]
        for store in ("s3", "hdfs"):
            assert driver.pid_of(f"{store}-retried")
            (error,) = driver.errors(f"{store}-lost")
            assert "did not say whether" in error
            assert driver.has_aborted(f"{store}-lost")
        driver.kill()


def run_again(jobs: list[Job], folder: Path) -> None:
    """Run the streams that did not end to their ends."""
    with Driver(folder / "next", Plan(jobs)) as driver:
        driver.wait()
        assert sorted(driver.events()) == sorted((job.name, "done") for job in jobs)
