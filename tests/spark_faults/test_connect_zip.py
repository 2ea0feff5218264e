"""Spark Connect with klog on the client alone, as a zip: `klog.register` sends it to the server.

A stream does not find it there (docs/clusters.md): Spark gives artifacts to batches only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark_faults.connect_server import ConnectServer
from tests.spark_faults.drivers import Driver
from tests.spark_faults.job_driver import Job, Plan
from tests.spark_faults.written_rows_check import check, write_rows
from tests.support.project import PROJECT
from tests.test_package import UV, clean_python, run

pytestmark = [pytest.mark.package, pytest.mark.spark, pytest.mark.full]


def test_klog_as_a_zip_of_the_client(pyfiles: Path, tmp_path: Path) -> None:
    packages = tmp_path / "packages.txt"
    options = ("--group", "dev", "--no-emit-project", "--no-hashes")
    packages.write_text(run(UV, "export", "--frozen", "--quiet", *options))
    python = clean_python(tmp_path / "python", "--requirement", packages)
    source, root = write_rows(tmp_path / "rows"), str(tmp_path / "root")
    job = Job("batch", "batch", root, str(source))
    with ConnectServer(tmp_path / "server", python) as server:
        plan = Plan([job], remote=server.url, register=True)
        path = [str(PROJECT), str(pyfiles)]
        with Driver(tmp_path / "driver", plan, python=str(python), path=path) as driver:
            driver.wait()
            assert driver.events() == [("batch", "done")], driver.tail()
    check(job)
