"""Which engine reads, what a query pushes down, and that EXPLAIN says both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import klog
from tests.connector.log_dirs import write_log
from tests.support.batch_bytes import ABORT, marker, plain, transactional
from tests.support.explained_plan import explain
from tests.support.project import PROJECT

pytestmark = pytest.mark.spark

COMMITS, ROWS = 5, 20
GOLDEN = PROJECT / "tests" / "golden"
FIRST_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with two topics of two partitions, 50 records each, 1 ms apart."""
    folder = tmp_path_factory.mktemp("engines") / "root"
    log = klog.open(folder)
    for topic in ("a", "b"):
        log.create_topic(topic, 2)
        for commit in range(COMMITS):
            numbers = range(commit * ROWS, (commit + 1) * ROWS)
            rows = {
                "value": [b"%d" % number for number in numbers],
                "partition": pa.array([number % 2 for number in numbers], pa.int32()),
                "timestamp": pa.array(
                    [FIRST_MS + number for number in numbers], pa.timestamp("ms", "UTC")
                ),
            }
            log.append(topic, pa.table(rows))
    return folder


def load(spark: SparkSession, root: Path, **options: str) -> DataFrame:
    reader = spark.read.format("klog").option("subscribePattern", ".*")
    return reader.options(**options).load(str(root))


def described(frame: DataFrame) -> str:
    """Return what EXPLAIN says of the scan."""
    return explain(frame).partition("engine=")[2].partition("\n")[0]


def test_explain_names_the_engine(spark: SparkSession, root: Path) -> None:
    assert described(load(spark, root)).startswith("jvm, 20 of 20 segments, ")
    assert described(load(spark, root, engine="jvm")).startswith("jvm, ")
    assert described(load(spark, root, engine="Python")).startswith("python (option engine)")
    spark.conf.set("spark.klog.engine", "python")
    try:
        assert described(load(spark, root)).startswith("python (conf spark.klog.engine)")
        assert described(load(spark, root, engine="auto")).startswith("jvm, ")
    finally:
        spark.conf.unset("spark.klog.engine")


WHERE = {
    "offset >= 40": 10, "offset < 3": 3, "offset = 7": 1, "offset > 7 AND offset <= 9": 2,
    "40 <= offset": 10, "offset > 100": 0, "offset IN (1, 2)": 2, "offset IS NULL": 0,
    "offset BETWEEN 5 AND 6": 2, "offset = 9223372036854775807": 0, "offset < -1": 0,
}  # fmt: skip
"""Filter: the rows that each partition has."""


@pytest.mark.parametrize("where", WHERE)
def test_filters_on_offsets(spark: SparkSession, root: Path, where: str) -> None:
    frame = load(spark, root).where(where)
    assert frame.count() == 4 * WHERE[where]
    assert len(frame.collect()) == 4 * WHERE[where]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("partition = 1", 100), ("partition IN (0, 7)", 100), ("partition <> 1", 100),
        ("topic = 'a'", 100), ("topic IN ('a', 'c')", 100), ("topic LIKE 'b%'", 100),
        ("topic = 'a' AND partition = 0 AND offset = 3", 1),
        ("topic = 'a' OR offset = 3", 102),
        ("value = CAST('7' AS BINARY)", 2), ("timestampType = 1", 0), ("key IS NULL", 200),
        (f"timestamp >= timestamp_millis({FIRST_MS + 90})", 20),
        (f"timestamp > timestamp_millis({FIRST_MS + 90})", 18),
        (f"timestamp = timestamp_millis({FIRST_MS + 90})", 2),
        (f"timestamp < timestamp_millis({FIRST_MS + 90})", 180),
        (f"timestamp_millis({FIRST_MS + 90}) <= timestamp AND offset < 48", 12),
        ("timestamp >= timestamp_millis(-1)", 200), ("timestamp > '1900-01-01'", 200),
    ],
)  # fmt: skip
def test_other_filters(spark: SparkSession, root: Path, where: str, count: int) -> None:
    frame = load(spark, root).where(where)
    assert frame.count() == count
    assert len(frame.collect()) == count
    assert frame.agg({"offset": "count"}).first() == (count,)


