"""What klog writes, put before Kafka's dump tool: it finds every record and nothing wrong.

The rule: the tool is believed only as far as it would have found a fault. It stops at the first
file that it cannot read, names mismatches only on standard error, and does not check a transaction
index at all: `test_written.py` does.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.broker import kafka_tool_output
from tests.corpus import Record
from tests.kafka.written import COORDINATOR_EPOCH
from tests.kafka.written_topics import write_all

pytestmark = pytest.mark.kafka

WRITTEN = write_all(time.time_ns() // 1_000_000)
GAPS, GROUPED = "written.gaps-0", "written.grouped-0"
DUMPED = re.compile(r"^Dumping (\S+)$", re.MULTILINE)
RECORD = re.compile(
    r"^\| offset: (\d+) (CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)"
    r".*?(?: endTxnMarker: (\w+) coordinatorEpoch: (\d+))?$",
    re.MULTILINE,
)
FAULTS = re.compile("isvalid: false|Found|[Ii]nvalid|not found|out of order")


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


def dumped(paths: list[Path], *options: str) -> tuple[dict[Path, str], str]:
    """Run the dump tool over files; give what it said of each, and what it complains of at last.

    It names mismatches only on standard error, and ends with success all the same.
    """
    given = ",".join(map(str, paths))
    said, told = kafka_tool_output("kafka.tools.DumpLogSegments", *options, "--files", given)
    _, *parts = DUMPED.split(said)
    complaints = [line for line in told.splitlines() if not line.startswith(("SLF4J", "WARNING"))]
    found = {Path(parts[i]): parts[i + 1] for i in range(0, len(parts), 2)}
    return found, "\n".join([*complaints, *FAULTS.findall(said)])


def checked(paths: list[Path], *options: str) -> dict[Path, str]:
    """Run it and see that it came to the end of the list and found nothing."""
    found, complaints = dumped(paths, *options)
    assert complaints == ""
    assert sorted(found) == sorted(paths), "the tool stops at the first file it cannot read"
    return found


def written_files(written: Path, *suffixes: str, but: str = "") -> list[Path]:
    every = written.glob("*/*")
    return sorted(path for path in every if path.suffix in suffixes and path.parent.name != but)


def test_the_dump_tool_finds_every_record_and_no_fault(written: Path) -> None:
    found = checked(written_files(written, ".log", but=GAPS), "--deep-iteration")
    gaps, complaints = dumped(sorted((written / GAPS).glob("*.log")), "--deep-iteration")
    # It misses the offsets that have no record, as it does in any log that a broker has cleaned.
    offsets = re.compile(r"Non-consecutive offsets in \S+|  \d+ is followed by \d+")
    assert [line for line in complaints.splitlines() if not offsets.fullmatch(line)] == []
    found |= gaps
    for where, log in WRITTEN.items():
        name = f"{where[0]}-{where[1]}"
        text = "".join(text for path, text in found.items() if path.parent.name == name)
        assert text.count("baseOffset: ") == sum(len(append) for append in log.appends)
        told = RECORD.findall(text)
        data = [one[:5] for one in told if not one[5]]
        assert data == [_as_dumped(one) for one in log.records]
        markers = {int(offset): kind for offset, *_, kind, _ in told if kind}
        assert markers == log.markers
        assert {epoch for *_, epoch in told} <= {"", str(COORDINATOR_EPOCH)}


def _as_dumped(one: Record) -> tuple[str, ...]:
    def size(content: Any) -> str:
        return "-1" if content is None else str(len(content))

    kind = ("CreateTime", "LogAppendTime")[one.timestamp_type]
    return (str(one.offset), kind, str(one.timestamp), size(one.key), size(one.value))


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", None])
def test_the_dump_tool_finds_no_fault_in_an_index(written: Path, option: str | None) -> None:
    paths = written_files(written, ".index", ".timeindex", but=GROUPED)
    found = checked(paths, *([option] if option else []))
    if option == "--index-sanity-check":
        for path, text in found.items():
            good = "passed sanity check." if path.stat().st_size else "is empty."
            assert text.strip() == f"{path} {good}"


def test_the_dump_tool_takes_the_first_batch_of_an_append_for_all_of_it(written: Path) -> None:
    """So an entry of many batches, which is what a broker writes as well, looks wrong to it."""
    paths = sorted((written / GROUPED).glob("*.index"))
    found, complaints = dumped(paths)
    assert complaints.startswith("Mismatches in")
    assert sorted(found) == paths


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
