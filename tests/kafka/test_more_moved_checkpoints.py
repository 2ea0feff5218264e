"""Streams of Spark's Kafka source go on with klog: other layouts, and a query that still runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klog.cli import main
from tests.kafka.kafka_source_streams import Query
from tests.kafka.moved_queries import Left, Topic, check, kafka_queries
from tests.support.kafka_broker import Broker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.full]

TOPIC = "moved.layouts"
V2 = {"spark.sql.streaming.offsetLog.formatVersion": "2"}
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
VERSION_2 = Query("version-2", TOPIC, conf=V2)
ROCKS = Query("rocks", TOPIC, "counts", blocks_in=1, conf=ROCKSDB)
BUSY = Query("busy", TOPIC, blocks_in=10)


def produce(topic: Topic) -> None:
    for _ in range(12):
        topic.produce(5)


def test_layouts_and_a_query_that_runs(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(broker, TOPIC)
    topic.produce(20)
    with kafka_queries(topic, tmp_path, [VERSION_2, ROCKS, BUSY]):
        busy = tmp_path / "busy"
        wait_until(lambda: (busy / "checkpoint/commits/0").exists(), "what the query has done")
        producing = threading.Thread(target=produce, args=[topic])
        producing.start()
        target = tmp_path / "refused"
        arguments = ["checkpoint", "copy", "--watch", "5", str(busy / "checkpoint"), str(target)]
        assert main(arguments) == 1
        assert "the query still runs" in capsys.readouterr().err
        assert not target.exists()
        producing.join()
    topic.produce(10)
    topic.wait_until_readable()
    assert (tmp_path / "version-2/checkpoint/offsets/0").read_text().startswith("v2\n")
    for query in (VERSION_2, ROCKS, BUSY):
        left = Left(tmp_path / query.name)
        for key, value in query.conf.items():
            spark.conf.set(key, value)
        try:
            left.go_on(spark, topic, left.copied(), query)
        finally:
            for key in query.conf:
                spark.conf.unset(key)
        check(left, topic, query)
