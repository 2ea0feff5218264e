"""`klog dump`: output, findings and exit codes.

Kafka's own tool (4.2.0) printed the lines of the golden directory;
`tests/kafka/test_dump_against_kafka.py` compares the rest with that tool.
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klog.connector.segment_chunks import Chunk
from klog.connector.store.local_store import LocalFile
from klog.tools import dump_walk
from tests.logformat.golden_vectors import DIRECTORY
from tests.support.batch_bytes import (
    COMMIT,
    GZIP,
    Record,
    batch,
    control,
    marker,
    plain,
)
from tests.support.klog_command import Klog
from tests.tools.dumped_files import (
    NAME,
    PLAIN_BYTES,
    dump,
    findings,
    objects,
    write_file,
)

GOLDEN = """\
baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 \
producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false \
deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1001 size: 79 magic: 2 \
compresscodec: none crc: 336280069 isvalid: true
| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [] key: a payload: 1
| offset: 1 CreateTime: 1001 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [] key: b payload: 2
baseOffset: 2 lastOffset: 2 count: 1 baseSequence: 0 lastSequence: 0 producerId: 10 \
producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: true isControl: false \
deleteHorizonMs: OptionalLong.empty position: 79 CreateTime: 1002 size: 70 magic: 2 \
compresscodec: none crc: 3427197727 isvalid: true
| offset: 2 CreateTime: 1002 keySize: 1 valueSize: 1 sequence: 0 headerKeys: [] key: c payload: 3
"""
GOLDEN_MARKER = """\
| offset: 5 CreateTime: 1005 keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] \
endTxnMarker: ABORT coordinatorEpoch: 7
"""


def test_golden_directory(klog: Klog, tmp_path: Path) -> None:
    log = write_file(tmp_path, b"".join(DIRECTORY))
    result = dump(klog, log, flags=("--print-data-log",))
    assert (result.code, result.err) == (0, "")
    assert result.out.decode().startswith(f"Dumping {log}\nLog starting offset: 0\n{GOLDEN}")
    assert GOLDEN_MARKER in result.out.decode()
    shallow = dump(klog, log).out.decode().splitlines()
    assert shallow[2:4] == [line for line in GOLDEN.splitlines() if not line.startswith("|")]
    assert len(shallow) == 2 + len(DIRECTORY)


def test_deep_iteration_without_content(klog: Klog, tmp_path: Path) -> None:
    log = write_file(tmp_path, plain(0, [b"secret"]))
    deep = dump(klog, log, flags=("--deep-iteration",)).out.decode()
    assert deep.endswith("| offset: 0 CreateTime: 1000 keySize: 1 valueSize: 6 sequence: -1 headerKeys: []\n")  # fmt: skip # noqa: E501
    skipped = ("--print-data-log", "--skip-record-metadata")
    assert dump(klog, log, flags=skipped).out.decode().endswith("\n| key: k payload: secret\n")


def test_json(klog: Klog, tmp_path: Path) -> None:
    records = [Record(0, 5, b"\xff", None, (("h", b"1"),))]
    log = write_file(tmp_path, batch(records) + marker(1, 9, COMMIT) + control(2, 337))
    result = objects(dump(klog, log, flags=("--print-data-log", "--json")))
    assert [line["kind"] for line in result] == ["file", "start"] + ["batch", "record"] * 3
    assert result[2]["deleteHorizonMs"] is None
    assert (result[2]["timestampType"], result[2]["maxTimestamp"]) == ("CreateTime", 5)
    assert result[3] == {
        "kind": "record",
        "offset": 0,
        "timestampType": "CreateTime",
        "timestamp": 5,
        "keySize": 1,
        "valueSize": -1,
        "sequence": -1,
        "headerKeys": ["h"],
        "key": {"base64": "/w=="},
    }
    assert (result[5]["controlType"], result[5]["coordinatorEpoch"]) == ("COMMIT", 0)
    assert (result[7]["controlType"], result[7]["controlTypeId"]) == ("UNKNOWN", 337)


def test_batches_decoded_together_and_alone_are_the_same(klog: Klog, tmp_path: Path) -> None:
    whole = plain(0) + plain(1) + batch([Record(2, 1, b"k", b"v")], attributes=GZIP) + plain(3)
    log = write_file(tmp_path, whole + plain(4, [b"x", b"y"]) + batch([], base_offset=7))
    result = dump(klog, log, flags=("--deep-iteration", "--json"))
    kinds = [line["kind"] for line in objects(result)][2:]
    assert kinds == ["batch", "record"] * 4 + ["batch", "record", "record", "batch"]
    offsets = [line["offset"] for line in objects(result) if line["kind"] == "record"]
    assert offsets == list(range(6))


def flipped(data: bytes) -> bytes:
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


DAMAGED_LOGS = [
    pytest.param(
        flipped(plain(1)), [("Corrupt batches", "position 70: its CRC does not fit")], id="bit"
    ),
    pytest.param(
        batch([Record(1, 1)], magic=3),
        [("Corrupt batches", "position 70: magic 3 on a batch of format v2")],
        id="magic",
    ),
    pytest.param(
        plain(0),
        [("Corrupt batches", "position 70: batch at offset 0 after offset 0")],
        id="offsets that do not rise",
    ),
    pytest.param(
        batch([Record(1, 1)], count=3, last_offset_delta=2),
        [("Corrupt batches", "position 70: its records cannot be read: 3 records in 7 bytes")],
        id="count",
    ),
    pytest.param(
        batch([Record(1, 1)], count=-3),
        [("Corrupt batches", "position 70: batch of -3 records at offset 1 and 0 more"),
         ("Corrupt batches", "position 70: its records cannot be read: a batch of -3 records")],
        id="negative count",
    ),
    pytest.param(
        batch([Record(1, 1)], attributes=5, payload=b"x"),
        [("Corrupt batches", "position 70: its compression codec does not exist"),
         ("Corrupt batches", "position 70: its records cannot be read: compression codec 5 does"
          " not exist")],
        id="codec",
    ),
    pytest.param(
        control(1, COMMIT, value=b"\0"),
        [("Records that cannot be decoded", "offset 1: a transaction marker with a value of 1"
          " bytes")],
        id="marker",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("damaged", "expected"), DAMAGED_LOGS)
def test_damage_is_reported_and_the_walk_goes_on(
    klog: Klog, tmp_path: Path, damaged: bytes, expected: list[tuple[str, str]]
) -> None:
    log = write_file(tmp_path, plain(0) + damaged + plain(5))
    result = dump(klog, log, flags=("--deep-iteration", "--json"))
    assert result.code == 1
    assert findings(result) == expected
    assert [line["position"] for line in objects(result) if line["kind"] == "batch"] == [
        0,
        PLAIN_BYTES,
        PLAIN_BYTES + len(damaged),
    ]
    text = dump(klog, log, flags=("--deep-iteration",))
    assert text.code == 1
    assert all(f"  {line}\n" in text.err for _, line in expected)


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (plain(1)[:-1], 1),
        (bytes(100), 1),
        (bytes(10), 1),
        (struct.pack(">qiib", 1, 9, 0, 2) + bytes(100), 2),
    ],
)
def test_bytes_after_the_last_batch(klog: Klog, tmp_path: Path, tail: bytes, expected: int) -> None:
    result = dump(klog, write_file(tmp_path, plain(0) + tail), flags=("--json",))
    assert result.code == 1
    assert len(findings(result)) == expected
    assert findings(result)[-1] == (
        "Invalid bytes at the end",
        f"{len(tail)} from position {PLAIN_BYTES} on",
    )
    text = dump(klog, write_file(tmp_path, plain(0) + tail)).out.decode()
    assert text.endswith(f"Found {len(tail)} invalid bytes at the end of {NAME}.log\n")


@pytest.mark.parametrize(("size", "count"), [(0, 0), (69, 0), (70, 1), (139, 1), (140, 2)])
def test_max_bytes(klog: Klog, tmp_path: Path, size: int, count: int) -> None:
    log = write_file(tmp_path, plain(0) + plain(1))
    result = dump(klog, log, flags=("--json", "--max-bytes", str(size)))
    assert result.code == 0
    assert [line["kind"] for line in objects(result)] == ["file", "start"] + ["batch"] * count


def test_gaps_are_notices(klog: Klog, tmp_path: Path) -> None:
    log = write_file(tmp_path, plain(0) + plain(7))
    result = dump(klog, log, flags=("--deep-iteration",))
    assert (result.code, result.err) == (
        0,
        f"Non-consecutive offsets in {log}\n  0 is followed by 7\n",
    )


def count_chunks(log: Path) -> int:
    file = LocalFile(str(log))
    parts = list(dump_walk.walk(file, file.size_bytes))
    file.close()
    return sum(isinstance(part, Chunk) for part in parts)


def test_small_chunks_change_nothing(
    klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_file(tmp_path, b"".join(DIRECTORY) + plain(11)[:-1])
    before = dump(klog, log, flags=("--print-data-log",))
    assert count_chunks(log) == 1
    monkeypatch.setattr(dump_walk, "CHUNK_BYTES", 100)
    assert count_chunks(log) > 1
    assert dump(klog, log, flags=("--print-data-log",)) == before


def test_unreadable_files_are_reported_and_the_rest_follows(klog: Klog, tmp_path: Path) -> None:
    log = write_file(tmp_path, plain(0))
    strange = write_file(tmp_path, b"", "txt")
    named = write_file(tmp_path, b"", "index", "abc")
    result = dump(klog, tmp_path / "none.log", strange, named, tmp_path / "x.log", log)
    assert result.code == 1
    assert result.out.decode().count("baseOffset: 0") == 1
    assert result.err.count("there is no such file") == 2
    assert "unknown file name" in result.err
    assert "abc is not an offset" in result.err
    assert "Traceback" not in result.err
    assert dump(klog, Path("nope://x/y.log")).code == 1


def test_decoders(klog: Klog, tmp_path: Path) -> None:
    key = bytes.fromhex("00010002673100017400000002")
    value = bytes.fromhex("0003000000000000002a0000000500016d00000000000003e8")
    records = [
        Record(0, 1, key, value),
        Record(1, 1, key, None),
        Record(
            2,
            1,
            b"\0\x09\0\1g",
            bytes.fromhex("000002" + "00" * 16 + "027400000001020000000001000000"),
        ),
        Record(3, 1, b"\0\x63", b""),
        Record(4, 1, None, b"x"),
        Record(5, 1, key[:-1], value),
        Record(6, 1, key, b"\0\7?"),
        Record(7, 1, b"\0\3\0\1g", bytes.fromhex("00000000000700")),
        Record(8, 1, b"\0\3\0\1g", bytes.fromhex("000000000007")),
    ]
    log = write_file(tmp_path, batch(records))
    flags = ("--offsets-decoder", "--skip-record-metadata")
    result = dump(klog, log, flags=flags)
    shown = '{"type":"1","data":{"group":"g1","topic":"t","partition":2}}'
    assert result.code == 1
    assert result.out.decode().splitlines()[3:] == [
        f'| key: {shown} payload: {{"version":"3","data":{{"offset":42,"leaderEpoch":5,'
        '"metadata":"m","commitTimestamp":1000}}',
        f"| key: {shown} payload: <DELETE>",
        '| key: {"type":"9","data":{"groupId":"g"}} payload: {"version":"0","data":{"topics":['
        '{"topicId":"AAAAAAAAAAAAAAAAAAAAAA","topicName":"t","numPartitions":1,'
        '"partitionMetadata":[{"partition":0,"racks":[]}]}]}}',
        "| key: Unknown record type 99 at offset 3, skipping.",
        "| key: Error at offset 4, skipping. a record of __consumer_offsets without a key",
        "| key: Error at offset 5, skipping. 4 bytes where 3 are left",
        f'| key: {shown} payload: {{"version":"7","data":"AAc/"}}',
        '| key: {"type":"3","data":{"groupId":"g"}} payload: {"version":"0","data":{"epoch":7}}',
        "| key: Error at offset 8, skipping. 1 bytes where 0 are left",
    ]
    assert result.err.count("\n") == 4
    as_json = [line for line in objects(dump(klog, log, flags=(*flags, "--json"))) if "key" in line]
    assert as_json[0]["payload"]["data"]["offset"] == 42


USAGE = [
    ([], "required: --files"),
    (["--files", " , "], "no file, give at least one"),
    (["--files", "x.log", "--max-bytes", "-1"], "must be a number of bytes from 0, got '-1'"),
    (["--files", "x.log", "--offsets-decoder", "--transaction-log-decoder"], "not allowed with"),
    (["--files", "x.log", "--value-decoder-class", "a.B"], "names a Java class; --print-data-log"),
    (["--files", "x.log", "--key-decoder-class=a.B"], "--key-decoder-class names a Java class"),
    (["--files", "x.log", "--cluster-metadata-decoder"], "is not supported"),
    (["--files", "x.log", "--deep-iterations"], "did you mean --deep-iteration?"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage(klog: Klog, arguments: list[str], message: str) -> None:
    result = klog("dump", *arguments)
    assert (result.code, result.out) == (2, b"")
    assert message in result.err


def mutated(changes: list[tuple[int, int]]) -> bytes:
    data = bytearray(b"".join(DIRECTORY))
    for at, byte in changes:
        data[at] = byte
    return bytes(data)


@settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    st.sampled_from(["log", "index", "timeindex", "txnindex", "snapshot", "checkpoint"]),
    st.one_of(
        st.binary(max_size=200),
        st.lists(st.tuples(st.integers(0, 670), st.integers(0, 255)), max_size=6).map(mutated),
    ),
)
def test_any_bytes_end_in_an_exit_code(klog: Klog, suffix: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        write_file(Path(name), b"".join(DIRECTORY))
        path = write_file(Path(name), data, suffix)
        for flags in (("--offsets-decoder",), ("--transaction-log-decoder", "--json")):
            result = dump(klog, path, flags=flags)
            assert result.code in (0, 1)


def test_falling_offsets_are_reported_across_chunks(
    klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the batch out of order is reported, not the ordered batches after it."""
    monkeypatch.setattr(dump_walk, "CHUNK_BYTES", PLAIN_BYTES)
    log = write_file(tmp_path, plain(5) + plain(3) + plain(6) + plain(7))
    result = dump(klog, log, flags=("--json",))
    assert [text for _, text in findings(result)] == [
        "position 70: batch at offset 3 after offset 5"
    ]
    assert [line["baseOffset"] for line in objects(result) if line["kind"] == "batch"] == [
        5,
        3,
        6,
        7,
    ]


