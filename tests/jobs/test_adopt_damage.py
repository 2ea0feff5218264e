"""Torn tails, damaged batches, files that change later, and directories that are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.errors import CorruptRecordError, KlogError, OptionError
from klog.jobs import adopt, export_log, import_log, merge, verify
from klog.logformat.broker_files.file_names import segment_file_name
from klog.logformat.broker_files.metadata_files import encode_partition_metadata
from klog.logformat.producers.control_records import COMMIT
from klog.logformat.topic_partition import TopicPartition
from tests.connector.kafka_dir.lock_holder import holding
from tests.corpus import scene
from tests.jobs.adopted_rows import COMMITTED, UNCOMMITTED, WHOLE, offsets
from tests.jobs.broker_dirs import (
    TOPIC_ID,
    copied,
    logs_of,
    read_all,
    write_broker_dir,
)
from tests.jobs.verified_roots import live, state_of
from tests.support.batch_bytes import marker, transactional


def test_a_torn_tail_stays_and_does_not_count(tmp_path: Path) -> None:
    whole = transactional(0, 1) + marker(1, 1, COMMIT)
    root = write_broker_dir(tmp_path, {"t-0": {0: whole + b"\xff" * 40}})
    adopt.run(None, str(root))
    (entry,) = live(root)
    assert (entry["size_bytes"], entry["torn_bytes"]) == (len(whole), 40)
    assert offsets(root, COMMITTED) == [0]
    (log,) = logs_of([TopicPartition("t", 0)], root).values()
    assert log.offset_for_time(0, 2) == 0
    assert verify.run(None, str(root)).findings == ()
    merge.run(None, str(root), "t")
    file = root / "t-0" / segment_file_name(0, "log")
    file.write_bytes(file.read_bytes() + b"more")
    (finding,) = verify.run(None, str(root)).findings
    assert (finding.kind, finding.file) == ("size", f"t-0/{segment_file_name(0, 'log')}")


@pytest.mark.parametrize("tail", [b"", bytes(4096), b"\x5a" * 300])
@pytest.mark.parametrize("way", ["adopt", "import"])
def test_a_torn_tail_before_an_empty_segment(tmp_path: Path, way: str, tail: bytes) -> None:
    """A broker that was killed just after it rolled: all ways end where its recovery would."""
    whole = transactional(0, 1) + marker(1, 1, COMMIT)
    torn = transactional(2, 1, [b"x"] * 3)[:-5]
    write_broker_dir(
        tmp_path / "log", {"t-0": {0: whole + torn, 5: tail, 9: b""}, "t-1": {0: whole}}
    )
    (raw, _) = logs_of([TopicPartition("t", 0), TopicPartition("t", 1)], tmp_path / "log").values()
    assert raw.log_end == 2
    if way == "adopt":
        root = tmp_path / "log"
        report = adopt.run(None, str(root))
    else:
        root = tmp_path / "root"
        report = import_log.run(None, str(root), source=str(tmp_path / "log"))
    assert [partition.log_end for partition in report.partitions] == [2, 2]
    assert [partition.torn_bytes for partition in report.partitions] == [len(torn), 0]
    assert state_of(root).log_end == (2, 2)
    for level in (UNCOMMITTED, COMMITTED):
        assert offsets(root, level) == [0]
    assert verify.run(None, str(root)).findings == ()
    klog.open(str(root)).append("t", pa.table({"value": [b"next"], "partition": [0]}))
    assert offsets(root, COMMITTED) == [0, 2]
    export_log.run(None, str(root), "t", str(tmp_path / "out"))
    assert offsets(tmp_path / "out", COMMITTED) == [0, 2]
    assert verify.run(None, str(root)).findings == ()


@pytest.mark.parametrize("level", [UNCOMMITTED, COMMITTED])
@pytest.mark.parametrize("change", ["longer", "shorter", "flipped", "gone"])
def test_a_file_that_changes_later_is_named(tmp_path: Path, change: str, level: str) -> None:
    root = write_broker_dir(tmp_path, {"t-0": {0: transactional(0, 1) + marker(1, 1, COMMIT)}})
    adopt.run(None, str(root))
    file = root / "t-0" / segment_file_name(0, "log")
    data = file.read_bytes()
    if change == "gone":
        file.unlink()
    else:
        flipped = data[:30] + bytes([data[30] ^ 1]) + data[31:]
        file.write_bytes({"longer": data + b"\0", "shorter": data[:-1], "flipped": flipped}[change])
    with pytest.raises(CorruptRecordError, match=file.name):
        offsets(root, level)


@pytest.mark.parametrize(
    ("index", "kept"),
    [
        ("unchanged", True),
        ("missing", False),
        ("preallocated", False),
        ("of another log", False),
        ("cut", False),
    ],
)
def test_an_index_is_taken_if_it_fits(tmp_path: Path, index: str, kept: bool) -> None:
    root = copied("records", tmp_path / "log")
    (path,) = [path for path in (root / "segments-0").glob("*.index") if path.stat().st_size][:1]
    data = path.read_bytes()
    changed = {
        "preallocated": data + bytes(4096),
        "of another log": b"".join(
            data[at : at + 4]
            + (int.from_bytes(data[at + 4 : at + 8], "big") + 1).to_bytes(4, "big")
            for at in range(0, len(data), 8)
        ),
        "cut": data[:-3],
    }
    if index == "missing":
        path.unlink()
    else:
        path.write_bytes(changed.get(index, data))
    names = [TopicPartition("segments", number) for number in (0, 1)]
    before = read_all(names, root)
    adopt.run(None, str(root), "segments")
    (entry,) = [
        entry for entry in live(root, "segments") if entry["file"].endswith(f"-0/{path.stem}.log")
    ]
    assert entry["index_bytes"] == (len(data) if kept else 0)
    assert read_all(names, root) == before
    assert verify.run(None, str(root)).findings == ()


def test_a_damaged_batch_is_refused(tmp_path: Path) -> None:
    whole = transactional(0, 1) + marker(1, 1, COMMIT)
    damaged = bytearray(whole)
    damaged[40] ^= 1
    root = write_broker_dir(
        tmp_path, {"t-0": {0: bytes(damaged), 10: transactional(10, 1) + marker(11, 1, 1)}}
    )
    with pytest.raises(CorruptRecordError, match=segment_file_name(0, "log")):
        adopt.run(None, str(root))
    assert klog_is_not_there(root)


def klog_is_not_there(root: Path) -> bool:
    return not (root / "_klog" / "format.json").exists()


def test_a_batch_outside_of_its_segment_is_refused(tmp_path: Path) -> None:
    logs = {0: transactional(12, 1) + marker(13, 1, 1), 10: transactional(14, 1) + marker(15, 1, 1)}
    root = write_broker_dir(tmp_path, {"t-0": logs})
    with pytest.raises(CorruptRecordError, match="from 0 to before 10"):
        adopt.run(None, str(root))


def refused(tmp_path: Path, words: str, error: type[KlogError] = KlogError, **more: Any) -> None:
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(error, match=words):
        adopt.run(None, str(tmp_path), **more)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_what_cannot_be_adopted_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "has no topic of a broker. Give the directory", OptionError)
    root = write_broker_dir(
        tmp_path, {"t-0": {0: WHOLE}, "t-2": {0: WHOLE}, "__cluster_metadata-0": {}}
    )
    refused(root, "t-2 and no t-1")
    refused(root, "the controllers' own log", OptionError, topic="__cluster_metadata")
    refused(root, r"no topic tt; did you mean t\?", OptionError, topic="tt")
    refused(
        root, "must be .abort. or .commit., got .perhaps.", OptionError, open_transactions="perhaps"
    )
    (root / "t-1").mkdir()
    refused(root, "different topic ids")
    (root / "t-1" / "partition.metadata").write_bytes(encode_partition_metadata(TOPIC_ID))
    (root / "t-0" / f"{segment_file_name(0, 'log')}.swap").write_bytes(WHOLE)
    refused(root, "did not finish a cleaning")
    refused(root, "not a topic config", OptionError, config={"retention": "1"})


def test_a_directory_that_a_broker_has_is_refused(tmp_path: Path) -> None:
    write_broker_dir(tmp_path, {"t-0": {0: WHOLE}})
    with holding(tmp_path):
        refused(tmp_path, "a broker runs on it")
    adopt.run(None, str(tmp_path))


def test_several_log_directories_are_refused_by_name(tmp_path: Path) -> None:
    (first, _) = scene("jbod").log_dirs
    root = tmp_path / "log"
    shutil.copytree(first, root)
    with pytest.raises(KlogError, match=r"topic spread is not complete: .* `klog import-log`"):
        adopt.run(None, str(root))
    adopt.run(None, str(root), "__consumer_offsets")
