"""SQL over a root: the table functions, and `CREATE TEMPORARY VIEW ... USING klog`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import klog
from klog.connector.embedded import Log
from klog.errors import OptionError
from tests.connector.log_dirs import many, write_log

pytestmark = pytest.mark.spark
SECRET = "not-to-be-seen"


@pytest.fixture(autouse=True, scope="module")
def _registered(spark: SparkSession) -> None:
    klog.register(spark, secret_access_key=SECRET)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(tmp_path / "root")
    log.create_topic("orders", 2, {"retention.ms": "1000000"})
    log.append("orders", pa.table({"value": ["a", "b", "c"], "partition": [0, 0, 1]}))
    log.create_topic("clicks")
    log.create_topic("gone")
    log.delete_topic("gone")
    return log


@pytest.fixture
def root(log: Log, tmp_path: Path) -> str:
    return str(tmp_path / "root")


def rows(spark: SparkSession, query: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.sql(query).collect()]


def test_the_topics_of_a_root(spark: SparkSession, log: Log, root: str) -> None:
    clicks, orders = rows(spark, f"SELECT * FROM klog_topics('{root}') ORDER BY topic")
    assert orders == {
        "topic": "orders",
        "topicId": log.describe("orders").topic_id,
        "partitions": [0, 1],
        "internal": False,
        "configs": {"retention.ms": "1000000"},
        "error": None,
    }
    assert (clicks["topic"], clicks["partitions"], clicks["configs"]) == ("clicks", [0], {})


def test_the_offsets_of_a_topic(spark: SparkSession, root: str) -> None:
    first, second = rows(spark, f"SELECT * FROM klog_offsets('{root}', 'orders')")
    assert first.pop("bytes") > 0
    assert first == {
        "topic": "orders",
        "partition": 0,
        "offset": 2,
        "logStartOffset": 0,
        "logEndOffset": 2,
        "lastStableOffset": 2,
        "segments": 1,
    }
    assert (second["partition"], second["offset"]) == (1, 1)
    query = f"SELECT offset FROM klog_offsets('{root}', topic => 'orders', at => '{{}}')"
    for at, offsets in {"earliest": [0, 0], "now-1d": [0, 0], "now": [2, 1], "-3": [0, 0]}.items():
        assert [row["offset"] for row in rows(spark, query.format(at))] == offsets
    assert [row["offset"] for row in rows(spark, query.format("2100-01-01T00:00Z"))] == [None] * 2


def test_how_many_records_a_topic_has(spark: SparkSession, root: str) -> None:
    assert rows(spark, f"SELECT * FROM klog_count('{root}', 'orders')") == [
        {"topic": "orders", "partition": 0, "records": 2},
        {"topic": "orders", "partition": 1, "records": 1},
    ]
    query = f"SELECT sum(records) n FROM klog_count('{root}', 'orders', start => '-1')"
    assert rows(spark, query) == [{"n": 2}]


def test_the_history_of_a_topic(spark: SparkSession, log: Log, root: str) -> None:
    appended, created = rows(spark, f"SELECT * FROM klog_history('{root}', 'orders')")
    commits = log.history("orders")
    assert appended["version"] == 1
    assert appended["operation"] == "append"
    assert appended["timestamp"].timestamp() * 1000 == commits[0].timestamp_ms
    assert appended["added"].pop("bytes") > 0
    assert appended["added"] == {"segments": 2, "records": 3}
    assert appended["partitions"] == [0, 1]
    assert appended["offsets"] == {0: {"first": 0, "last": 1}, 1: {"first": 0, "last": 0}}
    assert appended["holes"] is None
    assert created["configs"] == {"retention.ms": "1000000"}
    assert (created["version"], created["partitionCount"]) == (0, 2)
    assert created["topicId"] == log.describe("orders").topic_id
    total = f"SELECT sum(added.records) n FROM klog_history('{root}', 'orders')"
    assert rows(spark, total) == [{"n": 3}]
    deleted = rows(spark, f"SELECT operation FROM klog_history('{root}', 'gone')")
    assert [row["operation"] for row in deleted] == ["delete-topic", "create-topic"]


def test_a_brokers_directory(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(7)})
    (topic,) = rows(spark, f"SELECT * FROM klog_topics('{tmp_path}')")
    assert (topic["topic"], topic["partitions"], topic["configs"]) == ("t", [0], None)
    assert rows(spark, f"SELECT logEndOffset n FROM klog_offsets('{tmp_path}', 't')") == [{"n": 7}]
    assert rows(spark, f"SELECT records n FROM klog_count('{tmp_path}', 't')") == [{"n": 7}]
    refused(spark, f"klog_history('{tmp_path}', 't')", "is not a klog root")


def test_functions_join_and_take_part_in_queries(spark: SparkSession, root: str) -> None:
    query = (
        f"SELECT t.topic, sum(o.logEndOffset) n FROM klog_topics('{root}') t, "
        f"LATERAL klog_offsets('{root}', t.topic) o GROUP BY t.topic ORDER BY t.topic"
    )
    assert rows(spark, query) == [{"topic": "clicks", "n": 0}, {"topic": "orders", "n": 3}]


def refused(spark: SparkSession, call: str, sentence: str) -> None:
    """Expect an error whose first line is its sentence."""
    with pytest.raises(PythonException) as caught:
        spark.sql(f"SELECT * FROM {call}").collect()
    message = str(caught.value)
    assert sentence in message
    assert "Traceback" not in message
    assert SECRET not in message


def test_an_error_is_a_sentence(spark: SparkSession, root: str) -> None:
    refused(spark, f"klog_offsets('{root}', 'order')", "topic: there is no topic order")
    refused(spark, f"klog_offsets('{root}', 'orders', 'soon')", "at: must be")
    refused(spark, f"klog_count('{root}', 'orders', start => '9')", "startingOffsets: must be")
    refused(spark, f"klog_history('{root}', 'order')", "did you mean orders?")
    refused(spark, f"klog_topics('{root}/nowhere')", "nowhere")


def test_no_plan_shows_a_storage_option(spark: SparkSession, root: str) -> None:
    frame = spark.sql(f"SELECT * FROM klog_history('{root}', 'orders')")
    plan = frame._jdf.queryExecution().toString()
    assert "klog_history" in plan
    assert SECRET not in plan
    with pytest.raises(OptionError, match="secret_key"):
        klog.register(spark, secret_key="x")


def test_a_view_is_a_read_with_options(spark: SparkSession, log: Log, root: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING klog OPTIONS (path '{root}', subscribe "
        "'orders', startingOffsets '-1', columns 'partition,offset,value')"
    )
    query = "SELECT partition, offset, CAST(value AS string) v FROM v ORDER BY partition"
    expected = [{"partition": 0, "offset": 1, "v": "b"}, {"partition": 1, "offset": 0, "v": "c"}]
    assert rows(spark, query) == expected
    log.append("orders", pa.table({"value": ["d"], "partition": [1]}))
    assert rows(spark, query) == expected, "as of its creation"
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING klog OPTIONS (path '{root}', subscribePattern "
        "'.*', columns 'topic')"
    )
    assert rows(spark, "SELECT count(*) n FROM v") == [{"n": 4}]
    spark.sql("DROP VIEW v")
