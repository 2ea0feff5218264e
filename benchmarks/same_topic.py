"""The same records in a broker's topic, in its log directory, in a klog root and in Parquet.

The rule: Spark's Kafka sink produces them in a producer's default batches. Parquet has the rows
that klog reads from the broker's directory, in the codec of the topic (snappy for lz4). The broker
runs on the same cores, so its CPU is part of what its readers cost.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks.logs import PARTITIONS
from benchmarks.records import as_table, records
from benchmarks.spark_write import BROKER, kafka_write, written
from tests.support.kafka_broker import Broker
from tests.support.waiting import wait_until

PARQUET_CODECS = {"none": "uncompressed", "lz4": "snappy", "zstd": "zstd"}
"""A broker says only now and then how far consumers may read."""


@dataclass(frozen=True, slots=True)
class SameTopic:
    """A topic of a broker, and its copies.

    Attributes:
        codec: Its codec and its name.
        count: How many records it has.
        value_bytes: The bytes of each value.
        broker: Where Spark's Kafka connector reads.
        folder: What the copies lie in.
    """

    spark: SparkSession
    codec: str
    count: int
    value_bytes: int
    broker: Broker
    folder: Path

    def kafka(self, options: Mapping[str, str] | None = None) -> DataFrame:
        """Return the topic by Spark's Kafka connector."""
        return self._reader("kafka", self.kafka_options, options or {})

    def directory(self, options: Mapping[str, str] | None = None) -> DataFrame:
        """Return the topic from the broker's log directory, read by the JVM engine."""
        return self._reader("klog", self.directory_options, options or {})

    def root(self, options: Mapping[str, str] | None = None) -> DataFrame:
        """Return the records from a klog root, read by the JVM engine."""
        path = {"path": str(self.root_path), "subscribe": self.codec, "engine": "jvm"}
        return self._reader("klog", path, options or {})

    def parquet(self) -> DataFrame:
        """Return the rows from Parquet files."""
        return self.spark.read.parquet(str(self.parquet_path))

    @property
    def kafka_options(self) -> dict[str, str]:
        """The options of Spark's Kafka connector, for streams as well."""
        return {"kafka.bootstrap.servers": self.broker.bootstrap, "subscribe": self.codec}

    @property
    def directory_options(self) -> dict[str, str]:
        """klog's options for the broker's log directory, for streams as well."""
        path = str(self.broker.log_dirs[0])
        return {"path": path, "subscribe": self.codec, "engine": "jvm"}

    @property
    def label(self) -> str:
        """What the records are, for a table."""
        return f"{self.count:,} records of {self.value_bytes:,} B, {self.codec}"

    @property
    def root_path(self) -> Path:
        """The klog root, if it was made."""
        return self.folder / "root"

    @property
    def parquet_path(self) -> Path:
        """The folder of the Parquet files."""
        return self.folder / "parquet"

    def _reader(self, source: str, own: Mapping[str, str], options: Mapping[str, str]) -> DataFrame:
        return self.spark.read.format(source).options(**{**own, **options}).load()


@contextmanager
def same_topic(
    spark: SparkSession, codec: str, count: int, value_bytes: int
) -> Iterator[SameTopic]:
    """Start a broker, produce records to a topic of it, and copy them to Parquet.

    Args:
        codec: The topic's codec, which Parquet has, too; it is the topic's name.
    """
    with (
        tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path,
        Broker(Path(path) / "broker", BROKER) as broker,
    ):
        topic = SameTopic(spark, codec, count, value_bytes, broker, Path(path))
        kafka_write(
            written(spark, topic.folder, count, value_bytes), broker.bootstrap, codec, codec
        )
        wait_until(lambda: topic.directory().count() == count, "the high watermark")
        writer = topic.directory().write.option("compression", PARQUET_CODECS[codec])
        writer.parquet(str(topic.parquet_path))
        yield topic


def make_root(topic: SameTopic) -> None:
    """Append the same records to a klog root."""
    log = klog.open(topic.root_path)
    log.create_topic(topic.codec, PARTITIONS, {"compression.type": topic.codec})
    for rows in records(topic.count, topic.value_bytes):
        log.append(topic.codec, as_table(rows))