def test_a_record_without_a_time_is_found_by_its_column(spark: SparkSession) -> None:
    """Message format v0 has no time; the column is -1 ms."""
    old = load(spark, GOLDEN / "broker-2.8.2" / "log", subscribePattern="v0")
    count = old.where("timestampType = -1").count()
    assert count > 0
    assert old.where("timestamp >= timestamp_millis(-1)").count() == old.count()
    assert len(old.where("timestamp = timestamp_millis(-1)").collect()) == count


def test_columns_of_the_option_are_pruned_further(spark: SparkSession, root: Path) -> None:
    for engine in ("jvm", "python"):
        frame = load(spark, root, columns="key,value,offset", engine=engine)
        assert frame.select("value").where("offset = 3").count() == 4
        assert frame.select("offset").distinct().count() == 50


def test_a_word_that_is_no_engine(spark: SparkSession, root: Path) -> None:
    spark.conf.set("spark.klog.engine", "jmv")
    try:
        with pytest.raises(IllegalArgumentException, match="must be one of auto, python, jvm"):
            load(spark, root).collect()
    finally:
        spark.conf.unset("spark.klog.engine")


def test_the_name_of_the_format_in_capitals(spark: SparkSession, root: Path) -> None:
    frame = spark.read.format("KLOG").option("subscribe", "a").load(str(root))
    assert described(frame).startswith("jvm, ")
    assert frame.where("offset < 2").count() == 4


def test_bounds_leave_fewer_slices(spark: SparkSession, root: Path) -> None:
    text = described(load(spark, root).where("offset >= 40 AND partition = 1").select("value"))
    assert text.startswith("jvm, 2 of 20 segments, ")
    assert "pushed: [offset >= 40, partition = 1]" in text
    assert "columns: value" in text
    late = described(load(spark, root).where(f"timestamp >= timestamp_millis({FIRST_MS + 90})"))
    assert late.startswith("jvm, 4 of 20 segments, ")


def test_explain_says_how_much_is_left_of_how_much(spark: SparkSession, root: Path) -> None:
    sizes = [path.stat().st_size for path in root.rglob("*.log")]
    total = f"of {len(sizes)} segments, "
    assert described(load(spark, root)).startswith(
        f"jvm, {len(sizes)} {total}{sum(sizes)} of {sum(sizes)} bytes, "
    )
    split = load(spark, root, minPartitions="50")
    assert split.rdd.getNumPartitions() >= 50
    assert described(split).startswith(f"jvm, {len(sizes)} {total}{sum(sizes)} of ")
    late = load(spark, root, startingOffsets='{"a": {"0": 45, "1": 50}, "b": {"0": 50, "1": 50}}')
    (path,) = sorted((root / "a-0").glob("*.log"))[-1:]
    assert described(late).startswith(f"jvm, 1 {total}{path.stat().st_size} of {sum(sizes)} bytes")
    assert described(late.where("partition = 1")).startswith(f"jvm, 0 {total}0 of {sum(sizes)} ")


def test_a_count_of_a_klog_root_runs_no_task(spark: SparkSession, root: Path) -> None:
    for frame, count in (
        (load(spark, root), 200),
        (load(spark, root).where("offset >= 40"), 40),
        (load(spark, root).where("topic = 'a' AND partition = 0"), 50),
    ):
        counted = frame.groupBy().count()
        assert "LocalTableScan" in explain(counted)
        assert counted.first() == (count,)
    assert load(spark, root).selectExpr("count(*)", "count(1) + 1").first() == (200, 201)
    assert load(spark, root).groupBy("partition").count().orderBy("partition").collect() == [
        (0, 100), (1, 100)
    ]  # fmt: skip


