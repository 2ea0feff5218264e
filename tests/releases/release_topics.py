"""The topics of an archive's root: each writes other things to storage.

The rule: a docstring says what each topic is for. Timestamps are fixed, old ones or ones of the
year 2099, so that results do not depend on the clock. Topics that jobs rewrite are not compressed,
so that their sizes do not depend on a codec's library.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import klog
from tests.releases.command import done

OLD_MS = 1_600_000_000_000
LATE_MS = 4_070_908_800_000
CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
KEPT = {"retention.ms": "-1"}
PLAIN = {**KEPT, "compression.type": "uncompressed"}
LOADER = "loader"
"""The transactional id of the writer of topics with many commits."""
WIDE = f"wide.{'e' * 200}"
"""Its name is long, so that a commit over all its partitions is larger than 1 MiB."""
WIDE_PARTITIONS = 1800
WIDE_KEPT = 10
"""The number of partitions of the wide topic that keep their segment."""
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

Row = tuple[bytes | None, bytes | None]


def table(
    rows: list[Row],
    partitions: list[int] | int = 0,
    time_ms: int = OLD_MS,
    headers: list[Any] | None = None,
) -> pa.Table:
    """Return rows for a write, a millisecond apart."""
    numbers = [partitions] * len(rows) if isinstance(partitions, int) else partitions
    times = [time_ms + number for number in range(len(rows))]
    return pa.table(
        {
            "key": pa.array([key for key, _ in rows], pa.binary()),
            "value": pa.array([value for _, value in rows], pa.binary()),
            "headers": pa.array(headers or [None] * len(rows), HEADERS),
            "partition": pa.array(numbers, pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
        }
    )


def numbered(first: int, count: int) -> list[Row]:
    """Return rows with their number as the value, and one of three keys."""
    return [(b"k%d" % (n % 3), b"v%d" % n) for n in range(first, first + count)]


def write_topics(root: Path) -> None:
    """Create the root and its topics."""
    log = klog.open(root)
    _codecs(log)
    _indexed(log)
    _append_time(log)
    _altered(log)
    _deleted(log, root)
    many(log, root, "many", 125)
    _compacted_among_many(log, root)
    _cleaned(log, root)
    _compacted(log, root)
    _merged(log, root)
    _retained(log, root)
    _trimmed(log, root)
    _shifted(log, root)
    _named(log, root)


def write_wide(root: Path) -> None:
    """Create a root with a topic whose append has enough segments for a sidecar.

    Most of the segments are deleted afterwards, so that an archive has few files.
    """
    log = klog.open(root)
    log.create_topic(WIDE, WIDE_PARTITIONS, PLAIN)
    partitions = list(range(WIDE_PARTITIONS))
    log.append(WIDE, table([(None, b"%d" % partition) for partition in partitions], partitions))
    log.append(WIDE, table([(None, b"again")], 7))
    starts = root.with_name("starts.json")
    rows = [
        {"topic": WIDE, "partition": partition, "offset": 1} for partition in partitions[WIDE_KEPT:]
    ]
    starts.write_text(json.dumps({"partitions": rows, "version": 1}))
    done("delete-records", "--root", str(root), "--offset-json-file", str(starts))
    done("vacuum", "--root", str(root), "--grace", "0s", "--execute")
    starts.unlink()
    for path in root.glob(f"{WIDE}-*"):
        if not list(path.iterdir()):
            path.rmdir()


def _codecs(log: Any) -> None:
    """Write keys, values and headers that are null, empty, binary or not ASCII, in each codec."""
    log.create_topic("codecs", 3, KEPT)
    rows: list[Row] = [
        (b"key", b"value"),
        (None, b"no key"),
        (b"", b""),
        (b"tombstone", None),
        (None, None),
        ("Schlüssel".encode(), b"\xff\xfe\x00"),
        (b"\x80", "ключ".encode()),
    ]
    headers = [
        None,
        [],
        [{"key": "one", "value": b"1"}],
        [{"key": "null", "value": None}, {"key": "", "value": b""}],
        [{"key": "twice", "value": b"1"}, {"key": "twice", "value": b"\xff"}],
        [{"key": "ключ", "value": "значение".encode()}],
        None,
    ]
    for number, codec in enumerate(CODECS):
        rows_of_codec = table(rows, [0, 1, 2, 0, 1, 2, 0], OLD_MS + 100 * number, headers)
        log.append("codecs", rows_of_codec, options={"compression.type": codec})
    log.append("codecs", table([(b"1970", b"")], 2, 0))


def _indexed(log: Any) -> None:
    """Write a segment that is large enough for indexes, and one that rolls."""
    log.create_topic("indexed", 1, {**PLAIN, "segment.bytes": "120000"})
    rows: list[Row] = [(b"%d" % n, b"x" * 1000) for n in range(200)]
    log.append("indexed", table(rows), options={"batch.size": "8000"})


def _append_time(log: Any) -> None:
    """Write records with timestamps of the type LogAppendTime."""
    log.create_topic("append-time", 1, {**KEPT, "message.timestamp.type": "LogAppendTime"})
    log.append("append-time", table(numbered(0, 3)))


def _altered(log: Any) -> None:
    """Set configs, change and unset them; use the default number of partitions, and add some."""
    log.create_topic("altered", config={**KEPT, "compression.type": "gzip"})
    log.append("altered", table(numbered(0, 4)))
    change = {"compression.type": "lz4", "max.message.bytes": "2000000", "segment.ms": "3600000"}
    log.alter_config("altered", change)
    log.append("altered", table(numbered(4, 4)))
    log.alter_config("altered", {"segment.ms": "7200000"}, unset=["max.message.bytes"])
    log.add_partitions("altered", 4)
    log.append("altered", table(numbered(8, 8), [0, 1, 2, 3] * 2))


def _deleted(log: Any, root: Path) -> None:
    """Delete a topic with its files, and delete and create another one."""
    for topic in ("deleted", "again"):
        log.create_topic(topic, 2, KEPT)
        log.append(topic, table(numbered(0, 4), [0, 1] * 2))
        log.delete_topic(topic)
    vacuum = ("vacuum", "--root", str(root), "--topic", "deleted", "--grace", "0s")
    for _ in range(2):  # The second one purges what the first one deleted.
        done(*vacuum, "--execute")
    log.create_topic("again", 3, KEPT)
    log.append("again", table(numbered(100, 3), [0, 1, 2]))


def many(log: Any, root: Path, topic: str, count: int) -> None:
    """Append named batches until a checkpoint is due, and wait for it."""
    log.create_topic(topic, 1, PLAIN)
    for number in range(count):
        rows = table(numbered(number, 1), 0, OLD_MS + number)
        log.append(topic, rows, transactional_id=LOADER, transaction_version=number)
    wait_for_checkpoint(root, topic)


def wait_for_checkpoint(root: Path, topic: str, count: int = 1) -> None:
    """Wait until a topic has `count` checkpoints: a thread writes them."""
    folder = root / "_klog" / "topics" / topic / "checkpoints"
    deadline = time.monotonic() + 60
    while len(list(folder.glob("*.parquet"))) < count:
        assert time.monotonic() < deadline, f"{topic} has no {count} checkpoints"
        time.sleep(0.01)


def _cleaned(log: Any, root: Path) -> None:
    """Let vacuum expire commits that a checkpoint covers."""
    many(log, root, "cleaned", 110)
    vacuum = ("vacuum", "--root", str(root), "--topic", "cleaned", "--execute")
    done(*vacuum, "--grace", "0s", "--log-retention", "0s")
    log.append("cleaned", table(numbered(110, 3)))


def _compacted(log: Any, root: Path) -> None:
    """Compact a topic with tombstones, and append to it."""
    config = {**PLAIN, "cleanup.policy": "compact", "delete.retention.ms": str(10**15)}
    log.create_topic("compacted", 2, config)
    for number in range(6):
        log.append("compacted", table(numbered(10 * number, 10), [0, 1] * 5))
    log.append("compacted", table([(b"k0", None), (b"gone", None)]))
    done("compact", "--root", str(root), "--topic", "compacted", "--min-dirty-ratio", "0")
    log.append("compacted", table(numbered(60, 20), [0, 1] * 10))


def _compacted_among_many(log: Any, root: Path) -> None:
    """Write a checkpoint of a topic that was compacted before."""
    config = {**PLAIN, "cleanup.policy": "compact,delete"}
    log.create_topic("compacted-many", 1, config)
    for number in range(110):
        log.append("compacted-many", table(numbered(number, 1), 0, OLD_MS + number))
        if number == 50:
            compact = ("compact", "--root", str(root), "--topic", "compacted-many")
            done(*compact, "--min-dirty-ratio", "0")
    wait_for_checkpoint(root, "compacted-many")


def _merged(log: Any, root: Path) -> None:
    """Merge small segments, and append more of them."""
    log.create_topic("merged", 2, PLAIN)
    for number in range(12):
        log.append("merged", table(numbered(number, 2), [0, 1]))
    done("merge", "--root", str(root), "--topic", "merged")
    for number in range(12, 18):
        log.append("merged", table(numbered(number, 2), [0, 1]))


def _retained(log: Any, root: Path) -> None:
    """Delete segments by time; then set a config that deletes others by size."""
    config = {
        "retention.ms": "86400000",
        "compression.type": "uncompressed",
        "message.timestamp.after.max.ms": str(10**15),
    }
    log.create_topic("retained", 1, config)
    for number in range(3):
        log.append("retained", table(numbered(number, 1)))
    for number in range(3, 8):
        log.append("retained", table(numbered(number, 1), 0, LATE_MS))
    done("retain", "--root", str(root), "--topic", "retained")
    log.alter_config("retained", {"retention.bytes": "200"})


def _trimmed(log: Any, root: Path) -> None:
    """Delete records up to the middle of a batch, and up to the end of a partition."""
    log.create_topic("trimmed", 2, PLAIN)
    log.append("trimmed", table(numbered(0, 20), [0, 1] * 10))
    log.append("trimmed", table(numbered(20, 20), [0, 1] * 10))
    for partition, offset in ((0, 7), (1, -1)):
        position = ("--partition", str(partition), "--offset", str(offset))
        done("delete-records", "--root", str(root), "--topic", "trimmed", *position)


def _shifted(log: Any, root: Path) -> None:
    """Write commits with shifted offsets: another writer commits during a write."""
    log.create_topic("shifted", 1, PLAIN)
    for number in range(3):
        log.append("shifted", _rows_during_another_append(root, number))


def _rows_during_another_append(root: Path, number: int) -> Iterator[pa.RecordBatch]:
    """Yield rows; another writer appends to the same partition before the last of them."""
    yield from table(numbered(10 * number, 2)).to_batches()
    klog.open(root).append("shifted", table([(b"other", b"%d" % number)]))
    yield from table(numbered(10 * number + 2, 2)).to_batches()


def _named(log: Any, root: Path) -> None:
    """Write named batches of several writers; one of them writes lines."""
    log.create_topic("named", 2, PLAIN)
    for version in range(3):
        for writer in ("one", "two"):
            rows = table(numbered(version, 2), [0, 1])
            log.append("named", rows, transactional_id=writer, transaction_version=version)
    lines = root.with_name("lines.txt")
    lines.write_text("a\tone\nb\ttwo\nthree\n")
    done(
        *("produce", "--root", str(root), "--topic", "named", "--file", str(lines)),
        *("--transactional-id", "lines", "--transaction-version", "5"),
        *("--reader-property", "parse.key=true", "--reader-property", "ignore.error=true"),
    )
    lines.unlink()
