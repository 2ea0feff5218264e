"""`klog dump` of a log's companion files: indexes, snapshots and checkpoints."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klog.tools import dump_index
from tests import golden
from tests.corpus import SCENES, Scene, scene
from tests.support.batch_bytes import ABORT, COMMIT, marker, plain, transactional
from tests.support.klog_command import Klog
from tests.tools.dumped_files import (
    LOG,
    NAME,
    PLAIN_BYTES,
    SECOND,
    THIRD,
    dump,
    findings,
    objects,
    write_file,
)

INDEXES: list[Any] = [
    ("index", struct.pack(">iiii", 2, SECOND, 3, THIRD), []),
    ("index", struct.pack(">ii", 2, SECOND) + bytes(80), []),
    ("index", bytes(80), []),
    ("index", struct.pack(">ii", 1, SECOND), ["Index offset: 1, log offset: 2"]),
    (
        "index",
        struct.pack(">ii", 2, SECOND + 1),
        [f"Index offset: 2, log offset: -1, no batch begins at position {SECOND + 1}"],
    ),
    (
        "index",
        struct.pack(">iiii", 3, THIRD, 9, 9999),
        ["Index offset: 9, log offset: -1, no batch begins at position 9999"],
    ),
    ("index", struct.pack(">iiii", 3, THIRD, 2, SECOND), []),
    # An append of several batches: the position of the first, the last offset of the last.
    ("index", struct.pack(">ii", 2, 0), []),
    ("index", struct.pack(">iiii", 2, 0, 3, THIRD), []),
    ("index", struct.pack(">iiii", 2, 0, 3, SECOND), ["Index offset: 2, log offset: 0"]),
    ("index", struct.pack(">ii", 1, 0), ["Index offset: 1, log offset: 0"]),
    ("index", struct.pack(">ii", 2, THIRD), ["Index offset: 2, log offset: 3"]),
    ("index", struct.pack(">ii", 4, 0), ["Index offset: 4, log offset: 0"]),
    (
        "index",
        struct.pack(">ii", 2, 1),
        ["Index offset: 2, log offset: -1, no batch begins at position 1"],
    ),
    ("timeindex", struct.pack(">qiqi", 1000, 0, 2001, 2), []),
    ("timeindex", struct.pack(">qi", 2001, 2) + bytes(24), []),
    ("timeindex", bytes(24), []),
    ("timeindex", bytes(12), ["Index timestamp: 0, log timestamp: 1000"]),
    ("timeindex", struct.pack(">qi", 2000, 2), ["Index timestamp: 2000, log timestamp: 2001"]),
    ("timeindex", struct.pack(">qi", 2001, 1), ["Indexed offset: 1, found log offset: 2"]),
    ("timeindex", struct.pack(">qi", 2001, 8), ["Indexed offset: 8, found log offset: -1"]),
    (
        "timeindex",
        struct.pack(">qiqi", 2001, 2, 1500, 3),
        ["Index timestamp: 1500, Previously indexed timestamp: 2001"],
    ),
]


@pytest.mark.parametrize("entries", [1, 1 << 20])
@pytest.mark.parametrize(("suffix", "data", "expected"), INDEXES)
def test_indexes(
    klog: Klog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    data: bytes,
    expected: list[str],
    entries: int,
) -> None:
    write_file(tmp_path, LOG)
    monkeypatch.setattr(dump_index, "ENTRIES", entries)
    result = dump(klog, write_file(tmp_path, data, suffix), flags=("--json",))
    assert [text for _, text in findings(result)] == expected
    assert result.code == int(bool(expected))
    quiet = dump(klog, tmp_path / f"{NAME}.{suffix}", flags=("--verify-index-only",))
    assert quiet.code == result.code
    assert b"offset:" not in quiet.out


def test_index_entries(klog: Klog, tmp_path: Path) -> None:
    name = f"{100:020}"
    write_file(tmp_path, plain(100) + plain(105), name=name)
    index = write_file(tmp_path, struct.pack(">ii", 5, PLAIN_BYTES), "index", name)
    times = write_file(tmp_path, struct.pack(">qi", 1000, 5), "timeindex", name)
    result = dump(klog, index, times)
    assert result.out.decode().splitlines() == [
        f"Dumping {index}",
        "offset: 105 position: 70",
        f"Dumping {times}",
        "timestamp: 1000 offset: 105",
    ]
    large = dump(klog, index, flags=("--max-message-size", "69"))
    assert (large.code, large.err.splitlines()[1]) == (1, "  a batch of 70 bytes at position 70")
    assert dump(klog, index, flags=("--max-message-size", "70")).code == 0


SANITY = [
    ("index", b"", "is empty."),
    ("index", struct.pack(">ii", 2, SECOND), "passed sanity check."),
    ("index", struct.pack(">ii", -1, SECOND), "the offset index is below base offset 10"),
    ("index", struct.pack(">ii", 2, SECOND) + b"\0", "index of 9 bytes is not a multiple of 8"),
    ("timeindex", struct.pack(">qiqi", 5, 1, 5, 2), "passed sanity check."),
    ("timeindex", struct.pack(">qiqi", 5, 1, 4, 2), "of the time index is below the first, 5"),
    ("timeindex", struct.pack(">qi", 5, -1), "the time index is below base offset 10"),
    ("timeindex", b"\0", "index of 1 bytes is not a multiple of 12"),
    ("txnindex", struct.pack(">hqqqq", 0, 1, 10, 12, 13), "passed sanity check."),
    ("txnindex", struct.pack(">hqqqq", 0, 1, 3, 9, 10), "marker below base offset 10"),
    ("txnindex", struct.pack(">hqqqq", 1, 1, 10, 12, 13), "of another version than 0"),
    ("txnindex", struct.pack(">hqqqq", 0, 1, 10, 12, 13) * 2, "last offsets do not rise"),
    ("txnindex", b"\0", "index of 1 bytes is not a multiple of 34"),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "data", "expected"), SANITY)
def test_sanity(klog: Klog, tmp_path: Path, suffix: str, data: bytes, expected: str) -> None:
    name = f"{10:020}"
    write_file(tmp_path, b"", name=name)
    result = dump(klog, write_file(tmp_path, data, suffix, name), flags=("--index-sanity-check",))
    fine = expected.endswith((".", "empty."))
    assert result.code == int(not fine)
    assert expected in (result.out.decode() if fine else result.err)


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_an_index_too_large_to_be_read(
    klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(dump_index, "MAX_BYTES", 100)
    result = dump(klog, write_file(tmp_path, bytes(101), suffix))
    assert result.code == 1
    assert "it has 101 bytes, the limit is 100, and" in result.err


TRANSACTIONS = [
    transactional(0, 5),
    transactional(1, 6),
    marker(2, 5, ABORT),
    transactional(3, 5),
    marker(4, 6, COMMIT),
    marker(5, 5, ABORT),
    marker(6, 7, ABORT),
]
ENTRIES = [(0, 5, 0, 2, 1), (0, 5, 3, 5, 6)]
ABORTS: list[Any] = [
    (ENTRIES, []),
    (ENTRIES[:1], ["marker 5: ABORT of producer 5 with data from 3 has no entry"]),
    ([*ENTRIES, (0, 7, 6, 6, 7)], []),
    ([*ENTRIES, (0, 7, 6, 9, 7)], ["marker 9: producer 7 has no ABORT marker there"]),
    ([*ENTRIES[:1], (0, 5, 4, 5, 6)], ["marker 5: first offset 4, the data begin at 3"]),
    ([(0, 5, 0, 2, 2), ENTRIES[1]], ["marker 2: last stable offset 2, it was 1"]),
    (
        [(0, 6, 0, 2, 1), ENTRIES[1]],
        [
            "marker 2: ABORT of producer 5 with data from 0 has no entry",
            "marker 2: producer 6 has no ABORT marker there",
        ],
    ),
    (
        [*ENTRIES[:1], (0, 6, 1, 4, 5), ENTRIES[1]],
        ["marker 4: producer 6 has no ABORT marker there"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "expected"), ABORTS)
def test_transaction_indexes(
    klog: Klog, tmp_path: Path, entries: list[tuple[int, ...]], expected: list[str]
) -> None:
    write_file(tmp_path, b"".join(TRANSACTIONS))
    data = b"".join(struct.pack(">hqqqq", *entry) for entry in entries)
    result = dump(klog, write_file(tmp_path, data, "txnindex"), flags=("--json",))
    assert [text for _, text in findings(result)] == expected
    assert result.code == int(bool(expected))
    rows = [line for line in objects(result) if line["kind"] == "abortedTransaction"]
    assert [tuple(row.values())[1:] for row in rows] == entries


def test_an_index_without_its_log(klog: Klog, tmp_path: Path) -> None:
    for suffix, data in (("index", b"\0\0\0\2\0\0\0F"), ("timeindex", b""), ("txnindex", b"")):
        result = dump(klog, write_file(tmp_path, data, suffix))
        assert result.code == 1
        assert "no .log of this name" in result.err


BROKERS = [pytest.param(scene, name, id=name) for name in SCENES]
BROKERS += [pytest.param(golden.scene, version, id=version) for version in golden.VERSIONS]


@pytest.mark.parametrize(("place", "name"), BROKERS)
def test_a_brokers_files_fit_together(klog: Klog, place: Callable[[str], Scene], name: str) -> None:
    for log_dir in place(name).log_dirs:
        files = [
            path
            for path in sorted(log_dir.rglob("*"))
            if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
            and "preallocated" not in str(path)
        ]
        result = dump(klog, *files, flags=("--verify-index-only",))
        assert (result.code, result.err) == (0, "")


def test_many_findings_are_counted(klog: Klog, tmp_path: Path) -> None:
    data = b"".join(struct.pack(">ii", 9, 9999 + i) for i in range(1500))
    write_file(tmp_path, LOG)
    result = dump(klog, write_file(tmp_path, data, "index"), flags=("--verify-index-only",))
    assert result.err.count("\n") == 1002
    assert result.err.endswith("  and 500 more\n")


def test_checkpoints_and_text_files(klog: Klog, tmp_path: Path) -> None:
    files = {
        "leader-epoch-checkpoint": b"0\n2\n0 0\n3 120\n",
        "log-start-offset-checkpoint": b"0\n2\nmy-topic 0 120\nt.x 11 0\n",
        "cleaner-offset-checkpoint": b"",
        "partition.metadata": b"version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA",
        "meta.properties": b"#\n#date\nnode.id=1\nversion=1\ncluster.id=k=x\n",
        ".kafka_cleanshutdown": b'{"version":0,"brokerEpoch":7}',
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    result = dump(klog, *(tmp_path / name for name in files))
    assert (result.code, result.err) == (0, "")
    lines = [line for line in result.out.decode().splitlines() if not line.startswith("Dumping")]
    assert lines == [
        "epoch: 0 startOffset: 0",
        "epoch: 3 startOffset: 120",
        "topic: my-topic partition: 0 offset: 120",
        "topic: t.x partition: 11 offset: 0",
        "topic_id: ASNFZ4mrze_-3LqYdlQyEA",
        "node.id: 1 version: 1 cluster.id: k=x",
        "brokerEpoch: 7",
    ]
    for name in files:
        (tmp_path / name).write_bytes(b"1\n1\nx\n")
        assert dump(klog, tmp_path / name).code == 1


@pytest.mark.parametrize(
    ("version", "epochs"), [("2.8.2", 0), ("3.9.1", 1), ("4.2.0", 1)], ids=golden.VERSIONS
)
def test_clean_shutdown_files(klog: Klog, version: str, epochs: int) -> None:
    """Older brokers leave an empty file, which is valid."""
    (log_dir,) = golden.scene(version).log_dirs
    result = dump(klog, log_dir / ".kafka_cleanshutdown")
    assert (result.code, result.err) == (0, "")
    assert result.out.count(b"brokerEpoch: ") == epochs


def test_snapshots(klog: Klog, tmp_path: Path) -> None:
    two = (  # docs/format.md, 10
        "0001d9c5aebe000000020000000000000fa0000300000013000000000000006d0000000200000000000004d2"
        "0000000900000000000000690000000000000fa10007ffffffffffffffffffffffff0000000000000000000005"
        "dc00000005ffffffffffffffff"
    )
    result = dump(klog, write_file(tmp_path, bytes.fromhex(two), "snapshot"))
    assert result.out.decode().splitlines()[1:] == [
        "producerId: 4000 producerEpoch: 3 coordinatorEpoch: 9 currentTxnFirstOffset: "
        "OptionalLong[105] lastTimestamp: 1234 firstSequence: 17 lastSequence: 19 lastOffset: 109 "
        "offsetDelta: 2 timestamp: 1234",
        "producerId: 4001 producerEpoch: 7 coordinatorEpoch: 5 currentTxnFirstOffset: "
        "OptionalLong.empty lastTimestamp: 1500",
    ]
    damaged = dump(klog, write_file(tmp_path, bytes.fromhex(two)[:-1], "snapshot"))
    assert (damaged.code, damaged.err.split(" in ")[0]) == (1, "Damaged snapshot")
