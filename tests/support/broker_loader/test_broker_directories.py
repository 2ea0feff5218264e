"""A real broker's logs loaded without their other files, compared to the files it wrote.

Compacted logs are left out: their producers and epochs were in batches that are gone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.logformat.broker_files.checkpoint_files import (
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.broker_files.file_names import (
    parse_partition_directory,
    parse_segment_file,
    parse_snapshot_file,
)
from klog.logformat.broker_files.metadata_files import (
    decode_clean_shutdown,
    decode_meta_properties,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
)
from klog.logformat.producers.producer_snapshot import decode_snapshot, encode_snapshot
from klog.logformat.segments.torn_tail import is_padding
from tests.corpus import ROOT
from tests.support.broker_loader.load_partition import load

UNCOMPACTED = ("records", "transactions", "jbod", "killed", "compacted-before")
PREALLOCATED = "killed.preallocated"
LOG_DIRS = sorted(path for path in ROOT.glob("*/log*") if path.is_dir())
DIRECTORIES = [
    pytest.param(directory, id=f"{directory.parent.parent.name}-{directory.name[:40]}")
    for log_dir in LOG_DIRS
    if log_dir.parent.name in UNCOMPACTED
    for directory in sorted(log_dir.iterdir())
    if directory.is_dir() and parse_partition_directory(directory.name) is not None
]


def log_start(directory: Path) -> int:
    checkpoint = directory.parent / "log-start-offset-checkpoint"
    partition = parse_partition_directory(directory.name)
    assert partition is not None
    return decode_offset_checkpoint(checkpoint.read_bytes()).get(partition, 0)


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_files_rebuilt_from_logs_alone(directory: Path) -> None:
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    logs = {name: data for name, data in files.items() if name.endswith(".log")}
    partition = load(logs, log_start=log_start(directory))
    for name, data in files.items():
        segment, snapshot = parse_segment_file(name), parse_snapshot_file(name)
        if segment is not None and segment[1] == "log":
            log = partition.logs[segment[0]]
            assert data.startswith(log)
            assert len(log) == len(data) or directory.name.startswith(PREALLOCATED)
            assert is_padding(data[len(log) :])
        elif segment is not None and segment[1] == "txnindex":
            assert partition.segments[segment[0]].get("txnindex", b"") == data
        elif snapshot is not None and snapshot > partition.log_start:
            rebuilt = decode_snapshot(partition.snapshots[snapshot])
            assert set(rebuilt) == set(decode_snapshot(data))
    if any(logs.values()):
        checkpoint = files["leader-epoch-checkpoint"]
        assert encode_epoch_checkpoint(partition.epochs.entries) == checkpoint


@pytest.mark.parametrize("log_dir", LOG_DIRS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_small_files_round_trip(log_dir: Path) -> None:
    for path in log_dir.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        # Without partitions to checkpoint a broker writes an empty file.
        if path.name.endswith("offset-checkpoint") and data:
            assert encode_offset_checkpoint(decode_offset_checkpoint(data)) == data
        elif path.name == "leader-epoch-checkpoint":
            assert encode_epoch_checkpoint(decode_epoch_checkpoint(data).entries) == data
        elif path.name == "partition.metadata":
            assert encode_partition_metadata(decode_partition_metadata(data)) == data
        elif path.name == ".kafka_cleanshutdown":
            assert encode_clean_shutdown(decode_clean_shutdown(data)) == data
        elif path.suffix == ".snapshot":
            assert encode_snapshot(decode_snapshot(data)) == data
        elif path.name == "meta.properties":
            meta = decode_meta_properties(data)
            assert meta.version == 1
            lines = encode_meta_properties(meta).splitlines()
            assert sorted(lines[2:]) == sorted(
                line for line in data.splitlines() if line[:1] != b"#"
            )
