"""Run the benchmarks and print a report in Markdown; progress goes to standard error.

python -m benchmarks > benchmarks/RESULTS.md
python -m benchmarks --tiny            # a few thousand records, to see that it runs
python -m benchmarks --only memory     # not part of the default: it writes 1 GiB twice
python -m benchmarks --only write      # nor this: it starts a broker
python -m benchmarks --only compact    # nor this: it starts a broker and writes 5 GB
python -m benchmarks --only compact-many    # nor this: a broker, and 44 partitions a round
python -m benchmarks --only size-check      # nor this: it gives few rows of RESULTS.md
python -m benchmarks --only less            # nor this: counts, some columns, a wide topic
python -m benchmarks --only imports         # nor this: what processes import
python -m benchmarks --only first-query     # nor this: the first stream of fresh sessions
python -m benchmarks --only lookups         # nor this: little in many segments, a skewed topic
python -m benchmarks --only streams         # nor this: a broker, and streams to noop
python -m benchmarks --only engines         # nor this: a broker, and the JVM engine
python -m benchmarks --only engine-writes   # nor this: a broker, and the JVM engine that writes
python -m benchmarks --only delta           # nor this: a broker, and Delta tables
python -m benchmarks --only values          # nor this: Avro, Protobuf and JSON
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import (
    commits,
    compact_many,
    compaction,
    decode,
    decoded_values,
    delta_copies,
    encode,
    engine_writes,
    engines,
    first_query,
    imports,
    legacy,
    lookups,
    machine,
    memory,
    peers,
    reading_less,
    report,
    size_check,
    spark_read,
    spark_write,
    stream_runs,
    upkeep,
)
from klog.logformat.codecs.codec_names import CODEC_NAMES

PARTS = (
    "decode", "legacy", "encode", "spark", "commits",
    "memory", "write", "compact", "compact-many", "upkeep", "size-check", "less",
    "imports", "first-query", "lookups", "streams", "engines", "engine-writes", "delta",
    "values",
)  # fmt: skip
DEFAULT_PARTS = PARTS[:5]
RECORDS, TINY_RECORDS = 2_000_000, 4_000
LONG_VALUE_SHARE = 0.15
"""The share of the records that have 1 KiB instead of 100 bytes: about as many bytes."""
MANY_SHARE = 4
"""`compact-many` splits the records of the other parts into so many partitions."""
COMPACTED_SHARE = 10
"""`compact` and `upkeep` take so many times the records of the other parts."""
ROUNDS = 5
MICRO_BATCHES = 40

HOW = {
    "decode": """\
One core, CPU time, logs in memory, CRC checked by all; each gives offset, timestamp, key and value
of every record: klog as Arrow columns, the peers as Python objects and as they ship (aiokafka's CRC
is in software, see machine). Batches of 16 KiB are as a producer fills them, by compressed size
(records in a batch in brackets). A ratio is the median over rounds and its range; rates are million
records a second.""",
    "legacy": """\
