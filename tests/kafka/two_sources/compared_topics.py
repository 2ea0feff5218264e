"""The topics that both sources read: small, of every kind, and settled before the first case.

The rule: a topic is written once and then left alone. klog reads a directory up to the high
watermarks that the broker has checkpointed, so a case starts when the two agree.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import OffsetSpec

from klog.logformat.broker_files.checkpoint_files import decode_offset_checkpoint
from klog.logformat.topic_partition import TopicPartition
from tests.corpus.clients import EPOCH_2024, Client, Sent
from tests.corpus.clients import batch as send
from tests.corpus.oracle import offsets
from tests.corpus.transactions import end_in_log
from tests.kafka.two_sources.compared_case import at
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

PLAIN = "sides.plain"
"""Three partitions of 40, 25 and 7 records, a record each second, in batches of at most ten."""
ONE = "sides.one"
"""One partition of ten records."""
HEADERS = "sides.headers"
HOLES = "sides.holes"
"""Three partitions; the one in the middle is empty."""
EMPTY = "sides.empty"
"""Two partitions without records."""
OPEN = "sides.open"
"""Committed, aborted and open transactions; partition 0 is held back by one, partition 1 is not."""
ENDED = "sides.ended"
"""Transactions that have ended: the last offset is a commit marker, or an abort marker."""
ABORTED = "sides.aborted"
"""One partition of aborted records alone."""
COMPACTED = "sides.compacted"
TRIMMED = "sides.trimmed"
"""Partition 0 starts at 8 of 20 after kafka-delete-records; partition 1 has all ten."""
GONE = "sides.gone"
"""One partition, all five records deleted."""
EXPIRED = "sides.expired"
"""Retention has deleted the first segments."""
TIMES = "sides.times"
"""Times out of order, and two records of the same time."""
APPENDED = "sides.appended"
"""The broker's times (LogAppendTime)."""
WIDE = "sides.wide"
"""Six partitions of 1, 2, 4, 8, 16 and 32 records."""

KEPT = {"retention.ms": "-1"}
SMALL_SEGMENTS = {"internal.segment.bytes": "600", "index.interval.bytes": "100"}
COMPACTING = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "0",
}


def seconds(numbers: Iterable[float], size: int = 10) -> list[Sent]:
    """Return a record for each second, named by its number."""
    return [Sent(b"k%d" % i, b"v%d" % i + b"." * size, at(n)) for i, n in enumerate(numbers)]


def write(client: Client, topic: str, partition: int, records: Sequence[Sent]) -> None:
    """Send records in batches of at most ten, of several codecs."""
    codecs = ("none", "lz4", "zstd", "gzip", "snappy")
    for number, first in enumerate(range(0, len(records), 10)):
        producer = client.producer(codecs[number % len(codecs)])
        send(producer, topic, records[first : first + 10], partition)


def write_topics(client: Client, log_dir: Path) -> list[Producer]:
    """Write all topics and wait until they are settled; return producers of open transactions."""
    _write_plain(client)
    _write_times(client)
    held = _write_transactions(client)
    _write_cleaned(client, log_dir)
    _write_deleted(client)
    until_settled(client, log_dir, client.configs)
    _until_moved(log_dir)
    return held


def until_settled(client: Client, log_dir: Path, topics: Iterable[str]) -> None:
    """Wait until the broker has checkpointed the high watermark of each partition's end."""
    metadata = client.admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    partitions = [
        (topic, partition)
        for topic in metadata.keys() & set(topics)
        for partition in metadata[topic].partitions
    ]
    ends = offsets(client, partitions, OffsetSpec.latest(), "read_uncommitted")

    def are_checkpointed() -> bool:
        marks = _checkpoint(log_dir / "replication-offset-checkpoint")
        return all(marks.get(TopicPartition(*name), 0) == end for name, end in ends.items())

    wait_until(are_checkpointed, "every high watermark in its checkpoint")


def log_start(log_dir: Path, topic: str, partition: int = 0) -> int:
    """Return the log start on disk: the checkpointed one, or the first segment's if that is more.

    A broker checkpoints only a log start that is not the first segment's own offset.
    """
    starts = _checkpoint(log_dir / "log-start-offset-checkpoint")
    segments = [int(path.stem) for path in (log_dir / f"{topic}-{partition}").glob("*.log")]
    return max(starts.get(TopicPartition(topic, partition), 0), min(segments, default=0))


def _checkpoint(path: Path) -> dict[TopicPartition, int]:
    return dict(decode_offset_checkpoint(path.read_bytes())) if path.exists() else {}


