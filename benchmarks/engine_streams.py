"""Stream a topic with the JVM engine: against Spark's Kafka connector and a Parquet file stream.

The rule: each run has a checkpoint of its own. A backlog is read with `availableNow`, timed from
`load()` to the end of the query, in turns. A micro-batch of one row is Spark's own account
(`triggerExecution`) of a topic read one row at a time, the first ones left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count as numbers
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.compared import KLOG, Action, compared
from benchmarks.same_topic import SameTopic
from benchmarks.spark_write import Result
from benchmarks.stream_to_end import WARM_UP_BATCHES, micro_batch_ms, row_count, run_to_end
from benchmarks.timing import Spread

KAFKA, PARQUET = "Kafka connector", "Parquet files"
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_NUMBERS = numbers()
"""Each run gets a number, and by it folders of its own."""


def available_now(topic: SameTopic, rounds: int) -> Iterator[Result]:
    """Read a whole backlog into `noop`, then into Parquet files."""
    sources = _sources(topic, {}, lambda: _files(topic, topic.parquet_path))
    for sink in ("noop", "parquet"):
        actions = {name: _action(topic, source, sink) for name, source in sources.items()}
        of = f"availableNow to {sink}, {topic.label}"
        yield from compared(of, topic.count, actions, rounds)


def micro_batches(topic: SameTopic, batches: int, rounds: int) -> Iterator[Result]:
    """Read one row a micro-batch."""
    rows = min(topic.count, batches + WARM_UP_BATCHES)
    parts = topic.folder / "one-row-files"
    topic.parquet().limit(rows).repartition(rows).write.parquet(str(parts))
    sources = _sources(
        topic,
        {"maxOffsetsPerTrigger": "1"},
        lambda: _files(topic, parts, {"maxFilesPerTrigger": "1"}),
    )
    milliseconds: dict[str, list[float]] = {name: [] for name in sources}
    for _ in range(rounds):
        for name, source in sources.items():
            milliseconds[name].append(micro_batch_ms(_run(topic, source(), "noop")))
    of = f"a micro-batch of one row, {batches} of them"
    for name, values in milliseconds.items():
        yield Result(f"{name}: triggerExecution", of, f"{Spread.of(values)} ms")
    for peer in (KAFKA, PARQUET):
        ratios = zip(milliseconds[peer], milliseconds[KLOG], strict=True)
        spread = Spread.of([theirs / mine for theirs, mine in ratios])
        yield Result(f"{peer} / {KLOG}: triggerExecution", of, str(spread))


def _sources(
    topic: SameTopic, limit: Mapping[str, str], parquet: Callable[[], DataFrame]
) -> dict[str, Callable[[], DataFrame]]:
    def stream(source: str, options: Mapping[str, str]) -> DataFrame:
        reader = topic.spark.readStream.format(source).options(**{**options, **limit})
        return reader.option("startingOffsets", "earliest").load()

    return {
        KAFKA: lambda: stream("kafka", topic.kafka_options),
        KLOG: lambda: stream("klog", topic.directory_options),
        PARQUET: parquet,
    }


def _files(topic: SameTopic, path: Path, options: Mapping[str, str] = NO_OPTIONS) -> DataFrame:
    reader = topic.spark.readStream.format("parquet").options(**options)
    return reader.schema(topic.parquet().schema).load(str(path))


def _action(topic: SameTopic, source: Callable[[], DataFrame], sink: str) -> Action:
    def action() -> None:
        seen = row_count(_run(topic, source(), sink))
        if seen != topic.count:
            raise RuntimeError(f"a stream gives {seen} rows of {topic.count}")

    return action


def _run(topic: SameTopic, df: DataFrame, sink: str) -> StreamingQuery:
    number = next(_NUMBERS)
    path = None if sink == "noop" else topic.folder / f"sink-{number}"
    return run_to_end(df, topic.folder / f"checkpoint-{number}", sink, path)
