"""The jar on a Spark Connect server and on a standalone cluster: in `spark.jars` alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from klog.spark_jar.jar_compiler import find_jar
from tests.spark_faults.connect_server import ConnectServer
from tests.spark_faults.standalone_cluster import Cluster
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.full]


def engine_at(address: str) -> str:
    """Return the version and the engine that have read a batch and a stream, as a line."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.jvm_smoke", address],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


def test_a_connect_server_with_the_jar(tmp_path: Path) -> None:
    jar = find_jar(print)
    with ConnectServer(tmp_path / "server", Path(sys.executable), [jar]) as server:
        assert engine_at(server.url) == f"{pyspark.__version__} engine=jvm"


def test_executors_of_a_cluster_get_the_jar(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        assert engine_at(cluster.url) == f"{pyspark.__version__} engine=jvm"
