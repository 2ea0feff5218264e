"""Read a topic with the JVM engine: against Spark's Kafka connector, and against Parquet.

The rule: whole queries with their planning, warm and from the page cache, in turns. A ratio is
taken within a round; above 1, klog is faster, or takes less CPU. CPU is that of Spark, its Python
workers and the broker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks import engine_streams
from benchmarks.compared import KLOG, Action, compared
from benchmarks.logs import PARTITIONS
from benchmarks.same_topic import SameTopic, make_root, same_topic
from benchmarks.spark_write import Result, session_builder

KAFKA, ROOT, PARQUET = "Kafka connector", "klog root", "Parquet"
QUERIES: Mapping[str, Callable[[DataFrame], object]] = {
    "scan to noop": lambda df: df.write.format("noop").mode("overwrite").save(),
    "sum(length(value))": lambda df: df.selectExpr("sum(length(value))").collect(),
    "count(*)": lambda df: df.count(),
}
SHORT, LONG = 100, 1024
LONG_SHARE = 10
"""The topic of 1 KiB values has so many times fewer records: it stays in the page cache."""
TINY_RECORDS = 100
MORE_ROUNDS = 3
"""Short queries are repeated so many times more often."""


def session() -> SparkSession:
    """Return a session with klog's jar and Spark's Kafka connector."""
    return klog.configure(session_builder()).getOrCreate()


def run(count: int, codecs: Sequence[str], batches: int, rounds: int) -> Iterator[Result]:
    """Measure scans in each codec, and in the first one what reads little and streams."""
    spark = session()
    try:
        for codec in codecs:
            with same_topic(spark, codec, count, SHORT) as topic:
                for query, action in QUERIES.items():
                    yield from _compared(query, topic, _scans(topic, action), rounds)
                if codec == codecs[0]:
                    yield from _little(topic, rounds)
                    yield from engine_streams.available_now(topic, rounds)
            with same_topic(spark, codec, count // LONG_SHARE, LONG) as topic:
                scans = _scans(topic, QUERIES["scan to noop"])
                yield from _compared("scan to noop", topic, scans, rounds)
        with same_topic(spark, codecs[0], TINY_RECORDS, SHORT) as topic:
            scans = _scans(topic, lambda df: df.collect())
            yield from _compared("collected from load() on", topic, scans, MORE_ROUNDS * rounds)
            yield from engine_streams.micro_batches(topic, batches, rounds)
    finally:
        spark.stop()


def _scans(topic: SameTopic, action: Callable[[DataFrame], object]) -> dict[str, Action]:
    return {
        KAFKA: lambda: action(topic.kafka()),
        KLOG: lambda: action(topic.directory()),
        PARQUET: lambda: action(topic.parquet()),
    }


def _little(topic: SameTopic, rounds: int) -> Iterator[Result]:
    """Read a hundredth by time, then one offset, and count by commits."""
    noop = QUERIES["scan to noop"]
    hundredth, times = _hundredth(topic)
    by_time: dict[str, Action] = {
        KAFKA: lambda: noop(topic.kafka(times)),
        KLOG: lambda: noop(topic.directory(times)),
        f"{KLOG}, where": lambda: noop(topic.directory().where(hundredth)),
        PARQUET: lambda: noop(topic.parquet().where(hundredth)),
    }
    yield from _compared("1 % by time", topic, by_time, MORE_ROUNDS * rounds)
    offset = topic.count // PARTITIONS // 2
    offsets = _one_offset(topic, offset)
    by_options: dict[str, Action] = {
        KAFKA: lambda: noop(topic.kafka(offsets)),
        KLOG: lambda: noop(topic.directory(offsets)),
    }
    yield from _compared("one offset by options", topic, by_options, MORE_ROUNDS * rounds)
    condition = f"partition = 0 and offset = {offset}"
    filtered = _scans(topic, lambda df: noop(df.where(condition)))
    yield from _compared("one offset by where", topic, filtered, rounds)
    make_root(topic)
    counts: dict[str, Action] = {
        KAFKA: lambda: topic.kafka().count(),
        ROOT: lambda: topic.root().count(),
        PARQUET: lambda: topic.parquet().count(),
    }
    yield from _compared("count(*) of a klog root", topic, counts, rounds)


def _hundredth(topic: SameTopic) -> tuple[str, dict[str, str]]:
    """Return a hundredth of the topic's time, from its middle on: a condition, and options."""
    first, last = topic.parquet().selectExpr(
        "unix_millis(min(timestamp))", "unix_millis(max(timestamp))"
    ).collect()[0]  # fmt: skip
    start = (first + last) // 2
    end = start + max((last - first) // 100, 1)
    condition = f"timestamp >= timestamp_millis({start}) and timestamp < timestamp_millis({end})"
    return condition, {"startingTimestamp": str(start), "endingTimestamp": str(end)}


def _one_offset(topic: SameTopic, offset: int) -> dict[str, str]:
    """Return options for an offset of partition 0: of the others nothing is read."""
    starts = {str(partition): offset for partition in range(PARTITIONS)}
    ends = {**starts, "0": offset + 1}
    return {
        "startingOffsets": json.dumps({topic.codec: starts}),
        "endingOffsets": json.dumps({topic.codec: ends}),
    }


def _compared(
    query: str, topic: SameTopic, actions: Mapping[str, Action], rounds: int
) -> Iterator[Result]:
    return compared(f"{query}, {topic.label}", topic.count, actions, rounds)
