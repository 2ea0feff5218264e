"""What a change of the log gives on each source: the streams or batches of both, around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.kafka.two_sources.changes import Change, Moment, Topic
from tests.kafka.two_sources.sources import Ended, Outcome, Row, Source, committed_offsets, rows_of
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

QUIET_SECONDS = 3.0
AVAILABLE_NOW = {"availableNow": True}


def run_change(
    sources: Sequence[Source], change: Change, topic: Topic, folder: Path
) -> list[list[Ended]]:
    """Return, for each source, what it gives before and after the log changes."""
    topic.create(change.config)
    change.prepare(topic)
    topic.settle()

    def change_log() -> None:
        change.change(topic)
        if topic.name in topic.client.admin.list_topics(timeout=10).topics:
            topic.settle()

    if change.moment is Moment.BETWEEN_RUNS:
        return _between_runs(sources, change, topic.name, folder, change_log)
    if change.moment is Moment.AFTER_LOAD:
        return _after_load(sources, change, topic.name, change_log)
    return _while_running(sources, change, topic.name, folder, change_log)


def _between_runs(
    sources: Sequence[Source],
    change: Change,
    topic: str,
    folder: Path,
    change_log: Callable[[], None],
) -> list[list[Ended]]:
    options = {"startingOffsets": "earliest", **change.subscription(topic), **change.options}
    ended = [[s.run_stream(options, folder / s.name, AVAILABLE_NOW)] for s in sources]
    change_log()
    options |= change.again or {}
    for source, runs in zip(sources, ended, strict=True):
        runs.append(source.run_stream(options, folder / source.name, AVAILABLE_NOW))
    return ended


def _after_load(
    sources: Sequence[Source], change: Change, topic: str, change_log: Callable[[], None]
) -> list[list[Ended]]:
    options = {**change.subscription(topic), **change.options}
    loaded = [source.load_batch(options) for source in sources]
    change_log()
    return [[source.collected(df)] for source, df in zip(sources, loaded, strict=True)]


@dataclass(slots=True)
class _Running:
    """A stream that runs: the rows of its micro-batches so far."""

    source: Source
    checkpoint: Path
    query: StreamingQuery | None = None
    batches: dict[int, tuple[Row, ...]] = field(default_factory=dict)

    def start(self, options: dict[str, str]) -> None:
        df = self.source.load_stream(options)
        writer = df.writeStream.foreachBatch(self._keep).trigger(processingTime="200 milliseconds")
        self.query = writer.option("checkpointLocation", str(self.checkpoint)).start()

    def _keep(self, df: DataFrame, number: int) -> None:
        self.batches[number] = rows_of(df)

    @property
    def count(self) -> int:
        return sum(map(len, self.batches.values()))

    @property
    def is_active(self) -> bool:
        return self.query is not None and self.query.isActive

    def end(self) -> Ended:
        """Stop it; how its rows were parted into micro-batches is a matter of time."""
        error = ""
        if self.query is not None:
            try:
                self.query.stop()
                self.query.awaitTermination(TIMEOUT_SECONDS)
            except PySparkException as exc:
                error = str(exc)
        rows = tuple(sorted((row for b in self.batches.values() for row in b), key=_where))
        ends = () if error else committed_offsets(self.checkpoint)[-1:]
        return Ended(Outcome(bool(error), (rows,), "", ends), error)


def _where(row: Row) -> Row:
    return row[2:6]


def _while_running(
    sources: Sequence[Source],
    change: Change,
    topic: str,
    folder: Path,
    change_log: Callable[[], None],
) -> list[list[Ended]]:
    options = {"startingOffsets": "earliest", **change.subscription(topic), **change.options}
    streams = [_Running(source, folder / source.name) for source in sources]
    try:
        for stream in streams:
            stream.start(options)
        _wait(lambda: all(stream.count or not stream.is_active for stream in streams))
        change_log()
        _until_quiet(streams)
    finally:
        ended = [[stream.end()] for stream in streams]
    return ended


def _until_quiet(streams: Sequence[_Running]) -> None:
    """Wait until each stream has failed, or has read nothing more for a while."""
    counts, since = [-1] * len(streams), time.monotonic()

    def is_quiet() -> bool:
        nonlocal counts, since
        now = [stream.count for stream in streams]
        if now != counts:
            counts, since = now, time.monotonic()
        all_failed = not any(stream.is_active for stream in streams)
        return all_failed or time.monotonic() - since > QUIET_SECONDS

    _wait(is_quiet)


def _wait(is_done: Callable[[], object]) -> None:
    wait_until(is_done, "the streams at rest")
