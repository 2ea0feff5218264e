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
from klog.connector.log.raw import RawRoot
from klog.connector.options import read_options
from klog.connector.source import scan
from klog.connector.store.storage import storage_of
from klog.errors import OptionError
from tests.corpus import scene
from tests.servers import SECRET_ACCESS_KEY, S3Server
from tests.stores.places import Place, place_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENE = scene("transactions")
TOPICS = ",".join(sorted({topic for topic, _ in SCENE.partitions()}))


def copy_scene(place: Place) -> None:
    (log_dir,) = SCENE.log_dirs

    def copy(path: Path) -> None:
        place.store.put(place.at(str(path.relative_to(log_dir))), [path.read_bytes()])

    with ThreadPoolExecutor(16) as pool:  # HDFS takes half a second for a file
        list(pool.map(copy, [path for path in log_dir.rglob("*") if path.is_file()]))


def rows_of(url: str, storage: Mapping[str, str]) -> list[tuple[str, ...]]:
    options = read_options({"subscribe": TOPICS, "includeHeaders": "true", **storage})
    root = RawRoot([url], options.storage)
    found = []
    for task in scan.slices(root, scan.pin(root, options), options):
        for batch in scan.reader([url], options).read(task):
            found += [tuple(map(str, row.values())) for row in batch.to_pylist()]
    return found


def given_to(place: Place) -> dict[str, str]:
    return {f"storage.{word}": value for word, value in place.storage.given}


def test_a_brokers_log(place: Place) -> None:
    copy_scene(place)
    local = rows_of(str(SCENE.log_dirs[0]), {})
    assert len(local) == sum(one.read_committed for one in SCENE.records())
    assert rows_of(place.url, given_to(place)) == local


def test_a_root_that_is_missing(place: Place) -> None:
    place.store.put(place.at("meta.properties"), [b"version=1"])
    with pytest.raises(OptionError, match=r"path: there is no directory .*none"):
        RawRoot([f"{place.url}/none"], place.storage).partitions()
    with pytest.raises(OptionError, match="is a file"):
        RawRoot([f"{place.url}/meta.properties"], place.storage).partitions()


@pytest.mark.stores
def test_dump_of_a_file(
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
    place = place_at("s3a://klog/dumped/logs")
    place.store.put(place.at(name), [local.read_bytes()])
    said = []
    for root in (str(log_dir), place.path):
        assert main(["dump", "--files", f"{root}/{name}", "--print-data-log"]) == 0
        said.append(capsysbinary.readouterr().out.replace(root.encode(), b""))
    assert said[0] == said[1]
    assert said[0].count(b"offset:") > 1


@pytest.mark.stores
def test_no_secret_in_what_travels(s3_server: S3Server) -> None:
    place = place_at("s3a://klog/travels/logs", storage_of(s3_server.options()))
    copy_scene(place)
    options = read_options({"subscribe": TOPICS, **given_to(place)})
    assert SECRET_ACCESS_KEY in dict(options.storage.given).values()
    reader = scan.reader([place.url], options)
    for one in (options, reader, pickle.loads(pickle.dumps(reader))):
        assert SECRET_ACCESS_KEY not in repr(one)
    root = RawRoot([place.url], place.storage)
    slices = scan.slices(root, scan.pin(root, options), options)
    assert slices
    assert SECRET_ACCESS_KEY not in json.dumps(slices)


@pytest.mark.spark
@pytest.mark.stores
def test_spark_reads_s3(spark: SparkSession, s3_server: S3Server) -> None:
    from klog import register

    given: dict[str, Any] = s3_server.options()
    place = place_at("s3a://klog/spark/logs", storage_of(given))
    copy_scene(place)
    register(spark)
    frame = spark.read.format("klog").options(**given, subscribe=TOPICS).load(place.url)
    assert frame.count() == sum(one.read_committed for one in SCENE.records())
    assert SECRET_ACCESS_KEY not in frame._jdf.queryExecution().toString()
