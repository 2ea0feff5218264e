"""Both sources over one broker, whose topics are written once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from klog.jobs import import_log
from tests.corpus.clients import Client
from tests.kafka.two_sources.compared_topics import write_topics
from tests.kafka.two_sources.sources import KAFKA, KLOG, Directory, Source
from tests.support.kafka_broker import Broker


@pytest.fixture(scope="session")
def sources(
    spark: SparkSession, kafka_connector: None, broker: Broker
) -> Iterator[tuple[Source, Source]]:
    """Return Spark's Kafka connector and klog; the producers of open transactions live so long."""
    held = write_topics(Client(broker), broker.log_dirs[0])
    path = str(broker.log_dirs[0])
    yield (
        Source(KAFKA, spark, broker.bootstrap),
        Source(KLOG, spark, broker.bootstrap, path),
    )
    del held


@pytest.fixture(scope="session")
def directory(
    sources: tuple[Source, Source], tmp_path_factory: pytest.TempPathFactory
) -> Directory:
    """Return klog over the broker's directory, which remembers what cases gave."""
    return Directory(sources[1], tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(scope="session")
def root_source(
    sources: tuple[Source, Source], broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Source:
    """Return klog over a klog root with copies of the same logs, which import-log made."""
    folder = tmp_path_factory.mktemp("sides")
    path, copy = str(folder / "root"), str(folder / "log")
    shutil.copytree(broker.log_dirs[0], copy)  # import-log takes none in which a broker runs.
    report = import_log.run(None, path, source=copy, open_transactions="abort")
    assert report.exit_code == 0
    return replace(sources[1], path=path)
