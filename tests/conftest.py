"""What tests share: one Spark session, one broker and one server a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tools.minio import has_minio

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.kafka_broker import Broker
    from tests.support.minio_server import Minio
    from tests.support.store_servers import Hdfs, S3Server


LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)  # of what -m chose
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out MinIO's tests, and say so, where neither MinIO nor a Go to build it with is."""
    of_minio = [item for item in items if item.get_closest_marker("minio")]
    if not of_minio or has_minio():
        return
    config.hook.pytest_deselected(items=of_minio)
    items[:] = [item for item in items if item not in of_minio]
    config.stash[LEFT_OUT] = len(of_minio)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what was left out for want of Go."""
    count = config.stash.get(LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(
            f"MinIO: {count} tests NOT RUN: no Go on PATH to build it with (least privilege is "
            "tried there alone)",
            red=True,
        )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give the one Spark session, on two local cores."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Give the one running broker; a test makes topics of its own."""
    from tests.support.kafka_broker import Broker

    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Give the one running S3 server; a test keeps to a prefix of its own."""
    from tests.support.store_servers import S3Server

    with S3Server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="session")
def minio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    """Give the one running MinIO; a test keeps to a prefix of its own."""
    from tests.support.minio_server import Minio

    with Minio(tmp_path_factory.mktemp("minio")) as running:
        yield running


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """Give the one running HDFS; a test keeps to a directory of its own."""
    from tests.support.store_servers import Hdfs

    with Hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running
