"""`df.write` and `df.writeStream`: the rows are in the log exactly once."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import klog
from klog.logformat.partitioner import key_partitions

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("write_engine")]


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    klog.register(spark)


def save(df: DataFrame, root: Path, **options: Any) -> None:
    if "topic" not in options:
        options["engine"] = "auto"  # Rows that name their topics are Python's.
    df.write.format("klog").options(**options).mode("append").save(str(root))


def values(root: Path, topic: str = "t") -> list[str]:
    table = klog.open(root).scan(topic).read_all()
    return [value.decode() for value in table["value"].to_pylist()]


def numbered(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr("cast(id as string) value")


def run(df: DataFrame, root: Path, checkpoint: Path, **options: Any) -> StreamingQuery:
    """Run a stream over the rows that are there now."""
    writer = df.writeStream.format("klog").option("checkpointLocation", str(checkpoint))
    query = writer.options(**options).trigger(availableNow=True).start(str(root))
    assert query.awaitTermination(120)
    return query


def test_written_rows_are_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        (
            "a",
            "1",
            [("h", b"x"), ("i", None)],
            0,
            datetime(2026, 1, 2, 3, 4, 5, 678000, timezone.utc),
        ),
        (None, None, None, 1, datetime(2026, 1, 2, 3, 4, 6, 0, timezone.utc)),
    ]
    df = spark.createDataFrame(
        rows,
        "key string, value string, headers array<struct<key string, value binary>>, "
        "partition int, timestamp timestamp",
    )
    save(df, tmp_path, topic="t", numPartitions=2)
    read = spark.read.format("klog").options(subscribe="t", includeHeaders="true")
    first, second = read.load(str(tmp_path)).orderBy("partition").collect()
    assert (bytes(first.key), bytes(first.value)) == (b"a", b"1")
    assert [(h.key, h.value and bytes(h.value)) for h in first.headers] == [
        ("h", b"x"),
        ("i", None),
    ]
    assert (
        first.timestamp.astimezone(timezone.utc).isoformat() == "2026-01-02T03:04:05.678000+00:00"
    )
    assert (second.key, second.value, second.headers, second.offset) == (None, None, None, 0)


def test_read_rows_can_be_written_again(spark: SparkSession, tmp_path: Path) -> None:
    save(numbered(spark, 10), tmp_path, topic="t")
    source = spark.read.format("klog").option("subscribe", "t").load(str(tmp_path))
    save(source.drop("topic"), tmp_path, topic="u")
    assert Counter(values(tmp_path, "u")) == Counter(values(tmp_path))


def test_rows_go_to_their_topics(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 30, 1, 3).selectExpr(
        "cast(id as string) value", "concat('t', id % 3) topic"
    )
    save(df, tmp_path)
    assert sorted(map(int, values(tmp_path, "t1"))) == list(range(1, 30, 3))
    save(df, tmp_path, topic="all")
    assert sorted(map(int, values(tmp_path, "all"))) == list(range(30))


def test_write_with_a_transactional_id_is_committed_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    for _ in range(2):
        save(numbered(spark, 10), tmp_path, topic="t", transactionalId="etl", transactionVersion=3)
    assert sorted(map(int, values(tmp_path))) == list(range(10))
    save(numbered(spark, 1), tmp_path, topic="t", transactionalId="etl", transactionVersion=4)
    assert len(values(tmp_path)) == 11


def test_repartition_leaves_one_file_per_partition(spark: SparkSession, tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("t", 4)
    df = spark.range(0, 4000, 1, 8).selectExpr(
        "cast(id % 100 as string) key", "cast(id as string) value"
    )
    save(klog.repartition(df, tmp_path, "t"), tmp_path, topic="t")
    assert len(list(tmp_path.glob("t-*/*.log"))) == 4
    table = klog.open(tmp_path).scan("t", columns=["key", "partition"]).read_all()
    expected = key_partitions(table["key"].combine_chunks(), 4)
    assert table["partition"].to_pylist() == expected.to_pylist()
    assert table.num_rows == 4000


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("'a' v", {"topic": "t"}, "column v: a write has no such column"),
        ("1 value", {"topic": "t"}, "column value is int32; cast it to binary or string"),
        ("'a' value", {}, "topic: name the topic with this option, or give each row its own"),
        ("'a' value", {"topic": "t", "topik": "u"}, "topik: unknown write option"),
        ("'a' value", {"topic": "t", "createTopic": "false"}, "createTopic=false creates no root"),
        ("'a' value, 'b' key, 'c' VALUE2", {"topic": "t"}, "column VALUE2: a write has no such"),
    ],
)
def test_wrong_write_is_refused_before_a_task_starts(
    spark: SparkSession, tmp_path: Path, columns: str, options: dict[str, str], message: str
) -> None:
    df = spark.range(1).selectExpr(*columns.split(", "))
    with pytest.raises(AnalysisException) as caught:
        save(df, tmp_path, **options)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'a' value, cast(id + 1 as int) partition", "the topic does not exist yet and gets 1"),
        ("'a' value, -1 partition", "there is no partition -1, only 0 to 0"),
        ("'a' value, cast(null as string) topic", "its topic is null"),
        ("'a' value, 'a b' topic", "'a b' is not a topic name"),
        ("'a' value, timestamp'1969-01-01' timestamp", "is before 1970"),
    ],
)
def test_rejected_row_is_named_or_a_dead_letter(
    spark: SparkSession, tmp_path: Path, columns: str, message: str
) -> None:
    df = spark.range(0, 3, 1, 1).selectExpr(*columns.split(", "))
    options = {} if "topic" in columns else {"topic": "t"}
    with pytest.raises(PythonException) as caught:
        save(df, tmp_path, **options)
    assert "row 0 of task 0: " in str(caught.value)
    assert message in str(caught.value)
    assert klog.open(tmp_path).topics() == []
    save(df, tmp_path, deadLetterTopic="dead", **options)
    table = klog.open(tmp_path).scan("dead", columns=["value", "headers"]).read_all()
    assert table["value"].to_pylist() == [b"a"] * 3
    for headers in table["headers"].to_pylist():
        texts = {header["key"]: header["value"].decode() for header in headers}
        assert message in texts["klog.dead-letter.reason"]


def test_unsupported_mode_names_the_alternative(spark: SparkSession, tmp_path: Path) -> None:
    df = numbered(spark, 1)
    with pytest.raises(AnalysisException, match=r'klog only appends; use mode\("append"\)'):
        df.write.format("klog").option("topic", "t").mode("overwrite").save(str(tmp_path))
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) value")
    counted = stream.groupBy("value").count().select("value")
    writer = counted.writeStream.format("klog").option("topic", "t").outputMode("complete")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start(str(tmp_path / "r"))
    with pytest.raises(StreamingQueryException, match="klog only appends; use outputMode"):
        query.awaitTermination(60)


def test_stream_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source, root, checkpoint = tmp_path / "in", tmp_path / "root", tmp_path / "checkpoint"
    for number in range(3):
        save(numbered(spark, 10), source, topic="in")
        stream = spark.readStream.format("klog").options(subscribe="in", startingOffsets="earliest")
        run(stream.load(str(source)).select("value"), root, checkpoint, topic="t")
        assert Counter(values(root)) == Counter(values(source, "in"))
        assert len(klog.open(root).history("t")) == number + 1
    commits = klog.open(root).history("t")
    transactions = [
        commit.actions.writer_transaction for commit in commits if commit.actions.writer_transaction
    ]
    assert [transaction.batch_id for transaction in transactions] == [2, 1, 0]
    assert len({transaction.name for transaction in transactions}) == 1
    assert len({transaction.run_id for transaction in transactions}) == 3


def test_stream_with_a_new_checkpoint_and_a_used_name_is_fenced(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, root = tmp_path / "in", tmp_path / "root"
    save(numbered(spark, 10), source, topic="in")
    stream = spark.readStream.format("klog").options(subscribe="in", startingOffsets="earliest")
    df = stream.load(str(source)).select("value")
    run(df, root, tmp_path / "one", topic="t", transactionalId="etl")
    with pytest.raises(StreamingQueryException, match="it would be skipped"):
        run(df, root, tmp_path / "two", topic="t", transactionalId="etl")
    run(df, root, tmp_path / "three", topic="t")  # Its name is its query id.
    assert len(values(root)) == 20


def test_for_each_batch_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source, root = tmp_path / "in", tmp_path / "root"
    save(numbered(spark, 10), source, topic="in")
    stream = spark.readStream.format("klog").options(subscribe="in", startingOffsets="earliest")

    def write(df: DataFrame, batch: int) -> None:
        for _ in range(2):  # A repeated batch.
            writer = {"transactionalId": "each", "transactionVersion": batch}
            save(df.select("value"), root, topic="t", **writer)

    def run_query(checkpoint: str) -> None:
        writer = stream.load(str(source)).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        assert writer.trigger(availableNow=True).start().awaitTermination(120)

    run_query("one")
    assert len(values(root)) == 10
    with pytest.raises(StreamingQueryException, match="it would be skipped"):
        run_query("two")  # With a new checkpoint, batch 0 is another batch.
    assert len(values(root)) == 10


def test_stream_ends_when_it_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    writer = rate.selectExpr("cast(value as string) value").writeStream.format("klog")
    writer = writer.options(topic="t", checkpointLocation=str(tmp_path / "c"))
    query = writer.start(str(tmp_path / "root"))
    deadline = time.monotonic() + 60
    while query.lastProgress is None or query.lastProgress["batchId"] < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    query.stop()
    numbers = sorted(map(int, values(tmp_path / "root")))
    assert numbers == list(range(len(numbers)))
