"""Tables of Spark's catalog with klog's jar: their options count in every statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import klog
from klog.connector.embedded import Log
from tests.support.explained_plan import explain

pytestmark = pytest.mark.spark

Create = Callable[[SparkSession, str], object]
SECRET = "not-to-be-seen"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(tmp_path / "root")
    for topic, values in {"orders": ["x"], "clicks": ["c", "d"]}.items():
        log.create_topic(topic)
        log.append(topic, pa.table({"value": values}))
    return log


@pytest.fixture
def root(log: Log, tmp_path: Path) -> str:
    return str(tmp_path / "root")


@pytest.fixture(autouse=True)
def _drop_tables(spark: SparkSession) -> Iterator[None]:
    yield
    for kind, name in (("VIEW", "v"), ("TABLE", "t"), ("TABLE", "u")):
        spark.sql(f"DROP {kind} IF EXISTS {name}")


@pytest.fixture
def orders(spark: SparkSession, root: str) -> None:
    """Create the table `t`, which reads and writes one topic."""
    spark.sql(
        f"CREATE TABLE t USING klog OPTIONS (subscribe 'orders', Topic 'orders', path '{root}')"
    )


def append(log: Log, *values: str, topic: str = "orders") -> None:
    log.append(topic, pa.table({"value": list(values)}))


def values(frame: DataFrame) -> list[str]:
    return sorted(bytes(row.value).decode() for row in frame.select("value").collect())


def rows(spark: SparkSession, value: str) -> DataFrame:
    return spark.sql(f"SELECT binary('{value}') value")


def save_as_table(spark: SparkSession, root: str) -> None:
    writer = rows(spark, "y").write.format("klog").mode("append").option("subscribe", "orders")
    for _ in range(2):
        writer.option("path", root).option("topic", "orders").saveAsTable("t")


CREATIONS: dict[str, tuple[Create, list[str]]] = {
    "path": (
        lambda spark, root: spark.sql(
            f"CREATE TABLE t USING klog OPTIONS (path '{root}', subscribe 'orders') COMMENT 'c' "
            "TBLPROPERTIES ('a'='b')"
        ),
        ["x"],
    ),
    "location": (
        lambda spark, root: spark.sql(
            f"CREATE TABLE t USING klog OPTIONS (SUBSCRIBE 'orders') LOCATION '{root}'"
        ),
        ["x"],
    ),
    "paths": (
        lambda spark, root: spark.sql(
            f"CREATE TABLE t USING klog OPTIONS (paths '[\"{root}\"]', subscribe 'orders')"
        ),
        ["x"],
    ),
    "own columns": (
        lambda spark, root: spark.sql(
            f"CREATE TABLE t (key binary, value binary) USING klog OPTIONS (subscribe 'orders') "
            f"LOCATION '{root}'"
        ),
        ["x"],
    ),
    "createTable": (
        lambda spark, root: spark.catalog.createTable(
            "t", source="klog", path=root, subscribe="orders"
        ),
        ["x"],
    ),
    "as select": (
        lambda spark, root: spark.sql(
            "CREATE TABLE t USING klog OPTIONS (topic 'orders', subscribe 'orders') "
            f"LOCATION '{root}' AS SELECT binary('k') key, binary('y') value"
        ),
        ["x", "y"],
    ),
    "saveAsTable": (save_as_table, ["x", "y", "y"]),
}


@pytest.mark.parametrize(("create", "expected"), CREATIONS.values(), ids=CREATIONS)
def test_a_table_is_read_with_its_options(
    spark: SparkSession, root: str, engine: str, create: Create, expected: list[str]
) -> None:
    create(spark, root)
    assert values(spark.sql("SELECT * FROM t")) == expected
    assert values(spark.table("t")) == expected
    assert spark.read.table("t").count() == len(expected)
    assert f"engine={engine}" in explain(spark.table("t"))


@pytest.mark.usefixtures("orders")
def test_a_table_is_written_with_its_options(spark: SparkSession, log: Log) -> None:
    spark.sql("INSERT INTO t (value) VALUES (X'79')")
    spark.sql("INSERT INTO t SELECT * FROM t WHERE offset = 0")
    spark.sql("SELECT * FROM t LIMIT 1").writeTo("t").append()
    spark.sql("SELECT * FROM t LIMIT 1").write.insertInto("t")
    spark.sql("INSERT INTO t WITH (topic = 'clicks') (value) VALUES (X'79')")
    assert values(spark.table("t")) == ["x", "x", "x", "x", "y"]
    assert log.count("clicks") == {0: 3}
    with pytest.raises(AnalysisException, match="klog only appends"):
        spark.sql("INSERT OVERWRITE t (value) VALUES (X'79')")
    assert spark.table("t").count() == 5


@pytest.mark.usefixtures("orders")
def test_streams_of_a_table(spark: SparkSession, root: str, tmp_path: Path, engine: str) -> None:
    frame = spark.readStream.option("startingOffsets", "earliest").table("t")
    writer = frame.select("value").writeStream.trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "c"))
    writer.toTable("t").awaitTermination()
    writer.toTable("t").awaitTermination()
    assert values(spark.table("t")) == ["x", "x", "x"]


WITH = {
    "subscribe = 'clicks'": ["c", "d"],
    "assign = '{\"clicks\": [0]}'": ["c", "d"],
    "SubscribePattern = 'c.*'": ["c", "d"],
    "startingOffsets = 'earliest'": ["x", "y"],
    "`kafka.isolation.level` = 'read_uncommitted'": ["y"],
}
"""Options of a statement, and what it then reads."""


def test_options_of_a_statement_win(spark: SparkSession, root: str, log: Log) -> None:
    append(log, "y")
    spark.sql(
        "CREATE TABLE t USING klog OPTIONS (subscribe 'orders', topic 'orders', isolationLevel "
        f"'read_committed', startingTimestamp '-3') LOCATION '{root}'"
    )
    for options, expected in WITH.items():
        assert values(spark.sql(f"SELECT * FROM t WITH ({options})")) == expected, options
    reader = spark.read.option("path", "/nowhere")
    with pytest.raises(AnalysisException, match="/nowhere"):
        reader.table("t").collect()


@pytest.mark.usefixtures("orders")
def test_a_statement_names_only_options_of_its_own_use(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="topic: unknown read option"):
        spark.sql("SELECT * FROM t WITH (topic = 'clicks')").collect()
    with pytest.raises(AnalysisException, match="subscribe: unknown write option"):
        spark.sql("INSERT INTO t WITH (subscribe = 'clicks') (value) VALUES (X'79')")


@pytest.mark.usefixtures("orders")
def test_what_only_klogs_jar_sets_is_an_unknown_option_of_users(
    spark: SparkSession, root: str, engine: str
) -> None:
    for text in ("abc", '{"name": "x"}', '{"name": "x", "options": []}'):
        select = f"SELECT * FROM t WITH (`klog.table` = '{text}')"
        with pytest.raises(AnalysisException, match=r"klog\.table: unknown read option"):
            spark.sql(select).collect()
        with pytest.raises(AnalysisException, match=r"klog\.table: unknown write option"):
            rows(spark, "y").writeTo("t").option("KLOG.TABLE", text).append()
    with pytest.raises(AnalysisException, match=r"klog\.table: unknown read option"):
        spark.read.format("klog").option("klog.table", "abc").option("subscribe", "a").load(root)
    writer = rows(spark, "y").write.format("klog").option("topic", "orders").mode("append")
    with pytest.raises(AnalysisException, match=r"klog\.table: unknown write option"):
        writer.option("klog.table", '{"name": "x"}').save(root)
    with pytest.raises(AnalysisException, match=r"klog\.table: unknown table option"):
        spark.sql("CREATE TABLE u (value binary) USING klog OPTIONS ('klog.table' 'abc')")
    assert klog.open(root).count("orders") == {0: 1}


def test_a_new_table_is_written_with_a_transaction_as_the_error_says(
    spark: SparkSession, root: str
) -> None:
    options = {"subscribe": "orders", "topic": "orders", "transactionalId": "a"}
    writer = rows(spark, "y").write.format("klog").option("path", root).options(**options)
    with pytest.raises(AnalysisException, match="Create the table first") as error:
        writer.option("transactionVersion", "7").saveAsTable("t")
    write = re.search(r'df\.writeTo\("t"\)\.option\("(\w+)", "(\d)"\)\.append', str(error.value))
    assert write is not None
    columns = ", ".join(f"{name} '{text}'" for name, text in options.items())
    spark.sql(f"CREATE TABLE t USING klog OPTIONS ({columns}) LOCATION '{root}'")
    for _ in range(2):
        rows(spark, "y").writeTo("t").option(write[1], write[2]).append()
    assert values(spark.table("t")) == ["x", "y"]


def test_a_table_that_lacks_an_option_says_so(spark: SparkSession, root: str, log: Log) -> None:
    spark.sql("CREATE TABLE t USING klog")
    with pytest.raises(AnalysisException, match="path: not in the options of the table") as error:
        spark.table("t").collect()
    select = re.search(r"SELECT \* FROM \S+ WITH \(.*?\)", str(error.value))
    assert select is not None
    assert values(spark.sql(select[0].replace("/data/klog", root))) == ["x"]
    with pytest.raises(AnalysisException, match="subscribe: not in the options of the table"):
        spark.sql(f"SELECT * FROM t WITH (path = '{root}')").collect()
    with pytest.raises(AnalysisException, match="path: not in the options of the table") as error:
        spark.sql("INSERT INTO t (value) VALUES (X'79')")
    insert = re.search(r"INSERT INTO \S+ WITH \(.*?\)", str(error.value))
    assert insert is not None
    spark.sql(f"{insert[0].replace('/data/klog', root)} (value) VALUES (X'79')")
    assert log.count("orders") == {0: 2}


def test_columns_of_a_table_are_those_that_its_options_select(
    spark: SparkSession, root: str
) -> None:
    options = "includeHeaders 'true', columns 'value,headers', subscribe 'orders', topic 'orders'"
    spark.sql(f"CREATE TABLE t USING klog OPTIONS ({options}) LOCATION '{root}'")
    assert spark.table("t").columns == ["value", "headers"]
    spark.sql("INSERT INTO t VALUES (X'79', array(struct('h', X'31')))")
    assert [row.headers for row in spark.sql("SELECT headers FROM t ORDER BY value").collect()] == [
        None,
        [("h", b"1")],
    ]


@pytest.mark.parametrize("columns", ["", "(value binary)"], ids=["klog's columns", "own columns"])
def test_wrong_and_secret_options_make_no_table(spark: SparkSession, columns: str) -> None:
    with pytest.raises(AnalysisException, match=r"topc: unknown table option\. Did you mean topic"):
        spark.sql(f"CREATE TABLE t {columns} USING klog OPTIONS (topc 'a')")
    with pytest.raises(AnalysisException, match="a table must not keep a secret") as error:
        spark.sql(f"CREATE TABLE t {columns} USING klog OPTIONS ('storage.account_key' '{SECRET}')")
    assert SECRET not in str(error.value)
    assert not spark.catalog.tableExists("t")


def test_columns_that_klog_does_not_read_make_no_table(spark: SparkSession, root: str) -> None:
    options = f"OPTIONS (path '{root}', topic 'orders', subscribe 'orders')"
    for statement in (
        f"CREATE TABLE t (value string) USING klog {options}",
        f"CREATE TABLE t USING klog {options} AS SELECT 'y' value",
    ):
        with pytest.raises(AnalysisException, match="the column value is binary, got string"):
            spark.sql(statement)
    writer = spark.sql("SELECT 'y' value").write.format("klog").option("topic", "orders")
    with pytest.raises(AnalysisException, match=re.escape("as in CAST(value AS BINARY)")):
        writer.option("path", root).saveAsTable("t")
    assert not spark.catalog.tableExists("t")
    assert klog.open(root).count("orders") == {0: 1}


@pytest.mark.usefixtures("orders")
def test_a_table_is_not_replaced_with_its_rows(spark: SparkSession, root: str) -> None:
    options = f"OPTIONS (path '{root}', topic 'orders')"
    with pytest.raises(AnalysisException, match="klog only appends"):
        spark.sql(f"CREATE OR REPLACE TABLE t USING klog {options} AS SELECT binary('y') value")
    with pytest.raises(AnalysisException, match="klog only appends"):
        rows(spark, "y").write.format("klog").mode("overwrite").saveAsTable("t")
    assert values(spark.table("t")) == ["x"]


def test_the_catalog_shows_the_table(spark: SparkSession, root: str) -> None:
    options = "OPTIONS (subscribe 'orders', topic 'orders')"
    spark.sql(f"CREATE TABLE t USING klog {options} COMMENT 'c' LOCATION '{root}'")
    statement = spark.sql("SHOW CREATE TABLE t").collect()[0][0]
    spark.sql("DROP TABLE t")
    spark.sql(statement)
    assert values(spark.table("t")) == ["x"]
    described = {row[0]: row[1] for row in spark.sql("DESCRIBE EXTENDED t").collect()}
    assert described["Provider"] == "klog"
    assert described["Location"] == f"file:{root}"
    assert "subscribe=orders" in described["Table Properties"]


def test_a_table_of_no_directory_is_described(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t USING klog OPTIONS (subscribe 'a') LOCATION '/nowhere'")
    assert spark.sql("DESCRIBE EXTENDED t").count() > 7
    with pytest.raises(AnalysisException, match="there is no directory"):
        spark.table("t").collect()


@pytest.mark.usefixtures("orders")
def test_filters_and_counts_reach_the_plan(spark: SparkSession, log: Log) -> None:
    append(log, "y", "z")
    assert "pushed: [offset >= 1]" in explain(spark.sql("SELECT value FROM t WHERE offset >= 1"))
    assert "LocalTableScan" in explain(spark.sql("SELECT count(*) FROM t"))


@pytest.mark.usefixtures("orders")
def test_tables_in_one_query(spark: SparkSession, root: str, log: Log, engine: str) -> None:
    append(log, "y")
    spark.sql(f"CREATE TABLE u USING klog OPTIONS (subscribe 'clicks') LOCATION '{root}'")
    join = spark.sql("SELECT a.value FROM t a JOIN t b ON a.offset = b.offset AND b.offset > 0")
    assert values(join) == ["y"]
    assert values(spark.sql("SELECT * FROM t UNION ALL SELECT * FROM u")) == ["c", "d", "x", "y"]
    assert values(spark.table("t").union(spark.table("u"))) == ["c", "d", "x", "y"]
    spark.sql("CREATE VIEW v AS SELECT value FROM t WHERE offset > 0")
    assert values(spark.table("v")) == ["y"]
    spark.table("u").createOrReplaceTempView("of_frame")
    assert values(spark.sql("SELECT value FROM v UNION SELECT value FROM of_frame")) == [
        "c", "d", "y",
    ]  # fmt: skip
    spark.catalog.dropTempView("of_frame")


@pytest.mark.usefixtures("orders")
def test_each_query_of_a_table_reads_the_log_of_its_time(
    spark: SparkSession, log: Log, engine: str
) -> None:
    frame = spark.table("t")
    assert values(frame) == ["x"]
    assert len(frame.collect()) == frame.count() == 1
    append(log, "y")
    assert values(frame) == ["x", "y"]
    assert frame.count() == 2
    assert len(frame.collect()) == 1, "a DataFrame keeps its own plan"
    assert len(spark.table("t").collect()) == 2


@pytest.mark.usefixtures("orders")
def test_a_cached_table(spark: SparkSession, log: Log, engine: str) -> None:
    spark.sql("CACHE TABLE t")
    try:
        append(log, "y")
        assert values(spark.table("t")) == ["x"]
        assert values(spark.sql("SELECT * FROM t WITH (subscribe = 'clicks')")) == ["c", "d"]
        spark.sql("REFRESH TABLE t")
        assert values(spark.table("t")) == ["x", "y"]
        spark.sql("INSERT INTO t (value) VALUES (X'7A')")
        assert values(spark.table("t")) == ["x", "y", "z"]
        assert "InMemory" in explain(spark.table("t"))
    finally:
        spark.sql("UNCACHE TABLE t")


def test_dropping_a_table_leaves_the_log(spark: SparkSession, root: str, log: Log) -> None:
    spark.sql(f"CREATE TABLE t USING klog OPTIONS (subscribe 'orders') LOCATION '{root}'")
    spark.sql("DROP TABLE t")
    assert log.count("orders") == {0: 1}


def test_view_shows_the_log_of_its_creation_and_a_view_of_a_table_that_of_each_query(
    spark: SparkSession, log: Log, root: str
) -> None:
    options = f"OPTIONS (path '{root}', subscribe 'orders')"
    spark.sql(f"CREATE TEMPORARY VIEW of_klog USING klog {options}")
    spark.sql("CREATE TABLE t USING klog")
    spark.sql(
        "CREATE TEMPORARY VIEW of_table AS "
        f"SELECT * FROM t WITH (path = '{root}', subscribe = 'orders')"
    )
    try:
        assert spark.table("of_klog").count() == spark.table("of_table").count() == 1
        append(log, "y")
        spark.sql("REFRESH TABLE of_klog")
        assert spark.table("of_klog").count() == 1
        assert spark.table("of_table").count() == 2
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_klog USING klog {options}")
        assert spark.table("of_klog").count() == 2
    finally:
        spark.catalog.dropTempView("of_klog")
        spark.catalog.dropTempView("of_table")
