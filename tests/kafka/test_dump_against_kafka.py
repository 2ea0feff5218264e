"""`klog dump` against Kafka's own tool, line by line, over files of a broker and of tests.

The rule: both read the same files, and their lines are equal except for what `lines` and
`error_lines` remove: blanks at the end of a line, the number of replacement characters for a run of
bytes outside UTF-8, and on stderr the order of the messages and a colon. A test says where klog
differs on purpose.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from klog.logformat.internal_topics import internal_records as topics
from klog.logformat.protocol.message_schema import Array, Field, Fields, Schema
from tests.corpus import SCENES, scene
from tests.golden import ROOT as GOLDEN
from tests.logformat.golden_vectors import BATCHES, COMPRESSED, CONTROLS
from tests.support.batch_bytes import (
    GZIP,
    LOG_APPEND_TIME,
    ZSTD,
    Record,
    batch,
    control,
    marker,
    plain,
    transactional,
)
from tests.support.kafka_broker import kafka_process
from tests.support.klog_command import CommandResult, Klog

pytestmark = pytest.mark.kafka

TOOL = "kafka.tools.DumpLogSegments"
KINDS = ("log", "index", "timeindex", "txnindex", "snapshot")
OLDER = ("v0", "v1", "mixed")
OLDER_LOGS = [
    path
    for path in sorted((GOLDEN / "broker-2.8.2" / "log").rglob("*.log"))
    if path.parent.name.startswith(OLDER)
]
PREALLOCATED = "killed.preallocated-0"
"""Its log ends in zeros: Kafka's tool ends there with an exception."""


def corpus(*kinds: str) -> list[Path]:
    paths = [
        path
        for name in SCENES
        for log_dir in scene(name).log_dirs
        for path in sorted(log_dir.rglob("*"))
        if path.is_file() and path.suffix.removeprefix(".") in kinds
    ]
    return [path for path in paths if not (PREALLOCATED in str(path) and path.suffix == ".log")]


def kafka_dump(files: list[Path], *flags: str) -> CommandResult:
    done = kafka_process(TOOL, "--files", ",".join(map(str, files)), *flags)
    return CommandResult(done.returncode, done.stdout, done.stderr.decode())


def klog_dump(klog: Klog, files: list[Path], *flags: str) -> CommandResult:
    return klog("dump", "--files", ",".join(map(str, files)), *flags)


def lines(result: CommandResult) -> list[str]:
    text = result.out.decode(errors="replace")
    return [re.sub("\N{REPLACEMENT CHARACTER}+", "?", line).rstrip() for line in text.split("\n")]


def error_lines(result: CommandResult) -> list[str]:
    return sorted(line.strip().replace(" in :", " in ") for line in result.err.splitlines())


def check_same(klog: Klog, files: list[Path], *flags: str) -> None:
    theirs, mine = kafka_dump(files, *flags), klog_dump(klog, files, *flags)
    assert theirs.code == 0, theirs.err
    assert lines(mine) == lines(theirs)
    assert error_lines(mine) == error_lines(theirs)


@pytest.mark.parametrize("flags", [[], ["--deep-iteration"], ["--max-bytes", "1000"]])
def test_every_log_of_the_corpus(klog: Klog, flags: list[str]) -> None:
    check_same(klog, corpus("log", "checkpoint"), *flags)


@pytest.mark.parametrize("flags", [[], ["--deep-iteration"], ["--print-data-log"]])
def test_logs_of_older_formats(klog: Klog, flags: list[str]) -> None:
    """Those that a broker of 2.8.2 wrote: v0, v1, and mixed with v2."""
    check_same(klog, OLDER_LOGS, *flags)


def test_indexes_of_older_formats(klog: Klog) -> None:
    """Kafka's tool finds fault with entries of appends that hold more than one batch."""
    files = [path.with_suffix(".index") for path in OLDER_LOGS]
    theirs, mine = kafka_dump(files), klog_dump(klog, files)
    assert (theirs.code, lines(mine)) == (0, lines(theirs))
    faults = [line for line in error_lines(theirs) if not line.startswith("Mismatches")]
    assert "Index offset: 97, log offset: 91" in faults
    assert all(line.startswith("Index offset: ") for line in faults)
    assert (mine.code, mine.err) == (0, "")


