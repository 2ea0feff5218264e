"""Faults on an S3 server and on HDFS: a kill after the put, a lost answer, a retried task."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from klog.connector.options.storage_options import STORAGE_PREFIX
from tests.faults.proxy import RESET, Wrong, proxy_to
from tests.spark_faults.drivers import Driver, Fault
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.written_rows_check import check, live_files, write_rows
from tests.support.store_servers import BUCKET, Hdfs, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.stores, pytest.mark.slow]

SECOND = f"{1:020}.json"


def test_on_s3_and_hdfs(s3_server: S3Server, hdfs: Hdfs, tmp_path: Path) -> None:
    """On S3 a proxy loses the answer and all later ones of that commit; Spark aborts."""
    source, url = write_rows(tmp_path / "rows"), urlsplit(s3_server.endpoint)
    with proxy_to(str(url.hostname), url.port or 80) as proxy:
        through = s3_server.options() | {"storage.endpoint": proxy.endpoint}
        places = {
            "s3": (f"s3://{BUCKET}/{tmp_path.name}", through),
            "hdfs": (f"{hdfs.url}/{tmp_path.name}", {}),
        }
        jobs = {
            f"{place}-{case}": Job(
                f"{place}-{case}",
                "stream",
                root,
                str(source),
                str(tmp_path / "checkpoints" / f"{place}-{case}"),
                options,
            )
            for case in ("retried", "lost", "killed")
            for place, (root, options) in places.items()
        }
        faults = [
            Fault("hdfs-lost", "lose", "put done", {"topic": "hdfs-lost", "version": 1}),
            *(
                fault
                for place in places
                for fault in (
                    Fault(
                        f"{place}-retried",
                        "kill",
                        "staged",
                        {"topic": f"{place}-retried", "batch": 1, "task": 0},
                    ),
                    Fault(
                        f"{place}-killed",
                        "park",
                        "put done",
                        {"topic": f"{place}-killed", "version": 1},
                    ),
                )
            ),
        ]
        commit = f"s3-lost/log/{SECOND}"
        proxy.fail(Wrong(RESET, applied=True, only="PUT", path=commit, to_the_end=True))
        storage = {
            place: {name.removeprefix(STORAGE_PREFIX): text for name, text in options.items()}
            for place, (_, options) in places.items()
        }
        with Driver(tmp_path / "killed", Plan(list(jobs.values())), faults) as killed:
            killed.wait_for("s3-killed", "hdfs-killed")
            assert sorted(killed.events()) == [
                ("hdfs-lost", "failed"),
                ("hdfs-retried", "done"),
                ("s3-lost", "failed"),
                ("s3-retried", "done"),
            ]
            for place in places:
                assert killed.pid_of(f"{place}-retried")
                (error,) = killed.errors(f"{place}-lost")
                assert "did not say whether" in error
                assert killed.has_aborted(f"{place}-lost")
            killed.kill()
        methods = [request.split()[0] for request in proxy.requests]
        assert methods[0] == "PUT"
        assert "GET" in methods
        proxy.fail(None)
        before = {name: live_files(job, storage[name.split("-")[0]]) for name, job in jobs.items()}
        left = [job for name, job in jobs.items() if not name.endswith("retried")]
        with Driver(tmp_path / "next", Plan(left)) as following:
            following.wait()
            assert sorted(following.events()) == sorted((job.name, "done") for job in left)
        for name, job in jobs.items():
            check(job, storage[name.split("-")[0]])
            assert before[name] <= live_files(job, storage[name.split("-")[0]])
