"""An error of klog in Spark is its sentence, whichever call of klog it comes from.

The rule: no line of a Python traceback; klog's class and sentence follow Spark's own first words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import klog

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    log = klog.open(tmp_path / "root")
    log.create_topic("t")
    log.append("t", pa.table({"value": ["x"]}))
    return tmp_path / "root"


def batch(spark: SparkSession, root: Path, **options: str) -> DataFrame:
    return spark.read.format("klog").option("subscribe", "t").options(**options).load(str(root))


def run_stream(spark: SparkSession, root: Path, **options: str) -> None:
    reader = spark.readStream.format("klog").option("subscribe", "t").options(**options)
    writer = reader.load(str(root)).writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{root}-c").start().awaitTermination()


def write(rows: DataFrame, root: Path, mode: str = "append", **options: str) -> None:
    rows.write.format("klog").option("topic", "t").options(**options).mode(mode).save(str(root))


def damage(root: Path) -> None:
    (segment,) = (root / "t-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)


def read_damage(spark: SparkSession, root: Path) -> None:
    damage(root)
    batch(spark, root).collect()


def read_damage_in_a_stream(spark: SparkSession, root: Path) -> None:
    damage(root)
    run_stream(spark, root, startingOffsets="earliest")


def commit_twice(spark: SparkSession, root: Path) -> None:
    """Write a version of a writer that another query has used."""
    write(
        spark.sql("SELECT 'y' value"), root, transactionalId="w", transactionVersion="5", topic="t"
    )
    checkpoint = f"{root}-w"
    stream = spark.readStream.format("rate").option("rowsPerSecond", "100").load()
    writer = stream.selectExpr("string(value) value").writeStream.format("klog")
    writer = writer.option("topic", "t").option("transactionalId", "w")
    query = writer.option("checkpointLocation", checkpoint).start(str(root))
    try:
        query.awaitTermination(120)
    finally:
        query.stop()


PHASES: dict[str, tuple[Callable[[SparkSession, Path], object], str]] = {
    "load": (
        lambda spark, root: batch(spark, root, startingOfset="earliest"),
        "OptionError: startingofset: unknown read option. Did you mean startingOffsets?",
    ),
    "reader": (
        lambda spark, root: batch(spark, root, endingOffsets="earliest").collect(),
        "OptionError: endingOffsets: must not be earliest",
    ),
    "schema": (
        lambda spark, root: (
            spark.read.format("klog")
            .option("subscribe", "t")
            .schema("value string")
            .load(str(root))
            .collect()
        ),
        "OptionError: schema: the column value is binary, got string. Leave .schema(...) out",
    ),
    "task of a read": (read_damage, "CorruptFileError: t-0: corrupt log "),
    "stream": (
        lambda spark, root: run_stream(spark, root, endingOffsets="latest"),
        "OptionError: endingOffsets: a stream has no end",
    ),
    "task of a stream": (
        read_damage_in_a_stream,
        "CorruptFileError: t-0: corrupt log ",
    ),
    "writer": (
        lambda spark, root: write(spark.sql("SELECT 'y' valu"), root),
        "OptionError: column valu: a write has no such column; did you mean value?",
    ),
    "overwrite": (
        lambda spark, root: write(spark.sql("SELECT 'y' value"), root, "overwrite"),
        'OptionError: mode: klog only appends; use mode("append")',
    ),
    "task of a write": (
        lambda spark, root: write(spark.sql("SELECT 'y' value, 7 partition"), root),
        "KlogError: t: row 0 of task 0: there is no partition 7",
    ),
    "commit": (commit_twice, "ProducerFencedError: "),
}


@pytest.mark.parametrize(("provoke", "sentence"), PHASES.values(), ids=PHASES)
def test_sentence_stands_without_a_traceback(
    spark: SparkSession,
    root: Path,
    provoke: Callable[[SparkSession, Path], object],
    sentence: str,
) -> None:
    with pytest.raises(PySparkException) as caught:
        provoke(spark, root)
    message = str(caught.value)
    assert f": klog.errors.{sentence}" in message or f"\nklog.errors.{sentence}" in message
    assert "Traceback" not in message
    assert 'File "' not in message
    error_class = klog.error_class_of(caught.value)
    assert error_class is not None
    assert sentence.startswith(f"{error_class.__name__}: ")


def test_error_of_a_defect_has_its_traceback(spark: SparkSession) -> None:
    """The switch that hides a traceback does not outlive the process that had the error."""
    with pytest.raises(PySparkException):
        batch(spark, Path("/no/such/root"))
    rows = spark.range(1).rdd.map(lambda row: 1 // row.id)
    with pytest.raises(Exception, match=r"(?s)Traceback.*ZeroDivisionError"):
        rows.collect()
