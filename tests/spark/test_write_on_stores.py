"""The JVM engine writes to HDFS by Hadoop's own client; what that cannot reach is Python's."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.connector.store.store_for_url import writable_store_for
from klog.jobs import verify
from tests.support.store_servers import BUCKET, Hdfs, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.stores]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS, ROWS = 2, 3000
COLUMNS = ["partition", "offset", "key", "value"]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 1).selectExpr(
        "cast(id % 7 as string) AS key", "repeat(cast(id as string), 9) AS value"
    )


def write(rows: DataFrame, root: str, topic: str, engine: str, **options: Any) -> None:
    writer = rows.write.format("klog").mode("append").option("topic", topic)
    writer.options(engine=engine, numPartitions=PARTITIONS, **options).save(root)


def names(root: str, topic: str) -> list[str]:
    """Return the names of the files of a topic's partitions."""
    store, path = writable_store_for(root)
    return [
        entry.name
        for partition in range(PARTITIONS)
        for entry in store.entries(f"{path}/{topic}-{partition}")
    ]


def test_both_engines_leave_the_same_on_hdfs(rows: DataFrame, hdfs: Hdfs, tmp_path: Path) -> None:
    root = f"{hdfs.url}/{tmp_path.name}-both"
    log = klog.open(root)
    for codec in CODECS:
        tables = []
        for engine in ("python", "jvm"):
            topic = f"{codec}-{engine}"
            log.create_topic(topic, PARTITIONS, {"compression.type": codec})
            write(rows, root, topic, engine)
            tables.append(log.scan(topic, columns=COLUMNS).read_all())
        assert tables[0].num_rows == ROWS
        assert tables[1].equals(tables[0]), codec


def test_no_temporary_file_is_left_on_hdfs(rows: DataFrame, hdfs: Hdfs, tmp_path: Path) -> None:
    root = f"{hdfs.url}/{tmp_path.name}-names"
    write(rows, root, "t", "jvm")
    assert [Path(name).suffix for name in names(root, "t")].count(".log") == PARTITIONS
    assert all(name[:20].isdecimal() for name in names(root, "t"))
    assert verify.run(None, root, "t").findings == ()


def test_a_file_that_cannot_be_put_fails_the_write(
    rows: DataFrame, hdfs: Hdfs, tmp_path: Path
) -> None:
    root = f"{hdfs.url}/{tmp_path.name}-refused"
    write(rows, root, "t", "jvm")
    with pytest.raises(Exception, match="Permission denied") as caught:
        write(rows, root, "t", "jvm", **{"storage.user": "nobody"})
    assert "t-" in str(caught.value)
    assert klog.open(root).scan("t").read_all().num_rows == ROWS


def test_webhdfs_is_left_to_python(rows: DataFrame, hdfs: Hdfs, tmp_path: Path) -> None:
    user = getpass.getuser()
    root, options = f"{hdfs.web_url}/{tmp_path.name}-web", {"storage.user": user}
    write(rows, root, "t", "auto", **options)
    with pytest.raises(IllegalArgumentException, match="cannot write by webhdfs://"):
        write(rows, root, "t", "jvm", **options)
    assert klog.open(root, user=user).scan("t").read_all().num_rows == ROWS


def test_a_store_without_a_hadoop_client_is_python_s(
    rows: DataFrame, s3_server: S3Server, tmp_path: Path
) -> None:
    root, options = f"s3://{BUCKET}/{tmp_path.name}-written", s3_server.options()
    write(rows, root, "t", "auto", **options)
    with pytest.raises(
        IllegalArgumentException, match="jvm cannot write this: Hadoop has no file system for s3:"
    ) as caught:
        write(rows, root, "t", "jvm", **options)
    assert options["storage.secret_access_key"] not in str(caught.value)
    storage = {name.removeprefix("storage."): text for name, text in options.items()}
    assert klog.open(root, **storage).scan("t").read_all().num_rows == ROWS