Message formats v0 and v1, as `decode`: entries that are a record each, and wrappers of 16 KiB
(records in one in brackets). Each record has a CRC of its own, which both check, and a wrapper one
more. The bytes are kafka-python's.""",
    "encode": """\
One core, CPU time, records in memory: klog's are Arrow columns, kafka-python's are Python bytes, a
tenth of them. Each gives whole batches, compressed and with their CRC, of as many records (in
brackets). kafka-python has no zstd level 1. The codec alone is klog's compression of the same
records, a tenth of them, and nothing else. What indexes add is the time to make a segment's offset
and time index of its batches, against that of encoding them. A ratio is the median over rounds and
its range; rates are million records a second.""",
    "spark": """\
`spark.read` to `noop` on local[2], wall time with planning. The ceiling is a Python data source
that hands ready-made Arrow batches of klog's sizes to Spark; Parquet has the same rows and columns.
The fixed time is that of one record a partition; taken off both, it leaves what a longer query
would tell. Rates are million rows a second.""",
    "commits": """\
A topic's commit log on local disk (with `--stores` also on an S3 server and HDFS of three
DataNodes, on this machine too, and there in turns with Hadoop's own client, which makes the same
calls), 100 partitions, a segment a commit. A load is a fresh process's, on
one core and in CPU time, from a checkpoint, a large one in parts; a plan is of a read of the whole
topic; a reload reads one commit more. Writers are threads of one process, each with a state of its
own: fifty race for every number. The times of commits are wall time; checkpoints are written by a
thread at the same time. A long history is one whose checkpoint has 1,000 live segments and the last
10,000 writes.""",
    "write": """\
A cached DataFrame written through Spark on local[2], in turns, wall time of the whole write: klog's
Python sink, Spark's Kafka sink into a broker on this machine (`acks=all`), and Parquet as Spark
writes it (snappy). CPU is that of Spark, its Python workers and the broker. A micro-batch's time is
Spark's `triggerExecution`, of a stream with one partition of a hundred rows.""",
    "compact": """\
A topic of four partitions that was never compacted, its records in lz4: klog's job on Spark with
local[2], with numba, Spark itself on the same rows in Parquet, and a broker's cleaner with two
threads on two partitions of klog's own segments, by what it says itself; in turns. CPU is that of
Spark and its Python workers, and of the cleaner's threads.""",
    "compact-many": """\
Topics of 4 and of 40 middling partitions that were never compacted, uncompressed and in batches of
16 KiB as a producer fills them: `klog compact` with numba, a process of its own from Python's start
to its end; the same job on Spark with local[2]; and a broker's cleaner with two threads on the same
files; in turns. CPU is that of klog's process, of Spark and its Python workers, and of the
cleaner's threads alone.""",
    "upkeep": """\
Jobs that read no record, in one process and on files in the page cache, and the memory of a
compaction with as many keys for ten times the records, in a fresh process.""",
    "size-check": """\
What a Parquet file of the log holds is bounded by its footer and the headers of its pages before it
is read: one process, files in memory, the same bytes with that check and without it, in turns. A
load gives the state or the commit, a table is what of it Arrow reads.""",
    "less": """\
One process, one core, files in the page cache: how fast records are counted by the headers of their
batches, what columns cost against all of them (CPU time, in turns), and the plan of a read of a
klog root with many partitions, from nothing.""",
    "delta": """\
A topic of a broker copied into a new Delta table: to-delta from the broker's own directory, with
each engine; Spark's Kafka source as a stream with a checkpoint, until it has all; and the same rows
from a cached frame. An upsert merges a hundredth of the keys into a table of all, against a MERGE
written by hand of the same rows from a cached frame; the table is restored before each. In turns,
wall time of all of it. Before each write as many pages are freed. CPU is that of Spark, its Python
workers and the broker. A ratio above 1: klog is faster, or takes less CPU.""",
    "engine-writes": """\
A cached DataFrame written with the JVM engine on local[2], wall time and CPU (Spark, its workers,
the broker) of the whole write, in turns: klog, also without the shuffle of batches and with Python,
Spark's Kafka sink into a broker on this machine (`acks=all`), and Parquet (snappy for lz4). A ratio
is the peer's time by klog's: above 1, klog takes less. Then streams into each (`rate-micro-batch`):
micro-batches of a tenth of the rows, and of one row.""",
    "imports": """\
Fresh processes in turns: commands in wall time against `import pyarrow`, and the CPU time of klog's
part in each Python process of a read by Spark, its imports included.""",
    "first-query": """\
The first stream of a fresh session on local[2], `availableNow` to `noop`, in turns: a klog root of
1,000 records, and a Python source that does nothing. `load()` and the whole query are wall times
of the driver, the steps Spark's account of the first micro-batch.""",
    "lookups": """\
Queries collected through Spark on local[2], wall time from `load()` on and CPU, in turns with a
Python data source that returns one ready row; then a scan of a topic with nine of ten records in
one of ten partitions, in turns with the same records in ten equal ones. CPU is that of Spark and
its Python workers.""",
    "streams": """\
Streams to `noop` with `availableNow` on local[2], each with a checkpoint of its own, wall time from
`load()` to the end, in turns: Spark's Kafka connector from a broker on this machine, klog from that
broker's log directory and from a klog root. A micro-batch of one row is compared with a Python
source that does nothing, by Spark's `triggerExecution`.""",
    "engines": """\
Queries with the JVM engine on local[2], wall time and CPU (Spark, its workers, the broker) with
planning, in turns: Spark's Kafka connector from a broker on this machine, klog from that broker's
log directory, and Parquet of the same rows. Batches are those of a default producer. A ratio is the
peer's time by klog's: above 1, klog takes less.""",
    "values": """\
A flat record of ten fields in batches of 10,000 rows. Avro and Protobuf to Arrow columns on one
core, CPU time, against the library alone, which gives Python objects: fastavro's reader for each
datum, Protobuf's parser. JSON through Spark on local[2] to `noop`, wall time and CPU, against
`from_json`, which says nothing about bad rows, and with the column that says it. In turns; a ratio
is the median over rounds and its range.""",
    "memory": """\
A fresh process reads one segment, task by task, and keeps nothing; its peak resident memory.""",
}