def test_filters_do_not_leak_into_other_queries(spark: SparkSession, root: Path) -> None:
    """What Spark's own push-down for Python sources gets wrong (docs/adr/0004)."""
    frame = load(spark, root)
    filtered = frame.where("offset >= 45")
    assert [filtered.count(), frame.count(), filtered.union(frame).count()] == [20, 200, 220]
    joined = filtered.alias("l").join(frame.alias("r"), ["topic", "partition", "offset"])
    assert joined.count() == 20
    cached = filtered.cache()
    assert [cached.count(), frame.count()] == [20, 200]
    cached.unpersist()


@pytest.mark.parametrize("is_adaptive", ["true", "false"])
def test_joins_and_windows(spark: SparkSession, root: Path, is_adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", is_adaptive)
    try:
        frame = load(spark, root)
        left, right = frame.where("topic = 'a'"), frame.where("topic = 'b'")
        joined = left.join(right, ["partition", "offset"]).where("offset < 10")
        assert joined.count() == 20
        latest = frame.groupBy("topic", "partition").agg({"offset": "max"})
        assert {row["max(offset)"] for row in latest.collect()} == {49}
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_limits_stop_early(spark: SparkSession, root: Path) -> None:
    frame = load(spark, root).limit(3)
    assert "limit: 3" in described(frame)
    assert [len(frame.collect()), frame.count()] == [3, 3]
    assert len(load(spark, root).where("value <> CAST('x' AS BINARY)").limit(150).collect()) == 150
    ordered = load(spark, root).orderBy("offset", ascending=False).limit(4)
    assert [row["offset"] for row in ordered.collect()] == [49] * 4


def test_columns_in_any_order_and_often(spark: SparkSession, root: Path) -> None:
    frame = load(spark, root, includeHeaders="true").where("offset = 0 AND partition = 0")
    row = frame.where("topic = 'a'").select("headers", "offset", "value", "topic", "offset").first()
    assert tuple(row or ()) == (None, 0, b"0", "a", 0)


def test_views_in_sql(spark: SparkSession, root: Path) -> None:
    options = f"path '{root}', subscribe 'a'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW records USING klog OPTIONS ({options})")
    assert spark.sql("SELECT count(*) FROM records WHERE offset > 47").first() == (4,)
    assert spark.sql("SELECT max(offset), min(partition) FROM records").first() == (49, 0)


@pytest.fixture
def undecided(tmp_path: Path) -> Path:
    """Return a broker's directory that only Python reads, with two records to see."""
    write_log(tmp_path, {0: [transactional(0, 5)], 1: [marker(1, 5, ABORT), plain(2), plain(3)]})
    return tmp_path


def test_what_the_jvm_cannot_read_is_read_by_python(spark: SparkSession, undecided: Path) -> None:
    frame = load(spark, undecided)
    reason = "python (t-0: transactions may end in a later segment)"
    assert described(frame).startswith(reason)
    assert [row["offset"] for row in frame.collect()] == [2, 3]
    assert [row["offset"] for row in frame.where("offset > 2").select("offset").collect()] == [3]
    assert [frame.count(), len(frame.limit(1).collect())] == [2, 1]
    assert frame.where("offset > 2").count() == 1
    jvm = load(spark, undecided, engine="jvm")
    with pytest.raises(IllegalArgumentException, match="engine: jvm cannot read this: t-0: trans"):
        jvm.collect()
    uncommitted = load(spark, undecided, isolationLevel="read_uncommitted")
    assert described(uncommitted).startswith("jvm, ")
    assert uncommitted.count() == 3


