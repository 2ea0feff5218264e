"""Write a DataFrame with the JVM engine: against Spark's Kafka sink, and against Parquet.

The rule: one cached DataFrame, whole writes with planning and commit, in turns. Kafka's sink has
`acks=all` and the same codec, and its broker's CPU counts. klog writes to an existing topic, one
file a partition; also without the shuffle that this needs, and with Python. Parquet has the codec
that it uses where klog has that one (snappy for lz4). A ratio is taken within a round; above 1,
klog is faster, or takes less CPU. Each write finds as many free pages of memory as it needs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame

import klog
from benchmarks import engine_write_streams, free_pages
from benchmarks.compared import KLOG, Action, compared
from benchmarks.engines import KAFKA, LONG, LONG_SHARE, PARQUET, session
from benchmarks.logs import PARTITIONS
from benchmarks.same_topic import PARQUET_CODECS
from benchmarks.spark_write import BROKER, OLD_RECORDS, Result, cached, kafka_write
from tests.support.kafka_broker import Broker

SINK = KAFKA.replace("connector", "sink")
SHORT = 100
MICRO_BATCH_SHARE = 10
COPIES = 6
"""Twice the copies that a write has in files: those that it spills, a shuffle's, its own."""


def run(count: int, codecs: Sequence[str], batches: int, rounds: int) -> Iterator[Result]:
    """Measure writes of so many rows in each codec; a tenth of them with values of 1 KiB.

    Then micro-batches: a tenth of the rows in each, and one row.
    """
    spark = session()
    try:
        for value_bytes, rows in ((SHORT, count), (LONG, count // LONG_SHARE)):
            with (
                tempfile.TemporaryDirectory(prefix="klog-benchmark-") as path,
                Broker(Path(path) / "broker", BROKER) as broker,
            ):
                df = cached(spark, Path(path), rows, value_bytes)
                for codec in codecs:
                    actions = _writes(df, Path(path), broker, codec)
                    of = f"{rows:,} rows of {value_bytes:,} B, {codec}"
                    prepare = free_pages.refill(COPIES * rows * value_bytes)
                    yield from compared(of, rows, actions, rounds, prepare)
                df.unpersist()
    finally:
        spark.stop()
    yield from engine_write_streams.run((count // MICRO_BATCH_SHARE, 1), batches, rounds)


def _writes(df: DataFrame, folder: Path, broker: Broker, codec: str) -> dict[str, Action]:
    root = folder / f"root-{codec}"
    log = klog.open(root)
    for topic in ("jvm", "none", "python"):
        log.create_topic(topic, PARTITIONS, {**OLD_RECORDS, "compression.type": codec})

    def write(topic: str, **options: str) -> None:
        writer = df.write.format("klog").option("topic", topic).mode("append")
        writer.options(**options).save(str(root))

    parquet = df.write.mode("overwrite").option("compression", PARQUET_CODECS[codec])
    return {
        SINK: lambda: kafka_write(df, broker.bootstrap, codec, codec),
        KLOG: lambda: write("jvm", engine="jvm"),
        f"{KLOG}, no shuffle": lambda: write("none", engine="jvm", distributionMode="none"),
        f"{KLOG}, Python": lambda: write("python", engine="python"),
        PARQUET: lambda: parquet.parquet(str(folder / "parquet")),
    }
