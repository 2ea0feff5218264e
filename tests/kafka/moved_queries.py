"""Queries of Spark's Kafka source on a real broker, stopped and killed, and what they have to read.

The rule: the topic has every record in a known place, so that a record that is lost, doubled or in
another batch shows. A case goes on from a copy of its own of what a query has left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import klog
from klog.cli import main
from tests.corpus.clients import Client, Sent, batch
from tests.corpus.transactions import end_in_log
from tests.kafka.kafka_source_streams import COUNTS, Query, start
from tests.support.kafka_broker import Broker, die_with_parent
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

PARTITIONS = 2
KEYS = 3


class Topic:
    """A topic, and where its records are."""

    def __init__(self, broker: Broker, name: str) -> None:
        """Create the topic."""
        self.broker, self.name = broker, name
        self.places: list[tuple[int, int]] = []
        self.keys: Counter[str] = Counter()
        self._client = Client(broker)
        self._client.create(name, "moved", {"retention.ms": "-1"}, PARTITIONS)
        self._plain = self._client.producer()

    @property
    def log_dir(self) -> str:
        """The directory of the broker."""
        return str(self.broker.log_dirs[0])

    def produce(self, count: int, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        """Write records to partitions, and a transaction with one, so that offsets have gaps."""
        writer = self._client.transactional(f"{self.name}-{len(self.places)}")
        for partition in partitions:
            keys = [f"k{number % KEYS}" for number in range(count)]
            last = batch(self._plain, self.name, [Sent(k.encode(), b"v") for k in keys], partition)
            writer.begin_transaction()
            in_transaction = batch(writer, self.name, [Sent(b"k0", b"v")], partition)
            end_in_log(self._client, writer, self.name, partition, commit=True)
            offsets = [*range(last - count + 1, last + 1), in_transaction]
            self.places += [(partition, offset) for offset in offsets]
            self.keys.update([*keys, "k0"])

    def wait_until_readable(self) -> None:
        """Wait until the broker's files say that the records are committed."""
        log = klog.open(self.log_dir)
        last = {partition: max(o for p, o in self.places if p == partition) for partition in (0, 1)}
        wait_until(
            lambda: all(end > last[p] for p, end in log.offsets(self.name).items() if end),
            f"{self.name}: readable records",
        )


@contextmanager
def kafka_queries(topic: Topic, work: Path, queries: Sequence[Query]) -> Iterator[None]:
    """Run queries of the Kafka source in a process of their own; kill it, and its JVM, at the end.

    They have ended, or are blocked, if all goes well.
    """
    values = json.dumps([asdict(query) for query in queries])
    module = "tests.kafka.kafka_source_streams"
    with (work / "queries.out").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, topic.broker.bootstrap, str(work), values],
            cwd=PROJECT,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        yield
        ends = [
            work / query.name / "out" / ("ended" if query.blocks_in is None else "blocked")
            for query in queries
        ]
        wait_until(
            lambda: all(end.exists() for end in ends) or process.poll() is not None,
            "the ends of all queries",
        )
        assert process.poll() is None, (work / "queries.out").read_text()[-4000:]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@dataclass(frozen=True, slots=True)
class Left:
    """What a query has left: its checkpoint, and what it has written."""

    folder: Path

    @property
    def checkpoint(self) -> Path:
        """The checkpoint."""
        return self.folder / "checkpoint"

    @property
    def out(self) -> Path:
        """The files of batches."""
        return self.folder / "out"

    def duplicate(self, folder: Path) -> Left:
        """Return a copy for one case."""
        shutil.copytree(self.folder, folder)
        return Left(folder)

    def copied(self) -> Path:
        """Return a checkpoint that `klog checkpoint copy` has made."""
        target = self.folder / "klog"
        assert main(["checkpoint", "copy", "--watch", "0", str(self.checkpoint), str(target)]) == 0
        return target

    def go_on(
        self, spark: SparkSession, topic: Topic, checkpoint: Path, query: Query, **options: str
    ) -> None:
        """Read what is there with klog."""
        running = start(
            klog_stream(spark, topic, query, **options), query.output, checkpoint, self.out
        )
        try:
            assert running.awaitTermination(TIMEOUT_SECONDS)
        finally:
            running.stop()

    def batches(self) -> dict[int, list[list[object]]]:
        """Return the rows of each batch."""
        files = sorted(self.out.glob("*.json"), key=lambda file: int(file.stem))
        return {int(file.stem): json.loads(file.read_text()) for file in files}

    def places(self) -> list[tuple[object, ...]]:
        """Return where the records of all batches were, sorted."""
        return sorted(tuple(row) for rows in self.batches().values() for row in rows)

    def counts(self) -> dict[object, object]:
        """Return the last count of each key."""
        return {key: count for rows in self.batches().values() for key, count in rows}


def klog_stream(spark: SparkSession, topic: Topic, query: Query, **options: str) -> DataFrame:
    """Return the stream of a query with the format changed."""
    return (
        spark.readStream.format("klog")
        .option("subscribe", topic.name)
        .option("startingOffsets", query.starting)
        .option("isolationLevel", "read_uncommitted")
        .options(**options)
        .load(topic.log_dir)
    )


def check(left: Left, topic: Topic, query: Query, first: int = 0) -> None:
    """Check that a query has read every record once, from the one of a number on."""
    if query.output == COUNTS:
        assert left.counts() == dict(topic.keys)
    else:
        assert left.places() == sorted(topic.places[first:])
