"""Streams of Spark from a source to a klog root, their checkpoints, and a write with dead letters.

The rule: for each stream, an archive has the source, the sink and the checkpoint after two
micro-batches, and records in the source that the stream has not read. `expected.json` says how to
start it again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import klog
from tests.releases.account import Record, records_of
from tests.releases.command import done
from tests.releases.release_topics import OLD_MS, PLAIN, numbered, table
from tests.support.waiting import TIMEOUT_SECONDS

TOPIC = "events"
READ = {"subscribe": TOPIC, "startingOffsets": "earliest", "includeHeaders": "true"}
WRITE = {"topic": TOPIC, "numPartitions": "3"}
STREAMS = {
    "klog": {"read": READ, "write": WRITE},
    "named": {"read": READ, "write": {**WRITE, "transactionalId": "named-stream"}},
    "broker": {"read": READ, "write": WRITE},
}
"""The options of each stream's source and sink."""
BATCHES = 2
LETTER_HEADERS = {
    "klog.dead-letter.topic": "orders",
    "klog.dead-letter.partition": "9",
    "klog.dead-letter.timestamp": str(OLD_MS),
    "klog.dead-letter.writer": "etl/7",
    "klog.dead-letter.row": "0/2",
    "klog.dead-letter.attempt": "1",
}
"""Headers of the dead letter, without its reason."""


def go_on(spark: SparkSession, folder: Path, options: dict[str, dict[str, str]]) -> None:
    """Run a stream over the records of its source that it has not read."""
    klog.register(spark)
    rows = spark.readStream.format("klog").options(**options["read"]).load(str(folder / "source"))
    query = (
        rows.writeStream.format("klog")
        .options(**options["write"])
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "sink"))
    )
    assert query.awaitTermination(TIMEOUT_SECONDS)


def write_streams(spark: SparkSession, folder: Path) -> None:
    """Write the streams of an archive to a folder each."""
    for name, options in STREAMS.items():
        stream = folder / name
        feed = _feed_broker if name == "broker" else _feed
        for number in range(BATCHES):
            feed(stream, number)
            go_on(spark, stream, options)
        feed(stream, BATCHES)


def _feed(stream: Path, number: int) -> None:
    """Append to a source that is a klog root; add a partition before the last rows."""
    log = klog.open(stream / "source")
    if not number:
        log.create_topic(TOPIC, 2, PLAIN)
    if number == BATCHES:
        log.add_partitions(TOPIC, 3)
    partitions = [0, 1, 0, 1, 0, number]
    headers = [None, [{"key": "batch", "value": b"%d" % number}], *[None] * 4]
    rows = numbered(6 * number, 6)
    log.append(TOPIC, table(rows, partitions, OLD_MS + 6 * number, headers))


def _feed_broker(stream: Path, number: int) -> None:
    """Extend a broker's directory: export a growing topic with `export-log`."""
    _feed(stream.with_name("growing"), number)
    source, exported = stream / "source", stream / "exported"
    root = stream.with_name("growing") / "source"
    done("export-log", "--root", str(root), "--to", str(exported))
    (exported / ".lock").unlink(missing_ok=True)
    shutil.copytree(exported, source, dirs_exist_ok=True)
    shutil.rmtree(exported)
    if number == BATCHES:
        shutil.rmtree(stream.with_name("growing"))


def write_letters(spark: SparkSession, root: Path) -> None:
    """Write rows to topics by their column, in a named batch; one row becomes a dead letter."""
    rows = [
        ("a", "orders", 0),
        ("b", "payments", 0),
        ("refused", "orders", 9),
        ("c", "orders", 0),
    ]
    klog.register(spark)
    frame = spark.createDataFrame(rows, "value string, topic string, partition int").coalesce(1)
    frame = frame.selectExpr(
        "*", f"timestamp_millis({OLD_MS}) timestamp", "cast(null as string) key"
    )
    options = {
        "transactionalId": "etl",
        "transactionVersion": "7",
        "deadLetterTopic": "letters",
    }
    frame.write.format("klog").options(**options).mode("append").save(str(root))


def offsets_of(stream: Path) -> list[dict[str, Any]]:
    """Return the end offsets of each micro-batch in the checkpoint of a stream."""
    folder = stream / "checkpoint" / "offsets"
    names = sorted(path.name for path in folder.iterdir() if path.name.isdecimal())
    return [json.loads((folder / name).read_text().splitlines()[-1]) for name in names]


def without_offsets(records: list[Record]) -> list[str]:
    """Return records without their offsets, sorted as JSON."""
    return sorted(
        json.dumps({key: value for key, value in record.items() if key != "offset"})
        for record in records
    )


def sink_records(stream: Path) -> list[Record]:
    """Return the records that the stream has written."""
    return records_of(stream / "sink", TOPIC)


def source_records(stream: Path) -> list[Record]:
    """Return all records of the stream's source."""
    return records_of(stream / "source", TOPIC)
