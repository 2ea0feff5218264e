"""Spark's Kafka connector and klog as a job sees them: what one case gives on each.

The rule: both get the same options, the broker's address and the client's settings included; a job
that moves to klog changes the format and the path, and so does a case.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from tests.kafka.two_sources.compared_case import BATCH, Case
from tests.support.waiting import TIMEOUT_SECONDS

KAFKA, KLOG = "kafka", "klog"
IMPATIENT = {
    "fetchOffset.numRetries": "1",
    "fetchOffset.retryIntervalMs": "10",
    "kafkaConsumer.pollTimeoutMs": "3000",
    "kafka.request.timeout.ms": "15000",
    "kafka.default.api.timeout.ms": "30000",
}
"""Settings of the client with which an error comes soon, but none because a machine is busy."""

_FAILURES = (PySparkException, Py4JJavaError)
"""PySpark leaves some errors of the Java side as they are."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case gives: it is compared whole between both sources.

    Attributes:
        has_failed: Whether it ended with an error.
        rows: The rows of a batch, or of each micro-batch, in the order of the log.
        schema: The columns and their types; empty after an error.
        offsets: Where each finished micro-batch of a stream ended.
        tasks: The rows of each task, if the case compares them.
    """

    has_failed: bool
    rows: tuple[tuple[Row, ...], ...] = ()
    schema: str = ""
    offsets: tuple[Mapping[str, Any], ...] = ()
    tasks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """An outcome, and the words of its error, which differ."""

    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One of the two formats."""

    name: str
    spark: SparkSession
    bootstrap: str
    path: str = ""

    def run(self, case: Case, folder: Path) -> Ended:
        """Return what a case gives; `folder` is new and holds the checkpoint of a stream."""
        if case.trigger == BATCH:
            df = self.load_batch(case.options)
            return self.collected(df, compares_tasks=case.compares_tasks)
        return self.run_stream(case.options, folder, {case.trigger: True})

    def load_batch(self, options: Mapping[str, str]) -> DataFrame | Exception:
        """Load a batch, or return its error."""
        try:
            return self._configured(self.spark.read, options)
        except _FAILURES as exc:
            return exc

    def load_stream(self, options: Mapping[str, str]) -> DataFrame:
        """Load a stream."""
        return self._configured(self.spark.readStream, options)

    def collected(self, loaded: DataFrame | Exception, *, compares_tasks: bool = False) -> Ended:
        """Read a batch that was loaded."""
        if isinstance(loaded, Exception):
            return Ended(Outcome(True), str(loaded))
        try:
            schema = loaded.schema.simpleString()
            if not compares_tasks:
                return Ended(Outcome(False, (rows_of(loaded),), schema))
            rows, tasks = _rows_and_tasks(loaded)
            return Ended(Outcome(False, (rows,), schema, (), tasks))
        except _FAILURES as exc:
            return Ended(Outcome(True), str(exc))

    def run_stream(
        self, options: Mapping[str, str], checkpoint: Path, trigger: Mapping[str, Any]
    ) -> Ended:
        """Run a stream until it ends by itself; it goes on from its checkpoint if there is one."""
        batches: dict[int, tuple[Row, ...]] = {}

        def keep(df: DataFrame, number: int) -> None:
            batches[number] = rows_of(df)

        error, schema = "", ""
        try:
            df = self.load_stream(options)
            writer = df.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
            query = writer.trigger(**trigger).start()
            try:
                if not query.awaitTermination(TIMEOUT_SECONDS):
                    raise RuntimeError(f"the stream did not end in {TIMEOUT_SECONDS} s")
            finally:
                query.stop()
            schema = df.schema.simpleString()
        except _FAILURES as exc:
            error = str(exc)
        rows = tuple(batches[number] for number in sorted(batches))
        return Ended(Outcome(bool(error), rows, schema, committed_offsets(checkpoint)), error)

    def _configured(self, reader: Any, options: Mapping[str, str]) -> DataFrame:
        reader = reader.format(self.name).option("kafka.bootstrap.servers", self.bootstrap)
        reader = reader.options(**{**IMPATIENT, **options})
        df: DataFrame = reader.load(self.path) if self.path else reader.load()
        return df


class Directory:
    """klog over the broker's directory; it runs a case once, as two tests compare with it."""

    def __init__(self, source: Source, folder: Path) -> None:
        self._source, self._folder = source, folder
        self._ended: dict[str, Ended] = {}

    def run(self, case: Case) -> Ended:
        """Return what a case gives."""
        if case.name not in self._ended:
            self._ended[case.name] = self._source.run(case, self._folder / str(len(self._ended)))
        return self._ended[case.name]


def committed_offsets(checkpoint: Path) -> tuple[Mapping[str, Any], ...]:
    """Return where each micro-batch ended that a stream has finished, without klog's own keys."""
    numbers = sorted(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    lines = [(checkpoint / "offsets" / str(n)).read_text().splitlines()[-1] for n in numbers]
    return tuple(
        {topic: ends for topic, ends in json.loads(line).items() if not topic.startswith("#")}
        for line in lines
    )


def rows_of(df: DataFrame) -> tuple[Row, ...]:
    """Return all rows, in the order of the log."""
    return _sorted(df.collect())


def _rows_and_tasks(df: DataFrame) -> tuple[tuple[Row, ...], tuple[int, ...]]:
    rows = df.withColumn("task", spark_partition_id()).collect()
    counts: dict[int, int] = {}
    for row in rows:
        counts[row.task] = counts.get(row.task, 0) + 1
    return _sorted(row[:-1] for row in rows), tuple(sorted(counts.values()))


def _sorted(rows: Iterable[Any]) -> tuple[Row, ...]:
    plain = [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in rows]
    return tuple(sorted(plain, key=lambda row: row[2:5]))