def test_falling_offsets_are_reported_in_one_read(klog: Klog, tmp_path: Path) -> None:
    """Also if a later fault hides the first of them."""
    log = write_file(tmp_path, plain(5) + plain(3) + plain(3) + plain(6))
    assert [text for _, text in findings(dump(klog, log, flags=("--json",)))] == [
        "position 70: batch at offset 3 after offset 5"
    ]


def test_runs_of_faults_are_read_once(
    klog: Klog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is reported and shown; reads grow with the size of the log, not the faults."""
    odd = [batch([Record(i, 1, b"k", b"v")], magic=3) for i in range(1, 3000)]
    log = write_file(tmp_path, plain(0) + b"".join(odd) + plain(3000))
    reads: list[int] = []
    read = LocalFile.read

    def counted(file: LocalFile, begin: int, end: int) -> bytes:
        reads.append(end - begin)
        return read(file, begin, end)

    monkeypatch.setattr(LocalFile, "read", counted)
    result = dump(klog, log, flags=("--deep-iteration", "--json"))
    assert len(reads) < 20
    expected = [f"position {70 * i}: magic 3 on a batch of format v2" for i in range(1, 3000)]
    assert [text for _, text in findings(result)] == expected
    records = [line["offset"] for line in objects(result) if line["kind"] == "record"]
    assert records == list(range(3001))
