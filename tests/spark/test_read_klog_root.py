"""`spark.read` and `spark.readStream` of a klog root: what was committed, as of the load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.cli import main
from klog.connector.embedded import Log
from klog.jobs import merge

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("t", partitions=2)
    append(log, range(10))
    return tmp_path / "root"


def append(log: Log, numbers: range) -> None:
    """Write numbers as values, even ones to partition 0."""
    partitions = pa.array([number % 2 for number in numbers])
    log.append("t", pa.table({"value": [str(n) for n in numbers], "partition": partitions}))


def load(spark: SparkSession, root: Path, **options: Any) -> DataFrame:
    return spark.read.format("klog").option("subscribe", "t").options(**options).load(str(root))


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.collect())


def test_a_root_is_read_as_of_its_load(spark: SparkSession, root: Path) -> None:
    frame = load(spark, root)
    assert numbers(frame) == list(range(10))
    append(klog.open(str(root)), range(10, 20))
    assert numbers(frame) == list(range(10))
    assert numbers(load(spark, root)) == list(range(20))
    rows = load(spark, root).select("partition", "offset").collect()
    assert sorted((r.partition, r.offset) for r in rows) == [
        (p, o) for p in (0, 1) for o in range(10)
    ]
    joined = frame.alias("a").join(frame.alias("b"), "value")
    assert joined.count() == 10


def test_the_past_is_read_as_its_commit_left_it(spark: SparkSession, root: Path) -> None:
    """Jobs change the files meanwhile: the commits of before still name theirs."""
    log = klog.open(str(root))
    append(log, range(10, 30))
    now = log.history("t", 1)[0].version
    merge.run(None, str(root))
    append(log, range(30, 40))
    assert numbers(load(spark, root, asOfVersion="1")) == list(range(10))
    assert numbers(load(spark, root, asOfVersion=str(now))) == list(range(30))
    assert numbers(load(spark, root, asOfVersion=str(now), startingOffsets="-2")) == [
        *range(26, 30)
    ]
    assert numbers(load(spark, root, asOfTimestamp="now")) == list(range(40))
    with pytest.raises(AnalysisException, match="asOfTimestamp: "):
        load(spark, root, asOfTimestamp="1970-01-01T00:00:00Z").count()
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW past USING klog "
        f"OPTIONS (path '{root}', subscribe 't', asOfVersion '1')"
    )
    assert spark.sql("SELECT count(*) FROM past").first() == (10,)


def test_a_pattern_takes_the_topics_that_are_there(spark: SparkSession, root: Path) -> None:
    log = klog.open(str(root))
    log.create_topic("t2")
    log.append("t2", pa.table({"value": ["x"]}))
    log.create_topic("t3")
    log.delete_topic("t3")
    frame = spark.read.format("klog").option("subscribePattern", "t.*").load(str(root))
    counts = {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counts == {"t": 10, "t2": 1}


def test_a_stream_reads_each_record_once(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    """Over restarts, with a partition added meanwhile."""
    log, seen = klog.open(str(root)), []

    def run() -> None:
        stream = spark.readStream.format("klog").option("subscribe", "t")
        rows = stream.option("startingOffsets", "earliest").load(str(root))
        query = rows.writeStream.foreachBatch(lambda batch, _: seen.extend(numbers(batch)))
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    assert sorted(seen) == list(range(10))
    append(log, range(10, 14))
    run()
    log.add_partitions("t", 3)
    log.append("t", pa.table({"value": ["14"], "partition": pa.array([2])}))
    run()
    run()
    assert sorted(seen) == list(range(15))
    log.delete_topic("t")
    log.create_topic("t", partitions=3)
    with pytest.raises(StreamingQueryException, match="deleted and created again"):
        run()


def test_stream_that_restarts_after_delete_records(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    log, seen = klog.open(str(root)), []

    def run(**options: str) -> None:
        stream = spark.readStream.format("klog").options(subscribe="t", **options)
        rows = stream.option("startingOffsets", "earliest").load(str(root))
        query = rows.writeStream.foreachBatch(lambda batch, _: seen.extend(numbers(batch)))
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    run()
    append(log, range(10, 20))
    words = ["--topic", "t", "--partition", "0", "--offset", "7"]
    assert main(["delete-records", "--root", str(root), *words]) == 0
    with pytest.raises(StreamingQueryException) as caught:
        run()
    assert "t-0: offsets 5 to 6 were deleted: 2 that the stream has not read" in str(caught.value)
    assert "failOnDataLoss=false to go on with the log start, offset 7" in str(caught.value)
    assert "read again" not in str(caught.value)
    run(failOnDataLoss="false")
    assert sorted(seen) == [*range(10), 11, 13, 14, *range(15, 20)]


def test_a_missing_segment_is_named(spark: SparkSession, root: Path) -> None:
    file = next((root / "t-1").glob("*.log"))
    file.unlink()
    with pytest.raises(PythonException, match=f"{file.name}.*the file is missing or was replaced"):
        load(spark, root).collect()
    other = spark.read.format("klog").option("assign", '{"t":[0]}').load(str(root))
    assert numbers(other) == [0, 2, 4, 6, 8]
