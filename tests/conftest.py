"""What tests share: one Spark session, one broker and one server a store."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tools.marked_files import pytest_ignore_collect, pytest_itemcollected
from tools.minio import has_minio

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.kafka_broker import Broker
    from tests.support.minio_server import Minio
    from tests.support.store_servers import Hdfs, S3Server


__all__ = ["pytest_ignore_collect", "pytest_itemcollected"]
LEFT_OUT = pytest.StashKey[int]()


def pytest_configure() -> None:
    """Let processes be interrupted: a shell's background job ignores SIGINT, as its children do."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # After -m has deselected tests.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect MinIO's tests, and count them, if there is neither MinIO nor Go to build it."""
    of_minio = [item for item in items if item.get_closest_marker("minio")]
    if not of_minio or has_minio():
        return
    config.hook.pytest_deselected(items=of_minio)
    items[:] = [item for item in items if item not in of_minio]
    config.stash[LEFT_OUT] = len(of_minio)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print how many tests did not run because there is no Go."""
    count = config.stash.get(LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(
            f"MinIO: {count} tests NOT RUN: no Go on PATH to build it with (least privilege is "
            "tried there alone)",
            red=True,
        )


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Return the shared Spark session, on two local cores.

    It has Spark's Kafka connector if a test of the run asks for `kafka_connector`: jars can be
    given only when the Java process starts.
    """
    from pyspark.sql import SparkSession

    from klog import configure
    from tools.jars import jars

    folder = tmp_path_factory.mktemp("spark")
    fixtures = (getattr(item, "fixturenames", ()) for item in request.session.items)
    has_connector = any("kafka_connector" in names for names in fixtures)
    connector = sorted(jars("spark-kafka").glob("*.jar")) if has_connector else []
    session = (
        configure(SparkSession.builder.config("spark.jars", ",".join(map(str, connector))))
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(params=["python", "jvm"])
def engine(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Run a test with each engine, which is an error where the JVM cannot read."""
    spark.conf.set("spark.klog.engine", request.param)
    yield request.param
    spark.conf.unset("spark.klog.engine")


@pytest.fixture(params=["python", "jvm"])
def write_engine(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Run a test with each engine for its writes, but for those that name one."""
    spark.conf.set("spark.klog.write.engine", request.param)
    yield request.param
    spark.conf.unset("spark.klog.write.engine")


@pytest.fixture(scope="session")
def kafka_connector(spark: SparkSession) -> None:
    """Put Spark's Kafka connector into the shared session of a run."""


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return the shared running broker; a test creates its own topics."""
    from tests.support.kafka_broker import Broker

    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Return the shared running S3 server; a test uses its own prefix."""
    from tests.support.store_servers import S3Server

    with S3Server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="session")
def minio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    """Return the shared running MinIO; a test uses its own prefix."""
    from tests.support.minio_server import Minio

    with Minio(tmp_path_factory.mktemp("minio")) as running:
        yield running


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """Return the shared running HDFS; a test uses its own directory."""
    from tests.support.store_servers import Hdfs

    with Hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running
