"""Kafka's dump tool reads what klog writes: it finds every record and no fault.

The rule: a test shows that the tool would have found a fault. It stops at the first
file that it cannot read, names mismatches only on standard error, and does not check a transaction
index at all: `test_written.py` does.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from klog.logformat.producers import control_batches
from klog.logformat.producers.control_batches import AppendInfo, Endpoint, Voter
from tests.kafka.kafka_dump_tool import RECORD, as_dumped, checked, dumped
from tests.kafka.written_partition import COORDINATOR_EPOCH
from tests.kafka.written_topics import write_all

pytestmark = pytest.mark.kafka

WRITTEN = write_all(time.time_ns() // 1_000_000)
GAPS, GROUPED = "written.gaps-0", "written.grouped-0"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write every partition's directory."""
    folder = tmp_path_factory.mktemp("dumped")
    for (topic, partition), log in WRITTEN.items():
        directory = folder / f"{topic}-{partition}"
        directory.mkdir()
        for name, content in log.files().items():
            (directory / name).write_bytes(content)
    return folder


def written_files(written: Path, *suffixes: str, but: str = "") -> list[Path]:
    every = written.glob("*/*")
    return sorted(path for path in every if path.suffix in suffixes and path.parent.name != but)


def test_the_dump_tool_finds_every_record_and_no_fault(written: Path) -> None:
    texts = checked(written_files(written, ".log", but=GAPS), "--deep-iteration")
    gaps, complaints = dumped(sorted((written / GAPS).glob("*.log")), "--deep-iteration")
    # It misses the offsets that have no record, as it does in any log that a broker has cleaned.
    offsets = re.compile(r"Non-consecutive offsets in \S+|  \d+ is followed by \d+")
    assert [line for line in complaints.splitlines() if not offsets.fullmatch(line)] == []
    texts |= gaps
    for where, log in WRITTEN.items():
        name = f"{where[0]}-{where[1]}"
        text = "".join(text for path, text in texts.items() if path.parent.name == name)
        assert text.count("baseOffset: ") == sum(len(append) for append in log.appends)
        records = RECORD.findall(text)
        data = [fields[:5] for fields in records if not fields[5]]
        assert data == [as_dumped(record) for record in log.records]
        markers = {int(offset): kind for offset, *_, kind, _ in records if kind}
        assert markers == log.markers
        assert {epoch for *_, epoch in records} <= {"", str(COORDINATOR_EPOCH)}


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", None])
def test_the_dump_tool_finds_no_fault_in_an_index(written: Path, option: str | None) -> None:
    paths = written_files(written, ".index", ".timeindex", but=GROUPED)
    texts = checked(paths, *([option] if option else []))
    if option == "--index-sanity-check":
        for path, text in texts.items():
            good = "passed sanity check." if path.stat().st_size else "is empty."
            assert text.strip() == f"{path} {good}"


def test_the_dump_tool_takes_the_first_batch_of_an_append_for_all_of_it(written: Path) -> None:
    """So it reports an entry of several batches, which a broker writes too, as a mismatch."""
    paths = sorted((written / GROUPED).glob("*.index"))
    texts, complaints = dumped(paths)
    assert complaints.startswith("Mismatches in")
    assert sorted(texts) == paths


@pytest.mark.parametrize(("suffix", "position"), [(".log", 99), (".index", 3), (".timeindex", 6)])
def test_the_dump_tool_would_have_found_a_fault(
    written: Path, tmp_path: Path, suffix: str, position: int
) -> None:
    name = f"{0:020}{suffix}"
    shutil.copytree(written / "written.txn-0", tmp_path / "hurt")
    hurt = tmp_path / "hurt" / name
    content = bytearray(hurt.read_bytes())
    content[position] ^= 1
    hurt.write_bytes(content)
    assert dumped([hurt])[1] != ""


def test_the_dump_tool_reads_snapshots_and_transaction_indexes(written: Path) -> None:
    for path, text in checked(written_files(written, ".snapshot", ".txnindex")).items():
        content = path.read_bytes()
        entries = len(content) // 34 if path.suffix == ".txnindex" else (len(content) - 10) // 46
        assert text.lower().count("producerid: ") == entries, path


def test_the_dump_tool_reads_what_controllers_write(tmp_path: Path) -> None:
    directories = ["ASNFZ4mrze_-3LqYdlQyEA", "_-3LqYdlQyEBI0VniavN7w"]
    endpoints = (Endpoint("CONTROLLER", "h\u00f6st", 65535), Endpoint("OTHER", "", 0))
    voters = [
        Voter(number, name, endpoints[:number], 0, 1) for number, name in enumerate(directories)
    ]
    batches = [
        control_batches.snapshot_header(AppendInfo(0, 1000, 3), 999),
        control_batches.kraft_version(AppendInfo(1, 1000, 3), 1),
        control_batches.kraft_voters(AppendInfo(2, 1000, 3), voters),
        control_batches.leader_change(AppendInfo(3, 1000, 3), 1, [0, 1], [1]),
        control_batches.snapshot_footer(AppendInfo(4, 1000, 3)),
    ]
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(batches))
    text = checked([log], "--deep-iteration")[log]
    assert text.count("isControl: true") == len(batches)
    pairs = re.findall(r"headerKeys: \[\] (\w+):? (\{.*\})$", text, re.MULTILINE)
    assert [(name, json.loads(fields)) for name, fields in pairs] == [
        ("SnapshotHeader", {"version": 0, "lastContainedLogTimestamp": 999}),
        ("KRaftVersion", {"version": 0, "kRaftVersion": 1}),
        (
            "KRaftVoters",
            {
                "version": 0,
                "voters": [
                    {
                        "voterId": number,
                        "voterDirectoryId": name,
                        "endpoints": [asdict(endpoint) for endpoint in endpoints[:number]],
                        "kRaftVersionFeature": {
                            "minSupportedVersion": 0,
                            "maxSupportedVersion": 1,
                        },
                    }
                    for number, name in enumerate(directories)
                ],
            },
        ),
        (
            "LeaderChange",
            {
                "version": 0,
                "leaderId": 1,
                "voters": [{"voterId": 0}, {"voterId": 1}],
                "grantingVoters": [{"voterId": 1}],
            },
        ),
        ("SnapshotFooter", {"version": 0}),
    ]