_JSON_NAMES = {"label": "what"}
"""Fields of results that have another name in the JSON of `--json`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """The parts to run and their sizes."""

    parts: Sequence[str]
    codecs: Sequence[str]
    records: int
    rounds: int
    segment_bytes: int
    commits: commits.Sizes
    stores: bool
    micro_batches: int
    checked_segments: int
    partitions: int
    segments: int

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Return (value bytes, records) of each kind of record."""
        return [(100, self.records), (1024, int(self.records * LONG_VALUE_SHARE))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts; print the report and write the figures."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options, run = _parse(arguments)
    facts = machine.describe() | peers.implementations()
    facts["load average before (1, 5, 15 min)"] = machine.load()
    tables, figures = [], {}
    for part in run.parts:
        results = list(_shown(part, _RUN[part](run)))
        figures[part] = [_json_fields(result) for result in results]
        tables += [f"## {part}", HOW[part], _TABLE[part](results)]
    facts["load average after"] = machine.load()
    head = ["# Results", _command_line(arguments, options, run)]
    print("\n\n".join([*head, *tables, "## machine", report.listing(facts)]))
    if options.json:
        options.json.write_text(json.dumps({"machine": facts, **figures}, indent=1) + "\n")


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, Run]:
    parser = argparse.ArgumentParser("python -m benchmarks")
    parser.add_argument("--tiny", action="store_true", help="few records, one round")
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--rounds", type=int, help=f"default {ROUNDS}")
    parser.add_argument("--records", type=int, help=f"of 100 bytes; default {RECORDS:,}")
    parser.add_argument("--codecs", default="none,lz4,zstd", help=f"of {','.join(CODEC_NAMES)}")
    parser.add_argument("--stores", action="store_true", help="commits on S3 and HDFS as well")
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args(arguments)
    codecs = options.codecs.split(",")
    if unknown := set(codecs) - set(CODEC_NAMES):
        parser.error(f"--codecs: no such codec: {', '.join(sorted(unknown))}")
    run = Run(
        parts=options.only or DEFAULT_PARTS,
        codecs=codecs,
        records=options.records or (TINY_RECORDS if options.tiny else RECORDS),
        rounds=options.rounds or (1 if options.tiny else ROUNDS),
        segment_bytes=memory.TINY_SEGMENT_BYTES if options.tiny else memory.SEGMENT_BYTES,
        commits=commits.TINY if options.tiny else commits.Sizes(),
        stores=options.stores,
        micro_batches=5 if options.tiny else MICRO_BATCHES,
        partitions=reading_less.TINY_PARTITIONS if options.tiny else reading_less.PARTITIONS,
        segments=lookups.TINY_SEGMENTS if options.tiny else lookups.SEGMENTS,
        checked_segments=size_check.TINY_SEGMENTS if options.tiny else size_check.SEGMENTS,
    )
    return options, run