@pytest.mark.parametrize("flags", [[], ["--skip-record-metadata"]])
def test_records_of_the_corpus(klog: Klog, flags: list[str]) -> None:
    files = [path for path in corpus("log") if "nulls" in str(path) or "txn" in str(path)]
    files += [path for path in corpus("log") if "headers" in str(path) or "codecs" in str(path)]
    theirs, mine = (
        kafka_dump(files, "--print-data-log", *flags),
        klog_dump(klog, files, "--print-data-log", *flags),
    )
    # Kafka's tool prints an empty line for a record with nothing to show, and no bar before a
    # payload without a key.
    expected = [re.sub("^ payload: ", "| payload: ", line) for line in _unstripped(theirs)]
    assert [line for line in lines(mine) if line] == [
        line.rstrip() for line in expected if line.strip()
    ]
    assert error_lines(mine) == error_lines(theirs)


def _unstripped(result: CommandResult) -> list[str]:
    text = re.sub("\N{REPLACEMENT CHARACTER}+", "?", result.out.decode(errors="replace"))
    return text.split("\n")


def test_the_transaction_log_of_the_corpus(klog: Klog) -> None:
    files = [path for path in corpus("log") if "__transaction_state" in str(path)]
    check_same(klog, files, "--transaction-log-decoder")


def test_indexes_and_snapshots_of_the_corpus(klog: Klog) -> None:
    files = [path for path in corpus(*KINDS[1:]) if "killed/" not in str(path)]
    theirs, mine = kafka_dump(files), klog_dump(klog, files)
    assert lines(mine) == lines(theirs)
    # klog compares a time index with batch headers; Kafka's tool compares it with the records, and
    # compaction has left batches without records.
    assert {line for line in error_lines(theirs) if "timeindex" not in line} == {
        line for line in error_lines(theirs) if line.endswith("log timestamp: -1")
    }
    assert (mine.code, mine.err) == (0, "")


def test_indexes_of_a_killed_broker(klog: Klog) -> None:
    """Preallocated zeros are not entries; Kafka's tool stops at the first such index."""
    files = [path for path in corpus("index", "timeindex") if "killed/" in str(path)]
    zeros = [path for path in files if not path.read_bytes().strip(b"\0") and path.stat().st_size]
    assert any(kafka_dump([path]).code for path in zeros if path.suffix == ".index")
    whole = [path for path in files if path not in zeros]
    check_same(klog, whole)
    result = klog_dump(klog, zeros)
    assert (result.code, result.err) == (0, "")
    assert not [line for line in lines(result) if line.startswith(("offset:", "timestamp:"))]


def test_sanity_of_the_corpus(klog: Klog) -> None:
    files = [path for path in corpus("index", "timeindex") if "killed/" not in str(path)]
    check_same(klog, files, "--index-sanity-check")


def write_log(directory: Path, *batches: bytes, base_offset: int = 0) -> Path:
    path = directory / f"{base_offset:020}.log"
    path.write_bytes(b"".join(batches))
    return path


def test_batches_of_every_kind(klog: Klog, tmp_path: Path) -> None:
    kinds = [golden.data for golden in BATCHES.values()] + list(COMPRESSED.values())
    kinds += [data for data, _ in CONTROLS.values()]
    records = [Record(i, 1000 - i, b"k", b"v", (("h\u00e9", None),)) for i in range(3)]
    kinds += [
        batch(records, attributes=GZIP | LOG_APPEND_TIME, max_timestamp=7777),
        batch(records, attributes=ZSTD, base_sequence=(1 << 31) - 2, producer_id=1),
        control(5, 337),
    ]
    for number, data in enumerate(kinds):
        directory = tmp_path / str(number)
        directory.mkdir()
        write_log(directory, data)
    check_same(klog, sorted(tmp_path.rglob("*.log")), "--print-data-log")


def test_gaps(klog: Klog, tmp_path: Path) -> None:
    log = write_log(
        tmp_path, plain(3, [b"a", b"b"]), plain(9), transactional(10, 5), marker(15, 5, 1)
    )
    check_same(klog, [log], "--deep-iteration")


