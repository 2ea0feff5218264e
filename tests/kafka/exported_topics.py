"""A klog root whose exports Kafka's tools and brokers check: what each topic shows.

The rule: one function a topic. Record times are of the last hour, for a broker forgets producers
whose records are older than a day; nothing else depends on the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from klog.jobs import import_log
from klog.logformat.batches.batch_attributes import BatchAttributes
from tests import corpus
from tests.corpus.clients import CODECS
from tests.jobs.broker_dirs import write_broker_dir
from tests.jobs.written_root import BATCHES, CONFIG, WrittenRoot, numbers
from tests.kafka.mounted_partitions import Where
from tests.kafka.written_partition import Written
from tests.kafka.written_topics import SMALL, rows, write_gaps, write_transactions
from tests.support.batch_bytes import TRANSACTIONAL, Record, batch
from tests.support.broker_loader.load_partition import load

BROKERS_WORD = {"segment.bytes": "internal.segment.bytes"}
"""Kafka 4 refuses so small a segment under its own name."""


def write_codecs(root: WrittenRoot, now: int) -> None:
    """Write every codec, a partition each, by writers with and without a name, also in conflict."""
    root.create("exported.codecs", len(CODECS))
    for partition, codec in enumerate(CODECS):
        word = {"none": "uncompressed"}.get(codec, codec)

        def write(first: int, count: int, **how: object) -> None:
            rows = numbers(first, count, now)
            root.append("exported.codecs", rows, partition, compression_type=word, **how)  # type: ignore[arg-type]  # noqa: B023

        write(0, 300, name="nightly", number=3 * partition)
        seen = root.state("exported.codecs")
        write(300, 700)
        # Both began at offset 300; each appends after what the others have committed since.
        write(1000, 20, seen=seen)
        write(1020, 600, seen=seen, name="late", number=32767 + partition)
        write(1620, 1, name="nightly", number=3 * partition + 1)


def write_started(root: WrittenRoot, now: int) -> None:
    """Move the log start into a segment, that of partition 1 into its first."""
    root.create("exported.started", 2)
    for partition in (0, 1):
        for first in (0, 500):
            root.append("exported.started", numbers(first, 500, now), partition)
    root.delete_records("exported.started", {0: 777, 1: 3})


def write_emptied(root: WrittenRoot, now: int) -> None:
    """Delete all records of one partition; let another never have had one."""
    root.create("exported.emptied", 2)
    root.append("exported.emptied", numbers(0, 50, now))
    root.delete_records("exported.emptied", {0: 50})


def write_append_time(root: WrittenRoot, now: int) -> None:
    """Write LogAppendTime, the time of staging."""
    config = CONFIG | {"message.timestamp.type": "LogAppendTime"}
    root.create("exported.appended", 1, config)
    for first in (0, 100):
        root.append("exported.appended", numbers(first, 100, now - 77_000), compression_type="lz4")


def write_by_jvm(root: WrittenRoot, spark: SparkSession, now: int) -> None:
    """Write every codec by the JVM engine, a partition each: with its shuffle, then without."""
    root.create("exported.jvm", len(CODECS))
    for partition, codec in enumerate(CODECS):
        df = spark.range(0, 900, 1, 3).selectExpr(
            "if(id % 7 = 0, null, concat('k', id % 50)) AS key",
            "if(id % 11 = 0, null, repeat(string(id), int(id % 20))) AS value",
            "if(id % 5 = 0, array(struct('h' key, binary(string(id)) value)), null) AS headers",
            f"timestamp_millis({now} + id % 13) AS timestamp",
            f"{partition} AS partition",
        )
        writer = df.write.format("klog").mode("append").option("engine", "jvm")
        writer = writer.options(**BATCHES, topic="exported.jvm", transactionalId=codec)
        writer = writer.option("compression.type", {"none": "uncompressed"}.get(codec, codec))
        writer.option("transactionVersion", "1").save(root.location)
        writer.option("transactionVersion", "2").option("distributionMode", "none").save(
            root.location
        )


WRITTEN: tuple[Callable[[WrittenRoot, int], None], ...] = (
    write_codecs,
    write_started,
    write_emptied,
    write_append_time,
)
GAPS, OPEN = "written.gaps", "exported.open"


def write_epochs(now: int) -> Written:
    """Write a log whose cluster had more leader epochs than a new cluster."""
    log = Written("exported.epochs", SMALL)
    for epoch in (0, 7, 7, 90, 91):
        log.append(rows(log.next_offset, 20, now), BatchAttributes(codec=4, leader_epoch=epoch))
    return log


def adopt(root: WrittenRoot, now: int) -> dict[Where, list[corpus.Record]]:
    """Adopt a broker's logs: aborted transactions, offsets without records."""
    accounts = {}
    for log in (*write_transactions(now), *write_gaps(now), write_epochs(now)):
        root.create(log.topic, 1, {**CONFIG, "index.interval.bytes": "300"})
        root.adopt(log.topic, 0, load(log.files()).logs)
        accounts[log.topic, 0] = log.records
    return accounts


def take_open(root: WrittenRoot, work: Path, now: int) -> None:
    """Import a log that ends inside two transactions, and abort them."""

    def begun(offset: int, producer_id: int) -> bytes:
        rows = [Record(offset, now + offset, b"k", b"begun")]
        return batch(
            rows,
            attributes=TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=3,
            base_sequence=0,
        )

    between = batch([Record(1, now + 1, b"k", b"between")])
    log = begun(0, (1 << 40) + 1) + between + begun(2, (1 << 40) + 2)
    source = write_broker_dir(work / "open", {f"{OPEN}-0": {0: log}})
    import_log.run(None, root.location, OPEN, source=str(source), open_transactions="abort")


def config_on_broker(root: WrittenRoot, topic: str) -> dict[str, str]:
    """Return a topic's config as a broker takes it."""
    config = root.state(topic).config
    return {BROKERS_WORD.get(name, name): value for name, value in config.items()}