def _write_plain(client: Client) -> None:
    client.create(PLAIN, "several partitions", KEPT, 3)
    for partition, count in enumerate((40, 25, 7)):
        write(client, PLAIN, partition, seconds(range(count)))
    client.create(ONE, "one partition", KEPT)
    write(client, ONE, 0, seconds(range(10)))
    client.create(HOLES, "an empty partition", KEPT, 3)
    write(client, HOLES, 0, seconds(range(10)))
    write(client, HOLES, 2, seconds(range(5)))
    client.create(EMPTY, "no records", KEPT, 2)
    client.create(WIDE, "six partitions", KEPT, 6)
    for partition in range(6):
        write(client, WIDE, partition, seconds(range(1 << partition)))
    client.create(HEADERS, "headers and nulls", KEPT)
    send(
        client.producer(),
        HEADERS,
        [
            Sent(b"none", b"v"),
            Sent(b"one", b"v", EPOCH_2024, [("a", b"1")]),
            Sent(b"twice", b"v", EPOCH_2024, [("a", b"1"), ("a", b"2"), ("", b"")]),
            Sent(b"null", None, EPOCH_2024, [("a", None)]),
            Sent(None, None),
            Sent(b"", b""),
        ],
    )


def _write_times(client: Client) -> None:
    client.create(TIMES, "times out of order", KEPT, 2)
    for number in (0, 5, 3, 5, 1):
        write(client, TIMES, 0, seconds([number]))
    write(client, TIMES, 1, seconds([2, 9, 4]))
    client.create(
        APPENDED, "the broker's times", {**KEPT, "message.timestamp.type": "LogAppendTime"}
    )
    write(client, APPENDED, 0, seconds(range(5)))


def _write_transactions(client: Client) -> list[Producer]:
    client.create(OPEN, "one is open", KEPT, 2)
    client.create(ENDED, "all have ended", KEPT, 2)
    client.create(ABORTED, "aborted alone", KEPT)
    writer = client.transactional("sides")
    for topic, partition, count, is_kept in (
        (OPEN, 0, 5, True), (OPEN, 0, 4, False), (OPEN, 0, 3, True), (OPEN, 1, 6, True),
        (ENDED, 0, 5, True), (ENDED, 0, 2, False), (ENDED, 0, 6, True),
        (ENDED, 1, 4, True), (ENDED, 1, 3, False), (ABORTED, 0, 4, False),
    ):  # fmt: skip
        writer.begin_transaction()
        send(writer, topic, seconds(range(count)), partition)
        end_in_log(client, writer, topic, partition, commit=is_kept)
    held = client.transactional("sides.held")
    held.begin_transaction()
    send(held, OPEN, seconds(range(3)), 0)
    write(client, OPEN, 0, seconds(range(4)))
    return [held]


def _write_cleaned(client: Client, log_dir: Path) -> None:
    client.create(COMPACTED, "cleaned", {**KEPT, **SMALL_SEGMENTS, **COMPACTING}, 2)
    for number in range(12):
        records = [
            Sent(b"k%d" % (i % 5), b"v%d" % (number * 10 + i) + b"." * 40, at(number * 10 + i))
            for i in range(7)
        ]
        send(
            client.producer(), COMPACTED, [Sent(b"once%d" % number, b"kept", at(number)), *records]
        )
        send(client.producer(), COMPACTED, records[:3], 1)

    def is_cleaned() -> bool:
        cleaned = _checkpoint(log_dir / "cleaner-offset-checkpoint")
        ends = {0: 80, 1: 30}
        return all(cleaned.get(TopicPartition(COMPACTED, p), 0) >= ends[p] for p in ends)

    wait_until(is_cleaned, f"{COMPACTED}: the cleaner")
    client.configure(COMPACTED, {"min.compaction.lag.ms": str(1 << 62)})


def _write_deleted(client: Client) -> None:
    client.create(TRIMMED, "trimmed", KEPT, 2)
    write(client, TRIMMED, 0, seconds(range(20)))
    write(client, TRIMMED, 1, seconds(range(10)))
    client.create(GONE, "all deleted", KEPT)
    write(client, GONE, 0, seconds(range(5)))
    client.create(
        EXPIRED, "retention",
        {**KEPT, **SMALL_SEGMENTS, "retention.bytes": "1500", "file.delete.delay.ms": "0"},
    )  # fmt: skip
    for number in range(20):
        send(client.producer(), EXPIRED, seconds([number] * 5, 40))
    client.delete_records(TRIMMED, 0, 8)
    client.delete_records(GONE, 0, 5)


def _until_moved(log_dir: Path) -> None:
    """Wait until the moved log starts are on disk, and retention has come to rest."""
    last, since = -1, time.monotonic()

    def have_moved() -> bool:
        nonlocal last, since
        expired = log_start(log_dir, EXPIRED)
        if expired != last:
            last, since = expired, time.monotonic()
        are_trimmed = log_start(log_dir, TRIMMED) == 8 and log_start(log_dir, GONE) == 5
        return are_trimmed and expired > 0 and time.monotonic() - since > 2

    wait_until(have_moved, "the moved log starts on disk")
