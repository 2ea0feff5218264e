"""What the JVM engine pushes down, against all rows as Python's engine reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import klog
from tests.connector.log_dirs import write_log
from tests.connector.varied_roots import FIRST_MS, make_named_root
from tests.spark.test_engines import described
from tests.support.batch_bytes import ABORT, LZ4, Record, batch, marker, plain, transactional
from tests.support.explained_plan import explain

pytestmark = pytest.mark.spark

KINDS = (
    "shifted",
    "txn.interleaved",
    *(pytest.param(kind, marks=pytest.mark.full) for kind in ("compacted by klog", "emptied")),
)


@pytest.fixture(scope="module", params=KINDS)
def topic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """Return a root and its topic."""
    return make_named_root(request.param, tmp_path_factory.mktemp("pushed"))


def load(spark: SparkSession, topic: tuple[Path, str], **options: str) -> DataFrame:
    root, name = topic
    reader = spark.read.format("klog").option("subscribe", name)
    return reader.options(**options).load(str(root))


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.selectExpr(*columns).collect()]


AGGREGATES = (
    ("count(*)", "min(offset)", "max(offset)"),
    ("max(timestamp)", "count(1) + 1"),
    ("min(timestamp)", "max(offset) - min(offset)"),
    ("count(*) FILTER (WHERE offset > 3)", "max(offset)"),
    ("count(DISTINCT offset)", "max(partition)", "avg(offset)"),
)
FILTERS = ("true", "partition = 0", "offset >= 40 AND offset < 250", "offset < 0")


@pytest.mark.parametrize("columns", AGGREGATES)
def test_aggregates(spark: SparkSession, topic: tuple[Path, str], columns: tuple[str, ...]) -> None:
    for level in ("read_committed", "read_uncommitted"):
        jvm = load(spark, topic, isolationLevel=level)
        python = load(spark, topic, isolationLevel=level, engine="python")
        for where in FILTERS:
            assert rows(jvm.where(where), *columns) == rows(python.where(where), *columns)


def test_aggregates_that_commits_know_run_no_task(spark: SparkSession, tmp_path: Path) -> None:
    frame = load(spark, make_named_root("shifted", tmp_path))
    for path in (tmp_path / "root" / "t-0").glob("*.log"):
        path.unlink()
    known = ("count(*)", "min(offset)", "max(offset)", "min(timestamp)", "max(timestamp)")
    counted = frame.selectExpr(*known)
    assert "LocalTableScan" in explain(counted)
    first, last = FIRST_MS, FIRST_MS + 2_999_000
    times = spark.sql(f"SELECT timestamp_millis({first}), timestamp_millis({last})").first()
    assert counted.first() == (3000, 0, 2999, *(times or ()))
    assert rows(frame.where("offset BETWEEN 7 AND 999"), *known[:3]) == [(993, 7, 999)]
    for query in (
        frame.where("offset > 7").selectExpr("min(timestamp)"),
        frame.where(f"timestamp >= timestamp_millis({first})").selectExpr("max(offset)"),
        frame.groupBy("partition").agg({"offset": "max"}),
        frame.selectExpr("max(value)", "max(offset)"),
    ):
        assert "LocalTableScan" not in explain(query)


ORDERS = ("offset", "offset DESC", "offset, partition DESC", "partition, offset")


@pytest.mark.parametrize("order", ORDERS)
def test_the_first_rows_of_an_order(
    spark: SparkSession, topic: tuple[Path, str], order: str
) -> None:
    for name, engine in (("ordered", "auto"), ("all_rows", "python")):
        load(spark, topic, engine=engine).createOrReplaceTempView(name)
    unpushed = "value <> CAST('0' AS BINARY) AND timestamp <> timestamp_millis(0)"
    for where in ("true", "offset >= 40 AND offset < 250", unpushed):
        for limit in ("LIMIT 1", "LIMIT 130", "LIMIT 20 OFFSET 11"):
            query = f"SELECT offset FROM {{}} WHERE {where} ORDER BY {order} {limit}"
            ordered, expected = (spark.sql(query.format(n)) for n in ("ordered", "all_rows"))
            assert ordered.collect() == expected.collect()


def test_an_order_by_offset_reads_little(spark: SparkSession, tmp_path: Path) -> None:
    topic = make_named_root("shifted", tmp_path)
    total = len(list((tmp_path / "root" / "t-0").glob("*.log")))
    for order, text in (("offset", "ASC"), ("offset DESC", "DESC")):
        top = load(spark, topic).orderBy(order.split()[0], ascending=text == "ASC").limit(4)
        assert described(top).startswith(f"jvm, 1 of {total} segments, ")
        assert f"order: offset {text}, limit: 4" in described(top)
    by_value = load(spark, topic).orderBy("value").limit(4)
    assert described(by_value).startswith(f"jvm, {total} of {total} segments, ")


def test_the_first_offsets_of_a_broker_s_directory(spark: SparkSession, tmp_path: Path) -> None:
    """Commits say nothing of it: each task stops after so many rows, if the offsets rise."""
    for partition in ("t-0", "t-1"):
        log = [transactional(0, 5, [b"a"] * 3), marker(3, 5, ABORT)]
        log += [plain(first, [b"v"] * 1000) for first in range(4, 30_004, 1000)]
        write_log(tmp_path, {0: log}, partition)
    frame = load(spark, (tmp_path, "t")).select("offset", "value")
    first = frame.orderBy("offset").limit(3)
    assert [row["offset"] for row in first.collect()] == [4, 4, 5]
    assert read_metric(first, "klogRecords") < 20_000
    last = frame.orderBy("offset", ascending=False).limit(3)
    assert [row["offset"] for row in last.collect()] == [30_003, 30_003, 30_002]
    assert read_metric(last, "klogRecords") == 60_000


def read_metric(frame: DataFrame, name: str) -> int:
    """Run a query, and return a metric of its scan."""
    plan = frame.select("*")._jdf.queryExecution().executedPlan()
    plan.executeCollect()
    leaves = plan.collectLeaves()
    (scan,) = (leaves.apply(number) for number in range(leaves.size()))
    return int(scan.metrics().apply(name).value())


def test_times_leave_segments_and_batches_unread(spark: SparkSession, tmp_path: Path) -> None:
    times = [50, 10, 60, 20, 70]
    log = [
        batch([Record(2 * n + i, FIRST_MS + time - i, b"k", b"v") for i in (0, 1)], attributes=LZ4)
        for n, time in enumerate(times)
    ]
    write_log(tmp_path, {0: log})
    for engine in ("jvm", "python"):
        frame = load(spark, (tmp_path, "t"), engine=engine).select("offset", "timestamp", "value")
        for time in (9, 10, 20, 50, 59, 60, 69, 70, 71):
            late = frame.where(f"timestamp >= timestamp_millis({FIRST_MS + time})")
            expected = [2 * n + i for n, t in enumerate(times) for i in (0, 1) if t - i >= time]
            assert sorted(row["offset"] for row in late.collect()) == expected
    late = load(spark, (tmp_path, "t")).where(f"timestamp >= timestamp_millis({FIRST_MS + 45})")
    assert read_metric(late.select("value"), "klogBatchesSkipped") == 2


def test_an_upper_bound_of_times_leaves_later_segments_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = make_named_root("shifted", tmp_path)
    for where, count in (
        (f"timestamp < timestamp_millis({FIRST_MS + 1_000_000})", 1000),
        (f"timestamp <= timestamp_millis({FIRST_MS + 1_000_000})", 1001),
        (f"timestamp < timestamp_micros({FIRST_MS + 1_000_000}001)", 1001),
        (f"timestamp = timestamp_millis({FIRST_MS + 1_000_000})", 1),
        (f"timestamp < timestamp_millis({FIRST_MS})", 0),
    ):
        frame = load(spark, topic).where(where)
        assert len(frame.collect()) == count
        text = described(frame)
        left, total = text.split()[1], text.split()[3]
        assert "pushed: [timestamp" in text
        assert int(left) <= int(total) * count // 3000 + 1
    for where, count in (("timestamp < '1960-01-01'", 0), ("timestamp < '+200000-01-01'", 3000)):
        assert len(load(spark, topic).where(where).collect()) == count


def test_extremes_in_a_union_and_a_join(spark: SparkSession, tmp_path: Path) -> None:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1)
    log.append("t", pa.table({"value": [b"v"] * 5}))
    frame = load(spark, (tmp_path / "root", "t"))
    ends = frame.selectExpr("max(offset) AS offset")
    assert frame.join(ends, "offset").count() == 1
    assert sorted(rows(ends.union(frame.selectExpr("min(offset)")), "offset")) == [(0,), (4,)]
