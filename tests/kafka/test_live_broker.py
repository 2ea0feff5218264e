"""A directory that a broker writes to, cleans and expires, read and streamed through Spark.

The rule: klog reads what the real consumer reads, up to the high watermark that the broker has
checkpointed; a stream reads each committed record once, whatever the broker does to the files.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.corpus.clients import Client
from tests.corpus.oracle import Account
from tests.kafka.live_writers import SMALL_SEGMENTS, account, writing
from tests.support.kafka_broker import Broker
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture(scope="module")
def client(broker: Broker) -> Client:
    return Client(broker)


def load(spark: SparkSession, broker: Broker, topic: str, **options: str) -> DataFrame:
    return (
        spark.read.format("klog").options(subscribe=topic, **options).load(str(broker.log_dirs[0]))
    )


def rows(frame: DataFrame) -> dict[tuple[str, int, int], tuple[Any, ...]]:
    collected = frame.selectExpr(
        "topic", "partition", "offset", "unix_millis(timestamp) ms", "string(key) k",
        "string(value) v",
    ).collect()  # fmt: skip
    assert len({(r.topic, r.partition, r.offset) for r in collected}) == len(collected)
    return {(r.topic, r.partition, r.offset): (r.ms, r.k, r.v) for r in collected}


def decoded(records: Account) -> dict[tuple[str, int, int], tuple[Any, ...]]:
    from base64 import b64decode

    return {
        where: (
            fields["timestamp"],
            b64decode(fields["key"]).decode(),
            b64decode(fields["value"]).decode(),
        )
        for where, fields in records.items()
    }


def until_checkpointed(broker: Broker, topic: str, expected: Account) -> None:
    """Wait until the broker has checkpointed a high watermark after every expected record."""
    ends = {(t, p): o for t, p, o in expected}
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        lines = (broker.log_dirs[0] / "replication-offset-checkpoint").read_text().split("\n")[2:]
        marks = {(f[0], int(f[1])): int(f[2]) for f in (line.split() for line in lines if line)}
        if all(marks.get(where, 0) > last for where, last in ends.items()):
            return
        time.sleep(0.2)
    raise AssertionError(f"{topic}: the broker checkpointed no high watermark")


@pytest.mark.full  # The other tests read a log being written, too.
def test_batches_of_a_log_being_written(
    spark: SparkSession, broker: Broker, client: Client
) -> None:
    client.create("live.plain", "written while read", SMALL_SEGMENTS, partitions=2)
    levels = ("read_committed", "read_uncommitted")
    seen = []
    with writing(client, "live.plain", 2):
        for _ in range(4):
            time.sleep(1)
            seen.append(
                {n: rows(load(spark, broker, "live.plain", isolationLevel=n)) for n in levels}
            )
    for level in levels:
        consumed = account(client, "live.plain", 2, level)
        until_checkpointed(broker, "live.plain", consumed)
        everything = decoded(consumed)
        assert rows(load(spark, broker, "live.plain", isolationLevel=level)) == everything
        for frames in seen:
            ends = {
                p: max((o for _, q, o in frames[level] if q == p), default=-1) for p in range(2)
            }
            assert frames[level] == {k: v for k, v in everything.items() if k[2] <= ends[k[1]]}
    assert len(seen[-1]["read_committed"]) > len(seen[0]["read_committed"]) > 0


def start(
    spark: SparkSession, broker: Broker, topic: str, into: Path, **options: str
) -> StreamingQuery:
    return (
        spark.readStream.format("klog")
        .options(subscribe=topic, startingOffsets="earliest", **options)
        .load(str(broker.log_dirs[0]))
        .selectExpr(
            "topic", "partition", "offset", "unix_millis(timestamp) ms", "string(key) k",
            "string(value) v",
        )
        .writeStream.format("parquet")
        .option("checkpointLocation", str(into / "checkpoint"))
        .trigger(processingTime="500 milliseconds")
        .start(str(into / "rows"))
    )  # fmt: skip


def finish(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    into: Path,
    query: StreamingQuery,
    **options: str,
) -> dict[tuple[str, int, int], tuple[Any, ...]]:
    """Let a stream reach the end of its log, stop it, and return its rows."""
    query.processAllAvailable()
    query.stop()
    collected = spark.read.parquet(str(into / "rows")).collect()
    counted = Counter((r.topic, r.partition, r.offset) for r in collected)
    assert [where for where, times in counted.items() if times > 1] == []
    return {(r.topic, r.partition, r.offset): (r.ms, r.k, r.v) for r in collected}


def test_a_stream_over_restarts_and_new_partitions(
    spark: SparkSession, broker: Broker, client: Client, tmp_path: Path
) -> None:
    client.create("live.stream", "streamed while written", SMALL_SEGMENTS, partitions=1)
    with writing(client, "live.stream", 1):
        query = start(spark, broker, "live.stream", tmp_path)
        wait_until(lambda: query.lastProgress is not None, "a micro-batch")
        query.stop()
    client.admin.create_partitions([NewPartitions("live.stream", 3)])["live.stream"].result(60)
    time.sleep(1)
    query = start(spark, broker, "live.stream", tmp_path)
    with writing(client, "live.stream", 3):
        time.sleep(4)
    consumed = account(client, "live.stream", 3, "read_committed")
    until_checkpointed(broker, "live.stream", consumed)
    assert finish(spark, broker, "live.stream", tmp_path, query) == decoded(consumed)
    offsets = sorted(
        (tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda p: int(p.name)
    )
    last = json.loads(offsets[-1].read_text().splitlines()[-1])
    assert list(last) == ["#ids", "live.stream"]
    assert list(last["live.stream"]) == ["0", "1", "2"]


def test_a_log_being_compacted(
    spark: SparkSession, broker: Broker, client: Client, tmp_path: Path
) -> None:
    compacted = SMALL_SEGMENTS | {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
        "file.delete.delay.ms": "0",
        "segment.ms": "1000",
    }
    client.create("live.compacted", "cleaned while read", compacted)
    query = start(spark, broker, "live.compacted", tmp_path, engine="python")
    batches = []
    with writing(client, "live.compacted", 1, keys=50):
        for _ in range(8):
            time.sleep(1)
            # A topic's first compaction is not foreseen by the JVM engine (docs/engines.md).
            engine = "auto" if cleaned(broker, "live.compacted") else "python"
            options = {"minPartitions": "4", "engine": engine}
            batches.append(rows(load(spark, broker, "live.compacted", **options)))
    consumed = account(client, "live.compacted", 1, "read_committed")
    until_checkpointed(broker, "live.compacted", consumed)
    streamed = finish(spark, broker, "live.compacted", tmp_path, query)
    survivors = decoded(account(client, "live.compacted", 1, "read_committed"))
    assert cleaned(broker, "live.compacted"), "the cleaner never ran, so this showed nothing"
    # The stream saw records before they were cleaned away; what survives it has, each once.
    assert {k: streamed.get(k) for k in survivors} == survivors
    for batch in batches:
        end = max((k[2] for k in batch), default=-1)
        assert {k: v for k, v in survivors.items() if k[2] <= end}.items() <= batch.items()


def cleaned(broker: Broker, topic: str) -> bool:
    checkpoint = broker.log_dirs[0] / "cleaner-offset-checkpoint"
    text = checkpoint.read_text() if checkpoint.exists() else ""
    return any(line.startswith(f"{topic} ") for line in text.splitlines())


@pytest.mark.full  # test_changing_log.py and test_stream_data_loss.py expire logs without a broker.
def test_a_log_being_expired(
    spark: SparkSession, broker: Broker, client: Client, tmp_path: Path
) -> None:
    expiring = SMALL_SEGMENTS | {"retention.bytes": "200000", "file.delete.delay.ms": "3000"}
    client.create("live.expired", "expired while read", expiring)
    options = {"failOnDataLoss": "false"}
    query = start(spark, broker, "live.expired", tmp_path, **options)
    batches = []
    with writing(client, "live.expired", 1):
        for _ in range(6):
            time.sleep(1.5)
            batches.append(rows(load(spark, broker, "live.expired", **options)))
    consumed = account(client, "live.expired", 1, "read_committed")
    until_checkpointed(broker, "live.expired", consumed)
    left = decoded(account(client, "live.expired", 1, "read_committed"))
    assert min(k[2] for k in left) > 0, "nothing expired, so this showed nothing"
    streamed = finish(spark, broker, "live.expired", tmp_path, query)
    assert {k: streamed.get(k) for k in left} == left
    assert any(batches), "no batch saw anything, so this showed nothing"
    first_left = min(k[2] for k in left)
    for batch in batches:
        # The stream has every row of a batch, except for those that expired before it read them.
        assert {k: v for k, v in batch.items() if streamed.get(k, v) != v} == {}
        assert [k for k in batch if k not in streamed and k[2] >= first_left] == []
