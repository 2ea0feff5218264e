"""Fixtures that these tests share: klog as users install it, and a cluster to run it on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.spark_faults.fault_jar import PYTHON, compile_faults, jvm_writes
from tests.spark_faults.standalone_cluster import Cluster
from tests.test_package import built, locked, pyfiles, tree, wheel

__all__ = ["built", "locked", "pyfiles", "tree", "wheel"]


@pytest.fixture(scope="session")
def compiled_faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the faults of tasks that the JVM runs."""
    folder = tmp_path_factory.mktemp("faults") / "classes"
    compile_faults(folder)
    return folder


@pytest.fixture(scope="module")
def write_conf(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Return the conf of a driver whose writes an engine runs (`fault_jar.engines`)."""
    if request.param == PYTHON:
        return {}
    return jvm_writes(request.getfixturevalue("compiled_faults"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster of a master and two workers."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