def _command_line(arguments: Sequence[str], options: argparse.Namespace, run: Run) -> str:
    """Repeat the command, without the name of a file on this machine."""
    named = {"--json", str(options.json), f"--json={options.json}"}
    command = [
        "python",
        "-m",
        "benchmarks",
        *(argument for argument in arguments if argument not in named),
    ]
    sizes = " and ".join(f"{count:,} records of {size} B" for size, count in run.sizes)
    return f"`{shlex.join(command)}`: {sizes}; rounds in turns: {run.rounds}."


def _json_fields(result: Any) -> dict[str, Any]:
    return {_JSON_NAMES.get(name, name): value for name, value in asdict(result).items()}


def _run_spark(run: Run) -> Iterator[spark_read.Result]:
    spark = spark_read.session()
    try:
        yield from spark_read.run(spark, run.sizes[:1], run.codecs, run.rounds)
    finally:
        spark.stop()


def _run_commits(run: Run) -> Iterator[commits.Result]:
    yield from commits.run(run.commits)
    if run.stores:
        from benchmarks import commits_on_servers

        yield from commits_on_servers.run(run.commits)


def _shown(part: str, results: Iterable[T]) -> Iterator[T]:
    """Print each result as it comes, on standard error."""
    for result in results:
        print(f"{part}: {result}", file=sys.stderr, flush=True)
        yield result


_RUN: dict[str, Any] = {
    "decode": lambda run: decode.run(run.sizes, run.codecs, run.rounds),
    "legacy": lambda run: legacy.run(run.sizes, run.rounds),
    "encode": lambda run: encode.run(run.sizes, run.rounds),
    "spark": _run_spark,
    "commits": _run_commits,
    "memory": lambda run: memory.run(run.segment_bytes),
    "write": lambda run: spark_write.run(run.records, run.rounds, run.micro_batches),
    "compact": lambda run: compaction.run(COMPACTED_SHARE * run.records, run.rounds),
    "compact-many": lambda run: compact_many.run(run.records // MANY_SHARE, run.rounds),
    "upkeep": lambda run: upkeep.run(COMPACTED_SHARE * run.records, run.rounds),
    "size-check": lambda run: size_check.run(run.checked_segments, run.rounds),
    "less": lambda run: reading_less.run(run.records, run.partitions, run.rounds),
    "imports": lambda run: imports.run(run.rounds),
    "first-query": lambda run: first_query.run(run.rounds),
    "lookups": lambda run: lookups.run(run.segments, run.records, run.rounds),
    "engines": lambda run: engines.run(run.records, run.codecs, run.micro_batches, run.rounds),
    "engine-writes": lambda run: engine_writes.run(
        run.records, run.codecs, run.micro_batches, run.rounds
    ),
    "delta": lambda run: delta_copies.run(run.records, run.codecs[0], run.rounds),
    "values": lambda run: decoded_values.run(run.records, run.rounds),
    "streams": lambda run: stream_runs.run(run.records, run.micro_batches, run.rounds),
}
_TABLE: dict[str, Any] = {
    "decode": report.decode_table,
    "legacy": report.legacy_table,
    "encode": report.encode_table,
    "spark": report.spark_table,
    "commits": report.commits_table,
    "memory": report.memory_table,
    "write": report.figures_table,
    "compact": report.figures_table,
    "compact-many": report.figures_table,
    "upkeep": report.figures_table,
    "size-check": report.figures_table,
    "less": report.figures_table,
    "imports": report.figures_table,
    "first-query": report.figures_table,
    "lookups": report.figures_table,
    "streams": report.figures_table,
    "engines": report.figures_table,
    "engine-writes": report.figures_table,
    "delta": report.figures_table,
    "values": report.figures_table,
}

if __name__ == "__main__":
    # Spark's workers would inherit it, and each would compile its imports again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
