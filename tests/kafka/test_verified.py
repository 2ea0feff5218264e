"""`klog verify` finds no fault in what a broker's coordinators write, cleaned or not."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from klog.jobs import adopt, compact, import_log, verify
from klog.logformat import topic_partition
from klog.logformat.array_types import Longs
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.checkpoint_files import decode_offset_checkpoint
from tests.corpus.clients import Client
from tests.support.kafka_broker import Broker
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

pytestmark = pytest.mark.kafka
OFFSETS, _ = INTERNAL = ("__consumer_offsets", "__transaction_state")
PROPERTIES = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "300"}
CLEANED = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0001", "delete.retention.ms": "0"}


def commit_offsets(broker: Broker, count: int) -> None:
    """Commit offsets in transactions; every third one aborts."""
    settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    producer = Producer({**settings, "transactional.id": "mover"})
    producer.init_transactions(TIMEOUT_SECONDS)
    consumer = Consumer({**settings, "group.id": "group"})
    group = consumer.consumer_group_metadata()
    for number in range(count):
        producer.begin_transaction()
        producer.produce("out", str(number))
        producer.send_offsets_to_transaction([TopicPartition("in", 0, number)], group)
        end = producer.abort_transaction if number % 3 == 2 else producer.commit_transaction
        end(TIMEOUT_SECONDS)
    consumer.close()


def commit_until_rolled(broker: Broker, log_dir: Path) -> int:
    """Commit offsets until the log rolls; return the number of commits."""
    active, count, deadline = active_offset(log_dir), 0, time.monotonic() + TIMEOUT_SECONDS
    while active_offset(log_dir) == active:
        assert time.monotonic() < deadline
        commit_offsets(broker, 3)
        count += 3
    return count


def wait_until_cleaned(log_dir: Path) -> None:
    """Wait until all before the active segment is cleaned."""
    wait_until(lambda: cleaned_to(log_dir) >= active_offset(log_dir), "a cleaned log")


def active_offset(log_dir: Path) -> int:
    """Return the base offset of the active segment of `__consumer_offsets`."""
    return max(int(path.stem) for path in (log_dir / f"{OFFSETS}-0").glob("*.log"))


def cleaned_to(log_dir: Path) -> int:
    """Return the offset that the broker's cleaner has reached in `__consumer_offsets`."""
    path = log_dir / "cleaner-offset-checkpoint"
    offsets = decode_offset_checkpoint(path.read_bytes()) if path.exists() else {}
    return offsets.get(topic_partition.TopicPartition(OFFSETS, 0), 0)


def sequences(log_dir: Path) -> Longs:
    """Return the base sequences of the producers' batches in `__consumer_offsets`."""
    logs = [path.read_bytes() for path in sorted((log_dir / f"{OFFSETS}-0").glob("*.log"))]
    data = b"".join(logs)
    headers = scan_batches(data, 0, len(data)).headers
    sequences: Longs = headers["base_sequence"][headers["producer_id"] >= 0].astype("i8")
    return sequences[sequences >= 0]


def check(log_dir: Path, work: Path) -> None:
    """Import and adopt the log dir; `verify` must pass, also after a compaction."""
    imported, adopted = work / "imported", work / "adopted"
    compacted = {"cleanup.policy": "compact"}
    import_log.run(None, str(imported), INTERNAL, source=str(log_dir), config=compacted)
    shutil.copytree(log_dir, adopted)
    adopt.run(None, str(adopted))
    for root in (imported, adopted):
        assert verify.run(None, str(root)).findings == ()
    for topic in INTERNAL:
        compact.run(None, str(imported), topic)
    assert verify.run(None, str(imported)).findings == ()


def test_what_coordinators_write(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker", PROPERTIES) as broker:
        (log_dir,) = broker.log_dirs
        client = Client(broker)
        client.create("out", "what transactions write with the offsets")
        client.create("in", "what the offsets are of")
        commit_offsets(broker, 6)
        for topic in INTERNAL:
            client.configure(topic, CLEANED)
        broker.stop()
        assert sequences(log_dir).tolist() == [0] * 6
        check(log_dir, tmp_path / "before")
        broker.start()
        count = 6 + sum(commit_until_rolled(broker, log_dir) for _ in range(3))
        wait_until_cleaned(log_dir)
        broker.stop()
        assert len(sequences(log_dir)) < count
        check(log_dir, tmp_path / "after")