def test_a_flipped_bit(klog: Klog, tmp_path: Path) -> None:
    """Kafka's tool prints only `isvalid: false`; klog reports the damage and exits with 1."""
    damaged = bytearray(plain(1))
    damaged[-1] ^= 1
    log = write_log(tmp_path, plain(0), bytes(damaged), plain(2))
    theirs, mine = kafka_dump([log]), klog_dump(klog, [log])
    assert lines(mine) == lines(theirs)
    assert "isvalid: false" in mine.out.decode()
    assert (theirs.err, mine.code) == ("", 1)
    assert mine.err.endswith("position 70: its CRC does not fit\n")


def test_a_torn_tail(klog: Klog, tmp_path: Path) -> None:
    log = write_log(tmp_path, plain(0), plain(1)[:-1])
    theirs, mine = kafka_dump([log]), klog_dump(klog, [log])
    assert lines(mine) == lines(theirs)
    assert "Found 69 invalid bytes at the end" in mine.out.decode()
    assert mine.code == 1


def test_magic_3_is_printed_and_reported(klog: Klog, tmp_path: Path) -> None:
    log = write_log(tmp_path, plain(0), batch([Record(1, 1, b"k", b"v")], magic=3), plain(2))
    theirs, mine = kafka_dump([log], "--print-data-log"), klog_dump(klog, [log], "--print-data-log")
    assert lines(mine) == lines(theirs)
    assert "position 70: magic 3 on a batch of format v2" in mine.err


@pytest.mark.parametrize(
    ("index", "suffix"),
    [
        (struct.pack(">ii", 1, 70), "index"),
        (struct.pack(">iiii", 1, 70, 3, 140), "index"),
        (struct.pack(">qi", 1000, 0), "timeindex"),
        (struct.pack(">qiqi", 1001, 1, 1001, 2), "timeindex"),
        (struct.pack(">qiqi", 1000, 1, 900, 2), "timeindex"),
        (struct.pack(">qi", 1000, 7), "timeindex"),
    ],
)
def test_indexes_that_do_not_fit(klog: Klog, tmp_path: Path, index: bytes, suffix: str) -> None:
    log = write_log(tmp_path, plain(0), plain(1), plain(2))
    log.with_suffix(".index").write_bytes(b"")
    path = log.with_suffix(f".{suffix}")
    path.write_bytes(index)
    theirs, mine = kafka_dump([path]), klog_dump(klog, [path])
    assert lines(mine) == lines(theirs)
    # One heading of Kafka's tool has a full stop where klog names the file.
    assert [line.split(" in ")[0] for line in error_lines(mine)] == [
        line.removesuffix(".").split(" in ")[0] for line in error_lines(theirs)
    ]
    assert mine.code == int(bool(theirs.err))


def versioned(table: Schema, fields: Fields) -> list[bytes]:
    """Write a value in each version, with the fields that the version has."""
    written = []
    for version in range(table.first, table.last + 1):
        kept = _kept(table.fields, version, fields)
        written.append(topics.encode_versioned(table, version, kept))
    return written


def _kept(fields: tuple[Field, ...], version: int, values: Fields) -> Fields:
    kept = {}
    for field in fields:
        if field.since <= version < field.until and field.name in values:
            value = values[field.name]
            if isinstance(field.type, Array) and isinstance(field.type.element, tuple):
                value = value and [_kept(field.type.element, version, element) for element in value]
            kept[field.name] = value
    return kept


