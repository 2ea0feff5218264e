"""Fixtures that these tests share: klog as users install it, and a cluster to run it on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark_faults.standalone_cluster import Cluster
from tests.test_package import built, locked, pyfiles, tree, wheel

__all__ = ["built", "locked", "pyfiles", "tree", "wheel"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster of a master and two workers."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
