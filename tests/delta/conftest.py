"""What tests on Delta tables share: one Spark session with Delta, in a process of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from klog import configure
from klog.jobs.shared.delta.local_session import with_delta
from tests.support.delta_jars import delta_jars


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return the session, on two local cores.

    Jars can be given only when the Java process starts, so these tests have a process without
    those on `spark`.
    """
    folder = tmp_path_factory.mktemp("delta")
    builder = SparkSession.builder.config("spark.jars", ",".join(map(str, delta_jars())))
    session = (
        with_delta(configure(builder))
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