def read_stream(spark: SparkSession, root: Path, checkpoint: Path, **options: str) -> list[Any]:
    """Run a stream to what there is; return the offsets of all its micro-batches so far."""
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = reader.option("subscribePattern", ".*").options(**options).load(str(root))
    writer = frame.select("topic", "partition", "offset").writeStream.format("parquet")
    query = (
        writer.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(f"{checkpoint}-out")
    )
    query.awaitTermination()
    rows = spark.read.parquet(f"{checkpoint}-out").collect()
    return sorted(tuple(row) for row in rows)


def test_a_stream_changes_engines_at_a_restart(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "root"
    shutil.copytree(root, copy)
    expected = [(t, p, o) for t in "ab" for p in (0, 1) for o in range(50)]
    for number, engine in enumerate(("jvm", "python", "auto", "python")):
        rows = read_stream(spark, copy, tmp_path / "c", engine=engine, maxOffsetsPerTrigger="40")
        assert rows == sorted(expected)
        rows_more = {"value": [b"v"], "partition": pa.array([0], pa.int32())}
        klog.open(copy).append("a", pa.table(rows_more))
        expected.append(("a", 0, 50 + number))


def test_a_stream_leaves_micro_batches_to_python(
    spark: SparkSession, undecided: Path, tmp_path: Path
) -> None:
    rows = read_stream(spark, undecided, tmp_path / "c", maxOffsetsPerTrigger="1")
    assert rows == [("t", 0, 2), ("t", 0, 3)]
    with pytest.raises(PySparkException, match="engine: jvm cannot read this"):
        read_stream(spark, undecided, tmp_path / "d", engine="jvm")


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_stream_says_why_python_reads_it(
    spark: SparkSession, undecided: Path, isolation: str
) -> None:
    """In EXPLAIN of the query, and as the metric of fall-backs that Spark's UI shows."""
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = reader.options(subscribe="t", isolationLevel=isolation).load(str(undecided))
    query = frame.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    is_python = isolation == "read_committed"
    reason = "t-0: transactions may end in a later segment"
    engine = f"engine=python ({reason}), columns" if is_python else "engine=jvm, columns"
    plan: str = query._jsq.explainInternal(False)
    assert engine in plan
    leaves = query._jsq.streamingQuery().lastExecution().executedPlan().collectLeaves()
    assert leaves.head().metrics().apply("klogFallBacks").value() == is_python


def test_a_stream_is_joined_with_itself_in_foreach_batch(
    spark: SparkSession, root: Path, engine: str
) -> None:
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = reader.option("subscribe", "a").load(str(root))
    left = frame.selectExpr("partition", "offset AS number")
    right = frame.selectExpr("partition", "offset + 1 AS number")
    joined = left.join(right, ["partition", "number"])
    rows: list[Any] = []

    def collect(batch: DataFrame, _: int) -> None:
        assert batch.persist().count() == len(batch.collect())
        rows.extend(batch.collect())
        batch.unpersist()

    query = joined.writeStream.foreachBatch(collect).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(rows) == len({*rows}) == 2 * 49
    metrics = query.recentProgress[0]["sources"][0]["metrics"]
    assert metrics.get("engine", "python") == engine


def test_progress_has_the_lag(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    reader = spark.readStream.format("klog").option("startingOffsets", "earliest")
    frame = reader.option("subscribe", "a").option("maxOffsetsPerTrigger", "60").load(str(root))
    writer = frame.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
    query.awaitTermination()
    first = json.loads(query.recentProgress[0].json)["sources"][0]["metrics"]
    assert (first["maxOffsetsBehindLatest"], first["avgOffsetsBehindLatest"]) == ("20", "20.0")
    assert first["engine"] == "jvm"


def test_a_file_that_goes_while_it_is_read_is_named(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "root"
    shutil.copytree(root, copy)
    frame = load(spark, copy, subscribePattern="a")
    (path, *_) = sorted((copy / "a-0").glob("*.log"))
    path.unlink()
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        frame.collect()
    assert path.name in str(caught.value)
    assert 'set .option("engine", "python")' in str(caught.value)