OFFSET = {
    "offset": 42,
    "leaderEpoch": 5,
    "metadata": "m\u00e9",
    "commitTimestamp": 1000,
    "expireTimestamp": 2000,
    "topicId": "ASNFZ4mrze_-3LqYdlQyEA",
}
MEMBER = {
    "memberId": "m1",
    "groupInstanceId": None,
    "clientId": "c",
    "clientHost": "/h",
    "rebalanceTimeout": 300000,
    "sessionTimeout": 45000,
    "subscription": b"\x01\x02",
    "assignment": b"",
}
PARTITIONS = [{"topic": "t", "partitions": [0, 2]}]
SUBSCRIBED = {
    "topics": ["t"],
    "userData": None,
    "ownedPartitions": PARTITIONS,
    "generationId": 7,
    "rackId": "r",
}
ASSIGNED = {"assignedPartitions": PARTITIONS, "userData": b"u"}
MEMBERS = [MEMBER] + [
    {**MEMBER, "groupInstanceId": "i", "subscription": subscription, "assignment": assignment}
    for subscription, assignment in zip(
        versioned(topics.SUBSCRIPTION, SUBSCRIBED),
        versioned(topics.ASSIGNMENT, ASSIGNED),
        strict=True,
    )
]
GROUP = {
    "protocolType": "consumer",
    "generation": 1,
    "protocol": "range",
    "leader": "m1",
    "currentStateTimestamp": 1000,
    "members": MEMBERS,
}
CONNECT = {**GROUP, "protocolType": "connect", "protocol": None, "leader": None}
TRANSACTION = {
    "producerId": 4000,
    "producerEpoch": 1,
    "transactionTimeoutMs": 60000,
    "transactionStatus": 1,
    "transactionPartitions": [{"topic": "t", "partitionIds": [0, 2]}],
    "transactionLastUpdateTimestampMs": 1000,
    "transactionStartTimestampMs": 900,
    "previousProducerId": 3999,
    "nextProducerId": 4001,
    "clientTransactionVersion": 2,
    "nextProducerEpoch": 0,
}


def write_records(directory: Path, records: list[tuple[bytes, bytes | None]]) -> Path:
    return write_log(
        directory,
        batch([Record(i, 1000, key, value) for i, (key, value) in enumerate(records)]),
        marker(len(records), 9, 1),
    )


def test_group_records_of_all_versions(klog: Klog, tmp_path: Path) -> None:
    old, new = versioned(topics.OFFSET_COMMIT_KEY, {"group": "g", "topic": "t", "partition": 2})
    (group_key,) = versioned(topics.GROUP_METADATA_KEY, {"group": "g"})
    values = versioned(topics.OFFSET_COMMIT_VALUE, OFFSET)
    # Kafka's tool takes a key of version 0 with a value of version 0 only; klog with any.
    records: list[tuple[bytes, bytes | None]] = [(old, values[0]), (old, None), (new, None)]
    records += [(new, value) for value in values]
    for group in (GROUP, CONNECT):
        records += [(group_key, value) for value in versioned(topics.GROUP_METADATA_VALUE, group)]
    records += [(group_key, None), (struct.pack(">h", 77) + b"?", b"\0\0?")]
    check_same(klog, [write_records(tmp_path, records)], "--offsets-decoder")


def test_transaction_records_of_all_versions(klog: Klog, tmp_path: Path) -> None:
    (key,) = versioned(topics.TRANSACTION_LOG_KEY, {"transactionalId": "t\u00e91"})
    empty = {**TRANSACTION, "transactionStatus": 0, "transactionPartitions": None}
    records: list[tuple[bytes, bytes | None]] = [
        (key, value)
        for state in (TRANSACTION, empty)
        for value in versioned(topics.TRANSACTION_LOG_VALUE, state)
    ]
    check_same(
        klog, [write_records(tmp_path, [*records, (key, None)])], "--transaction-log-decoder"
    )


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-1], id="a byte less"),
        pytest.param(lambda data: data[:5], id="no fields"),
        pytest.param(lambda data: b"\0\x09" + data[2:], id="a newer version"),
    ],
)
def test_values_that_cannot_be_read(
    klog: Klog, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """The metadata are equal; Kafka's tool prints its exception in its own text."""
    (key,) = versioned(topics.GROUP_METADATA_KEY, {"group": "g"})
    value = versioned(topics.GROUP_METADATA_VALUE, GROUP)[-1]
    log = write_records(tmp_path, [(key, damage(value))])
    theirs, mine = (
        kafka_dump([log], "--offsets-decoder"),
        klog_dump(klog, [log], "--offsets-decoder"),
    )
    assert [line.split(" key: ")[0] for line in lines(mine)] == [
        line.split(" key: ")[0] for line in lines(theirs)
    ]
