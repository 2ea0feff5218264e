"""A real broker's log directory, copied to each store and read there."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from klog.cli import main
from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.source import scan_planner
from klog.connector.source.task_reader import make_reader
from klog.errors import OptionError
from tests.connector.store.store_roots import StoreRoot, store_root_at
from tests.corpus import scene
from tests.support.store_servers import SECRET_ACCESS_KEY, S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENE = scene("transactions")
TOPICS = ",".join(sorted({topic for topic, _ in SCENE.partitions()}))


def copy_scene(root: StoreRoot) -> None:
    (log_dir,) = SCENE.log_dirs

    def copy(path: Path) -> None:
        root.store.put(root.at(str(path.relative_to(log_dir))), [path.read_bytes()])

    with ThreadPoolExecutor(16) as pool:  # HDFS takes half a second for a file
        list(pool.map(copy, [path for path in log_dir.rglob("*") if path.is_file()]))


def rows_of(url: str, storage: Mapping[str, str]) -> list[tuple[str, ...]]:
    options = parse_read_options({"subscribe": TOPICS, "includeHeaders": "true", **storage})
    raw_root = RawRoot([url], options.storage)
    rows = []
    for task in scan_planner.plan_snapshot(raw_root.snapshot(), options):
        for batch in make_reader([url], options).read(task):
            rows += [tuple(map(str, row.values())) for row in batch.to_pylist()]
    return rows


def storage_texts(root: StoreRoot) -> dict[str, str]:
    return {f"storage.{word}": value for word, value in root.storage.values}


def test_broker_log_is_read_as_on_local_disk(root: StoreRoot) -> None:
    copy_scene(root)
    local = rows_of(str(SCENE.log_dirs[0]), {})
    assert len(local) == sum(record.read_committed for record in SCENE.records())
    assert rows_of(root.url, storage_texts(root)) == local


def test_missing_root_is_refused(root: StoreRoot) -> None:
    root.store.put(root.at("meta.properties"), [b"version=1"])
    with pytest.raises(OptionError, match=r"path: there is no directory .*none"):
        RawRoot([f"{root.url}/none"], root.storage).partitions()
    with pytest.raises(OptionError, match="is a file"):
        RawRoot([f"{root.url}/meta.properties"], root.storage).partitions()


@pytest.mark.stores
def test_dump_reads_a_file_on_s3(
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """On the command line the credentials come from the environment, never from arguments."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    (log_dir,) = SCENE.log_dirs
    local = next(path for path in sorted(log_dir.rglob("*.log")) if path.stat().st_size)
    name = str(local.relative_to(log_dir))
    root = store_root_at("s3a://klog/dumped/logs")
    root.store.put(root.at(name), [local.read_bytes()])
    outputs = []
    for log_root in (str(log_dir), root.path):
        assert main(["dump", "--files", f"{log_root}/{name}", "--print-data-log"]) == 0
        outputs.append(capsysbinary.readouterr().out.replace(log_root.encode(), b""))
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"offset:") > 1


@pytest.mark.stores
def test_slices_and_readers_have_no_secret(s3_server: S3Server) -> None:
    root = store_root_at("s3a://klog/travels/logs", parse_storage_options(s3_server.options()))
    copy_scene(root)
    options = parse_read_options({"subscribe": TOPICS, **storage_texts(root)})
    assert SECRET_ACCESS_KEY in dict(options.storage.values).values()
    reader = make_reader([root.url], options)
    for value in (options, reader, pickle.loads(pickle.dumps(reader))):
        assert SECRET_ACCESS_KEY not in repr(value)
    raw_root = RawRoot([root.url], root.storage)
    slices = scan_planner.plan_snapshot(raw_root.snapshot(), options)
    assert slices
    assert SECRET_ACCESS_KEY not in json.dumps(slices)


@pytest.mark.spark
@pytest.mark.stores
def test_spark_reads_s3(spark: SparkSession, s3_server: S3Server) -> None:
    from klog import register

    options: dict[str, Any] = s3_server.options()
    root = store_root_at("s3a://klog/spark/logs", parse_storage_options(options))
    copy_scene(root)
    register(spark)
    frame = spark.read.format("klog").options(**options, subscribe=TOPICS).load(root.url)
    assert frame.count() == sum(record.read_committed for record in SCENE.records())
    assert SECRET_ACCESS_KEY not in frame._jdf.queryExecution().toString()
