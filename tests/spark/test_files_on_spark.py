"""Files that Spark's tasks have written, and what Spark reads of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import klog
from klog.errors import CorruptFileError, KlogError
from klog.jobs import import_files, to_files
from klog.jobs.importing_files import import_batches
from tests.jobs.file_rows import directory_rows, hour_table, log_rows, manifest_rows


@pytest.mark.spark
def test_files_are_written_by_tasks_and_read_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, to = str(tmp_path / "root"), tmp_path / "files"
    log = klog.open(root)
    log.create_topic("orders", partitions=2)
    for hours in ([0, 5, 1, 0], [0, -1, 9], [30] * 50):
        log.append("orders", hour_table(hours))
        report = to_files.run(spark, root, "orders", str(to), max_file_bytes=500)
        assert sum(part.records for part in report.partitions) == len(hours)
    expected = log_rows(tmp_path / "root", "orders")
    assert directory_rows(to / "orders") == manifest_rows(to / "orders") == expected
    frame = spark.read.parquet(str(to / "orders"))
    assert frame.count() == 57
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    hour = sf.hour(sf.to_utc_timestamp("timestamp", zone))
    assert frame.where(hour != sf.col("hour")).count() == 0
    assert frame.where("date = '2025-11-28' AND hour = 14").count() == 3
    log.create_topic("copy", partitions=2)
    columns = ["key", "value", "headers", "partition", "offset", "timestamp"]
    rows = frame.select(*columns).orderBy("partition", "offset").drop("offset")
    rows.coalesce(1).write.format("klog").option("topic", "copy").mode("append").save(root)
    assert len(log_rows(tmp_path / "root", "copy")) == 57
    log.create_topic("back", partitions=2)
    monkeypatch.setattr(import_batches, "TASK_BYTES", 10_000)
    import_files.run(spark, root, "back", str(to / "orders"), format="parquet")
    assert len(list((tmp_path / "root" / "back-0").glob("*.log"))) > 1
    back = log_rows(tmp_path / "root", "back")
    assert [{**row, "topic": "orders"} for row in back] == expected


@pytest.mark.spark
def test_a_task_that_fails_ends_the_run_and_the_next_one_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    root, to = str(tmp_path / "root"), tmp_path / "files"
    log = klog.open(root)
    log.create_topic("orders", partitions=2)
    log.append("orders", hour_table([0, 1, 2, 3]))
    (segment, *_) = (tmp_path / "root").glob("orders-0/*.log")
    data = segment.read_bytes()
    segment.write_bytes(data[:-1] + b"?")
    with pytest.raises(CorruptFileError):
        to_files.run(spark, root, "orders", str(to))
    segment.write_bytes(data)
    to_files.run(spark, root, "orders", str(to))
    expected = log_rows(tmp_path / "root", "orders")
    assert directory_rows(to / "orders") == manifest_rows(to / "orders") == expected


@pytest.mark.spark
def test_a_wrong_file_is_named_by_a_task(spark: SparkSession, tmp_path: Path) -> None:
    root, source = str(tmp_path / "root"), tmp_path / "source"
    source.mkdir()
    log = klog.open(root)
    log.create_topic("t", partitions=1)
    (source / "a.json").write_text('{"id":1}\n')
    (source / "b.json").write_text('{"id":2}\n{\n')
    with pytest.raises(KlogError, match=r"b\.json: line 2 is not a JSON object"):
        import_files.run(spark, root, "t", str(source), key="id")
    (source / "b.json").write_text('{"id":2}\n{"id":3}\n')
    report = import_files.run(spark, root, "t", str(source), key="id")
    assert [file.records for file in report.files] == [1, 2]
    assert [row["key"] for row in log_rows(tmp_path / "root", "t")] == [b"1", b"2", b"3"]
