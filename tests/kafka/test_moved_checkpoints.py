"""Streams of Spark's Kafka source go on with klog: each record once, in the same batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from klog.connector.spark_checkpoint.checkpoint_copy import UNFINISHED
from tests.kafka.kafka_source_streams import COUNTS, Query
from tests.kafka.moved_queries import Left, Topic, check, kafka_queries
from tests.support.kafka_broker import Broker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TOPIC = "moved.checkpoints"
BEFORE, MEANWHILE, AFTER = 20, 5, 10
FINISHED = Query("finished", TOPIC)
KILLED = Query("killed", TOPIC, blocks_in=1)
COUNTED = Query("counted", TOPIC, COUNTS, blocks_in=1)
FIRST = Query("first", TOPIC, starting="latest", blocks_in=0)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("moved")


@pytest.fixture(scope="module")
def topic(broker: Broker, work: Path) -> Topic:
    """Run and kill queries of the Kafka source, with records before, during and after them."""
    topic = Topic(broker, TOPIC)
    topic.produce(BEFORE)
    with kafka_queries(topic, work, [FIRST, FINISHED, KILLED, COUNTED]):
        wait_until(
            lambda: (work / "first/checkpoint/sources/0/0").exists(), "what the query has done"
        )
        topic.produce(MEANWHILE)
    topic.produce(AFTER)
    topic.wait_until_readable()
    return topic


def first_record(query: Query) -> int:
    """Return the number of the record with which a query begins."""
    return 2 * (BEFORE + 1) if query is FIRST else 0


@pytest.mark.parametrize("query", [FINISHED, KILLED, COUNTED, FIRST], ids=lambda query: query.name)
def test_from_a_copy(
    spark: SparkSession, topic: Topic, work: Path, tmp_path: Path, query: Query
) -> None:
    left = Left(work / query.name).duplicate(tmp_path / "case")
    before = left.batches()
    left.go_on(spark, topic, left.copied(), query)
    check(left, topic, query, first_record(query))
    after = left.batches()
    assert {batch: after[batch] for batch in before} == before, "the unfinished one ran again"
    assert len(after) > len(before)


@pytest.mark.parametrize("query", [FINISHED, KILLED, COUNTED], ids=lambda query: query.name)
def test_in_place(
    spark: SparkSession, topic: Topic, work: Path, tmp_path: Path, query: Query
) -> None:
    left = Left(work / query.name).duplicate(tmp_path / "case")
    left.go_on(spark, topic, left.checkpoint, query)
    check(left, topic, query)


def test_spark_refuses_what_an_interrupted_copy_leaves(
    spark: SparkSession, topic: Topic, work: Path, tmp_path: Path
) -> None:
    """It is not taken for a new query, which would begin at `startingOffsets`."""
    left = Left(work / FINISHED.name).duplicate(tmp_path / "case")
    target = left.copied()
    before = left.batches()
    (target / "metadata").write_bytes(UNFINISHED)
    with pytest.raises(Exception, match="delete this unfinished copy of klog"):
        left.go_on(spark, topic, target, FINISHED)
    assert left.batches() == before


def test_a_first_batch_in_place_has_no_start(
    spark: SparkSession, topic: Topic, work: Path, tmp_path: Path
) -> None:
    left = Left(work / FIRST.name).duplicate(tmp_path / "case")
    with pytest.raises(StreamingQueryException, match="klog checkpoint copy"):
        left.go_on(spark, topic, left.checkpoint, FIRST)
