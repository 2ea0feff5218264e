"""A table and its topic on a real S3 server: Delta by Hadoop's `s3a://`, klog by `s3://`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import klog
from klog.connector.embedded import Log
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.store.store_for_url import writable_store_for
from tests.delta.changed_table import ChangedTable
from tests.delta.copied_rows import TOPIC, append, numbered
from tests.delta.copy_process import CopyProcess
from tests.delta.from_delta_process import FromDeltaProcess
from tests.delta.test_from_delta_kills import kill_workers_and_executors
from tests.delta.test_on_s3 import s3a_settings
from tests.spark_faults.drivers import Fault
from tests.support.store_servers import BUCKET, S3Server

pytestmark = [pytest.mark.delta, pytest.mark.stores, pytest.mark.slow, pytest.mark.full]


def records(log: Log) -> list[tuple[Any, ...]]:
    """Return the records of a topic, in order for each key."""
    columns = ["partition", "offset", "key", "value", "timestamp"]
    rows = log.scan(TOPIC, columns=columns).read_all().to_pylist()
    rows.sort(key=lambda row: (row["key"], row["partition"], row["offset"]))
    return [(row["key"], row["value"], row["timestamp"]) for row in rows]


def test_a_table_and_its_topic_on_s3(s3_server: S3Server, tmp_path: Path) -> None:
    """A topic becomes a table, and the table a topic; a run is killed after its first version."""
    prefix = f"{BUCKET}/{tmp_path.name}"
    options = s3_server.options()
    storage = {name.removeprefix("storage."): text for name, text in options.items()}
    source = klog.open(f"s3://{prefix}/source", **storage)
    source.create_topic(TOPIC, partitions=2)
    words = ["--topic", TOPIC, "--table", f"s3a://{prefix}/table"]
    for name, text in options.items():
        words += ["--option", f"{name}={text}"]
    settings = s3a_settings(s3_server)
    for start in (0, 100):
        append(source, numbered(start, start + 100))
        arguments = ["--root", f"s3://{prefix}/source", *words]
        with CopyProcess(tmp_path / f"to-{start}", arguments, **settings) as filling:
            assert filling.report()["rowsInserted"] == 100
    words += ["--root", f"s3://{prefix}/copy", "--value-format", "raw"]
    words += ["--starting-version", "earliest", "--option", "numPartitions=2"]
    landed = Fault("landed", "park", "put done", {"topic": TOPIC, "version": 0})
    with FromDeltaProcess(tmp_path / "killed", words, [landed], settings) as process:
        process.wait_for("landed")
    with FromDeltaProcess(tmp_path / "last", words, settings=settings) as process:
        report = process.report()
    assert report["startVersion"] == 1
    assert (report["records"], report["copiedVersions"]) == (100, 1)
    assert records(klog.open(f"s3://{prefix}/copy", **storage)) == records(source)


def test_killed_workers_and_executors(
    delta_spark: SparkSession, s3_server: S3Server, tmp_path: Path
) -> None:
    """The test changes a table with change data feed on local disk, and uploads its files."""
    folder, prefix = s3_server.folder / tmp_path.name, f"{BUCKET}/{tmp_path.name}"
    table = ChangedTable(delta_spark, str(tmp_path / "table"), str(folder / "copy"))
    store, _ = writable_store_for(
        f"s3://{prefix}/table", parse_storage_options(s3_server.options())
    )
    uploaded: set[Path] = set()

    def publish() -> None:
        files = {path for path in Path(table.path).rglob("*") if path.is_file()}
        for path in sorted(files - uploaded):
            url = f"s3://{prefix}/table/{path.relative_to(table.path)}"
            store.put(url, [path.read_bytes()])
        uploaded.update(files)

    words = ["--root", f"s3://{prefix}/copy", "--topic", TOPIC, "--key", "id"]
    words += ["--table", f"s3a://{prefix}/table", "--option", "numPartitions=3"]
    for name, text in {**s3_server.options(), "engine": "python"}.items():
        words += ["--option", f"{name}={text}"]
    kill_workers_and_executors(table, tmp_path, words, s3a_settings(s3_server), publish)
