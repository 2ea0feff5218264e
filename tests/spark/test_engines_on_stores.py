"""The JVM engine on HDFS by Hadoop's own client; a store that it does not know is Python's."""

from __future__ import annotations

import getpass
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.connector.store.store_for_url import writable_store_for
from tests.spark.test_engines import described
from tests.support.store_servers import BUCKET, Hdfs, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.stores]

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
ROWS = 3000


def write(root: str, **storage: str) -> None:
    log = klog.open(root, **storage)
    for codec in CODECS:
        log.create_topic(codec, 2, {"compression.type": codec})
        numbers = range(ROWS)
        rows = {
            "key": [b"k%d" % (number % 7) for number in numbers],
            "value": [b"%d" % number * 9 for number in numbers],
            "partition": pa.array([number % 2 for number in numbers], pa.int32()),
        }
        log.append(codec, pa.table(rows))


def load(spark: SparkSession, root: str, **options: str) -> DataFrame:
    reader = spark.read.format("klog").option("subscribePattern", ".*")
    return reader.options(**options).load(root)


def test_hdfs_is_read_by_the_jvm(spark: SparkSession, hdfs: Hdfs, tmp_path: Path) -> None:
    for base, user in ((hdfs.url, {}), (hdfs.web_url, {"user": getpass.getuser()})):
        root = f"{base}/{tmp_path.name}-{base[:3]}"
        write(root, **user)
        options = {f"storage.{name}": text for name, text in user.items()}
        frame = load(spark, root, **options)
        assert described(frame).startswith("jvm, 10 of 10 segments")
        expected = load(spark, root, engine="python", **options).collect()
        assert len(expected) == ROWS * len(CODECS)
        assert sorted(map(repr, frame.collect())) == sorted(map(repr, expected))
        assert frame.where("offset = 7 AND topic = 'zstd'").count() == 2


def test_a_missing_file_on_hdfs_is_named(spark: SparkSession, hdfs: Hdfs, tmp_path: Path) -> None:
    root = f"{hdfs.url}/{tmp_path.name}-missing"
    write(root)
    frame = load(spark, root, subscribePattern="lz4")
    store, path = writable_store_for(root)
    (entry,) = [e for e in store.entries(f"{path}/lz4-0") if e.name.endswith(".log")]
    store.delete(entry.path)
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        frame.collect()
    assert entry.name in str(caught.value)
    assert "the file is missing or was replaced" in str(caught.value)


def test_a_store_without_a_hadoop_client_is_python_s(
    spark: SparkSession, s3_server: S3Server, tmp_path: Path
) -> None:
    root, options = f"s3://{BUCKET}/{tmp_path.name}-engines", s3_server.options()
    write(root, **{name.removeprefix("storage."): text for name, text in options.items()})
    frame = load(spark, root, **options)
    assert described(frame).startswith("python (Hadoop has no file system for s3:// here)")
    assert frame.where("offset < 2").count() == 2 * 2 * len(CODECS)
    assert len(frame.where("offset < 2").collect()) == 2 * 2 * len(CODECS)
    with pytest.raises(IllegalArgumentException, match="Hadoop has no file system for s3://"):
        load(spark, root, engine="jvm", **options).collect()
    for secret in (options["storage.secret_access_key"], options["storage.access_key_id"]):
        assert secret not in described(frame)
