"""Which engine writes, that EXPLAIN says it, and that a stream may change it at a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.jobs import verify
from tests.spark.last_query import metrics_of_last_query

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, count: int, tasks: int = 2) -> DataFrame:
    return spark.range(0, count, 1, tasks).selectExpr("CAST(id AS STRING) AS value")


def values(root: Path, topic: str = "t") -> list[int]:
    table = klog.open(root).scan(topic).read_all()
    return sorted(int(value) for value in table["value"].to_pylist())


def stream(
    spark: SparkSession, folder: Path, *, mode: str = "append", **options: Any
) -> dict[str, Any]:
    """Write what is new in `source` to `t`; return the progress of the last micro-batch."""
    source = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = source.option("subscribe", "source").load(str(folder / "in")).select("value")
    writer = frame.writeStream.format("klog").outputMode(mode).option("topic", "t")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).options(**options)
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None
    return dict(progress)


def append(spark: SparkSession, folder: Path, first: int, count: int) -> None:
    more = spark.range(first, first + count).selectExpr("CAST(id AS STRING) AS value")
    more.write.format("klog").mode("append").option("topic", "source").save(str(folder / "in"))


def explain_insert(spark: SparkSession) -> str:
    rows = "SELECT CAST(value AS BINARY) AS value FROM rows_to_explain"
    plan: str = spark.sql(f"EXPLAIN INSERT INTO explained {rows}").collect()[0][0]
    return plan


def test_explain_names_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    rows(spark, 1).createOrReplaceTempView("rows_to_explain")
    location = f"OPTIONS (topic 't') LOCATION '{tmp_path}'"
    spark.sql(f"CREATE TABLE explained (value BINARY) USING klog {location}")
    try:
        assert "klog engine=jvm" in explain_insert(spark)
        spark.conf.set("spark.klog.engine", "python")
        assert "klog engine=python (conf spark.klog.engine)" in explain_insert(spark)
        spark.conf.set("spark.klog.write.engine", "jvm")
        assert "klog engine=jvm" in explain_insert(spark)
    finally:
        spark.conf.unset("spark.klog.engine")
        spark.conf.unset("spark.klog.write.engine")
        spark.sql("DROP TABLE explained")


def test_rows_that_name_their_topic_are_left_to_python(spark: SparkSession, tmp_path: Path) -> None:
    named = rows(spark, 4).selectExpr("value", "IF(value < 2, 'a', 'b') AS topic")
    writer = named.write.format("klog").mode("append")
    writer.save(str(tmp_path))
    assert values(tmp_path, "a") == [0, 1]
    with pytest.raises(IllegalArgumentException, match="engine: jvm cannot write this: each row"):
        writer.option("engine", "jvm").save(str(tmp_path))


def test_a_stream_changes_engines_at_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    for number, engine in enumerate(("jvm", "python", "auto", "python", "jvm")):
        append(spark, tmp_path, number * 10, 10)
        stream(spark, tmp_path, engine=engine)
        assert values(tmp_path / "out") == list(range((number + 1) * 10))


def test_progress_says_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    append(spark, tmp_path, 0, 100)
    metrics = stream(spark, tmp_path, engine="jvm")["sink"]["metrics"]
    assert metrics["engine"] == "jvm"
    assert metrics["records"] == "100"
    assert int(metrics["files"]) >= 1
    assert int(metrics["bytesBeforeCompression"]) > 100
    assert metrics["deadLetters"] == "0"


def test_the_ui_has_the_metrics_of_a_write(spark: SparkSession, tmp_path: Path) -> None:
    klog.open(tmp_path).create_topic("t", 2)
    keyed = rows(spark, 1000).selectExpr("value AS key", "repeat('x', 100) AS value")
    writer = keyed.write.format("klog").mode("append").options(topic="t", engine="jvm")
    writer.option("compression.type", "zstd").save(str(tmp_path))
    metrics = metrics_of_last_query(spark)
    sizes = [path.stat().st_size for path in tmp_path.glob("t-*/*.log")]
    assert metrics["records written"] == "1000"
    assert metrics["batches written"] == metrics["segments written"] == "2"
    assert metrics["bytes written"] == str(sum(sizes))
    assert int(metrics["bytes before compression"]) > 100_000 > sum(sizes)
    assert metrics["dead letters"] == "0"
    assert {"time in compression", "time in the store"} <= metrics.keys()


def test_progress_and_explain_say_why_python_writes_a_stream(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(spark, tmp_path, 0, 10)
    source = spark.readStream.format("klog").options(subscribe="source", startingOffsets="earliest")
    named = source.load(str(tmp_path / "in")).selectExpr("value", "'a' AS topic")
    writer = named.writeStream.format("klog").option("checkpointLocation", str(tmp_path / "state"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    metrics = query.recentProgress[0]["sink"]["metrics"]
    assert metrics == {"engine": "python", "engineReason": "each row names its topic"}
    query.explain()
    assert "klog engine=python (each row names its topic)" in capsys.readouterr().out


def test_a_topic_for_dead_letters_need_not_be_there(spark: SparkSession, tmp_path: Path) -> None:
    """As long as no row is rejected: with either engine."""
    klog.open(tmp_path).create_topic("t", 2)
    for count, engine in enumerate(("python", "jvm"), 1):
        writer = rows(spark, 4).write.format("klog").mode("append").option("engine", engine)
        writer = writer.options(topic="t", createTopic="false", deadLetterTopic="dead")
        writer.save(str(tmp_path))
        assert len(values(tmp_path)) == 4 * count
    wrong = rows(spark, 4).selectExpr("value", "99 AS partition").write.format("klog")
    for engine in ("python", "jvm"):
        wrong.options(topic="t", createTopic="false", deadLetterTopic="dead", engine=engine)
        with pytest.raises(PySparkException, match="there is no topic dead"):
            wrong.mode("append").save(str(tmp_path))


@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_more_rows_than_memory(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    """Batches wait on disk."""
    klog.open(tmp_path).create_topic("t", 5)
    keyed = rows(spark, 20_000).selectExpr("value AS key", "value")
    writer = keyed.write.format("klog").mode("append").options(topic="t", engine=engine)
    writer.options(**{"buffer.memory": "10000", "batch.size": "1000"}).save(str(tmp_path))
    assert values(tmp_path) == list(range(20_000))
    assert verify.run(None, str(tmp_path), "t").findings == ()


def test_wrong_words_are_named(spark: SparkSession, tmp_path: Path) -> None:
    writer = rows(spark, 1).write.format("klog").mode("append").option("topic", "t")
    with pytest.raises(IllegalArgumentException, match="engine: must be one of"):
        writer.option("engine", "spark").save(str(tmp_path))
    writer = rows(spark, 1).write.format("klog").mode("append").option("topic", "t")
    with pytest.raises(PySparkException, match="distributionMode: must be"):
        writer.option("distributionMode", "hsah").save(str(tmp_path))
    writer = rows(spark, 1).write.format("klog").mode("append").options(topic="t", engine="python")
    with pytest.raises(PySparkException, match="plannedfor: unknown write option"):
        writer.option("klog.plannedFor", "me").save(str(tmp_path))


@pytest.mark.parametrize("engine", ["python", "jvm"])
def test_update_mode_is_append(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    append(spark, tmp_path, 0, 10)
    stream(spark, tmp_path, mode="update", engine=engine)
    assert values(tmp_path / "out") == list(range(10))
