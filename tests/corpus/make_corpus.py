"""Make the corpus from scratch: `python -m tests.corpus.make_corpus`.

The rule: each scene is a real broker's log dir, copied when the broker has stopped or was killed,
and its truth is taken from the running broker just before. librdkafka's producer writes it; Java's
and kafka-python's where theirs differ. Topic ids and broker times differ from run to run, and so
do the bytes; offsets, keys and values do not, but in `txn.java`, whose transactions end by the
clock. Needs Java, the jars of `tools/jars.py`, and the `bench` dependencies for kafka-python.

It lacks: times below -1 from Java's producer, which refuses them (librdkafka and kafka-python
send them, with maxTimestamp -1 in librdkafka's batches); time 0 from librdkafka, which takes it
for "now"; v0 and v1 batches, which 4.2.0 no longer writes.
"""

from __future__ import annotations

import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path

from tests.corpus import ROOT
from tests.corpus.cleaned_topics import clean, write_dirty, write_more
from tests.corpus.clients import Client, batch, numbered
from tests.corpus.corpus_topics import (
    LARGE_BATCH_RECORDS,
    SMALL_SEGMENTS,
    write_batches,
    write_codecs,
    write_names,
    write_records,
    write_segments,
    write_times,
)
from tests.corpus.oracle import write_truth
from tests.corpus.transactions import write_interleaved, write_open, write_transactions
from tests.support.kafka_broker import Broker

LARGEST_CORPUS_BYTES = 5_000_000
LARGEST_METADATA_BYTES = 200_000
# Records carry times of 2024: neither retention nor a segment's age may act on them by itself.
PROPERTIES = {"log.retention.ms": "-1", "log.roll.ms": str((1 << 63) - 1)}

PREALLOCATED = {"preallocate": "true", "internal.segment.bytes": "16384"}
# Notes are part of the stored truth and keep their words.
KILLED_NOTE = "several segments, the last with zeros behind its indexes"  # codespell:ignore
PREALLOCATED_NOTE = "zeros behind the active .log"  # codespell:ignore


def make_records(work: Path, out: Path) -> None:
    """Codecs, headers, nulls, batches, times, names, segments, retention, DeleteRecords."""
    with Broker(work, PROPERTIES) as broker:
        client = Client(broker)
        write_codecs(client)
        write_records(client)
        write_batches(client)
        write_times(client)
        write_names(client)
        write_segments(client, broker.log_dirs[0])
        _take(client, out, "records")
    _check_large_batch(out / "records" / "log" / "batches.large-0")


def make_transactions(work: Path, out: Path) -> None:
    """Transactions committed, aborted, fenced, and open at a clean stop."""
    with Broker(work, PROPERTIES) as broker:
        client = Client(broker)
        held = write_transactions(client)
        _take(client, out, "transactions")
        del held


def make_compacted(work: Path, out: Path) -> None:
    """The same compacted topics before a cleaning, after it, and after two more rounds."""
    with Broker(work, PROPERTIES) as broker:
        client = Client(broker)
        held = write_dirty(client)
        _take(client, out, "compacted-before")
        broker.start()
        client.reconnect()
        once = clean(client, broker.log_dirs[0], {})
        _take(client, out, "compacted-after")
        broker.start()
        client.reconnect()
        write_more(client, 100)
        twice = clean(client, broker.log_dirs[0], once)
        write_more(client, 200)
        clean(client, broker.log_dirs[0], twice)
        _take(client, out, "compacted-again")
        del held


def make_jbod(work: Path, out: Path) -> None:
    """One broker over two log dirs."""
    with Broker(work, PROPERTIES, log_dir_names=("log-0", "log-1")) as broker:
        client = Client(broker)
        topic = client.create("spread", "partitions over both log dirs", SMALL_SEGMENTS, 6)
        for partition in range(6):
            for start in range(0, 60, 10):
                batch(client.producer(), topic, numbered(10, start), partition)
        client.delete_records(topic, 0, 15)
        client.delete_records(topic, 1, 25)
        _take(client, out, "jbod")


def make_killed(work: Path, out: Path) -> None:
    """A killed broker: zeros after the indexes and after a preallocated log."""
    with Broker(work, PROPERTIES) as broker:
        client = Client(broker)
        held = write_interleaved(client, "killed.txn", 40)
        held += write_open(client, "killed.open")
        for topic, note, config in (
            ("killed", KILLED_NOTE, {}),
            ("killed.preallocated", PREALLOCATED_NOTE, PREALLOCATED),
            ("killed.trimmed", "DeleteRecords before the kill", {"file.delete.delay.ms": "0"}),
        ):
            client.create(topic, note, {**SMALL_SEGMENTS, **config})
            for start in range(0, 100, 10):
                batch(client.producer(), topic, numbered(10, start))
        client.delete_records("killed.trimmed", 0, 55)
        _take(client, out, "killed", kill=True)
        broker.start()
        client.reconnect()
        _check_recovered(client, out / "truth", work / "recovered")
        del held


def _take(client: Client, out: Path, scene: str, *, kill: bool = False) -> None:
    """Write the truth, end the broker, copy its log dirs."""
    started = time.monotonic()
    time.sleep(
        2
    )  # longer than the period of every checkpoint and check of tests/support/kafka_broker.py
    count = write_truth(client, out / "truth", scene, "killed" if kill else "clean")
    broker = client.broker
    if kill:
        broker.kill()
    else:
        broker.stop()
    for log_dir in broker.log_dirs:
        copy = out / scene / log_dir.name
        shutil.copytree(log_dir, copy)
        metadata = copy / "__cluster_metadata-0"
        if metadata.exists() and _size(metadata) > LARGEST_METADATA_BYTES:
            shutil.rmtree(metadata)
    seconds = time.monotonic() - started
    sys.stdout.write(f"{scene}: {count} records, {_size(out / scene)} bytes, {seconds:.1f} s\n")


def _check_recovered(client: Client, truth: Path, again: Path) -> None:
    """Raise an error if the broker's own recovery changes what consumers read."""
    write_truth(client, again, "killed", "killed")
    for name in ("killed.jsonl.gz", "killed.json"):
        if (again / name).read_bytes() != (truth / name).read_bytes():
            raise RuntimeError(f"recovery changed {name}")


def _check_large_batch(partition: Path) -> None:
    header = (partition / f"{0:020}.log").read_bytes()[:61]
    (count,) = struct.unpack_from(">i", header, 57)
    if count != LARGE_BATCH_RECORDS:
        raise RuntimeError(f"the large batch has {count} records")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _check(out: Path, work: Path) -> None:
    if _size(out) > LARGEST_CORPUS_BYTES:
        raise RuntimeError(f"the corpus has {_size(out)} bytes, over {LARGEST_CORPUS_BYTES}")
    for path in out.rglob("*"):
        if path.is_file() and str(work).encode() in path.read_bytes():
            raise RuntimeError(f"{path} names the temporary folder")


def main() -> None:
    """Make every scene in a temporary folder, check the whole, then put it in place."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="corpus-") as temporary:
        work, out = Path(temporary) / "work", Path(temporary) / "out"
        make_records(work / "records", out)
        make_transactions(work / "transactions", out)
        make_compacted(work / "compacted", out)
        make_jbod(work / "jbod", out)
        make_killed(work / "killed", out)
        _check(out, Path(temporary))
        shutil.rmtree(ROOT, ignore_errors=True)
        shutil.copytree(out, ROOT)
    sys.stdout.write(f"{_size(ROOT)} bytes in {time.monotonic() - started:.0f} s\n")


if __name__ == "__main__":
    main()
