"""Both sources over one broker, whose topics are written once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.corpus.clients import Client
from tests.kafka.two_sources.compared_topics import write_topics
from tests.kafka.two_sources.sources import KAFKA, KLOG, Source
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
