"""What loading makes of a real broker's logs alone, against the files that the broker wrote.

Compacted logs are left out: what was cleaned away, its producers and epochs, no log can tell.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.logformat.checkpoint import (
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.metadata import (
    decode_clean_shutdown,
    decode_meta_properties,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
)
from klog.logformat.names import partition_of_directory, segment_file, snapshot_file
from klog.logformat.partition import load
from klog.logformat.recovery import is_padding
from klog.logformat.snapshot import decode_snapshot, encode_snapshot
from tests.corpus import ROOT

UNCOMPACTED = ("records", "transactions", "jbod", "killed", "compacted-before")
PREALLOCATED = "killed.preallocated"
LOG_DIRS = sorted(path for path in ROOT.glob("*/log*") if path.is_dir())
DIRECTORIES = [
    pytest.param(directory, id=f"{directory.parent.parent.name}-{directory.name[:40]}")
    for log_dir in LOG_DIRS
    if log_dir.parent.name in UNCOMPACTED
    for directory in sorted(log_dir.iterdir())
    if directory.is_dir() and partition_of_directory(directory.name) is not None
]


def log_start(directory: Path) -> int:
    checkpoint = directory.parent / "log-start-offset-checkpoint"
    name = partition_of_directory(directory.name)
    assert name is not None
    return decode_offset_checkpoint(checkpoint.read_bytes()).get(name, 0)


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_a_log_alone_gives_the_files_beside_it(directory: Path) -> None:
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    logs = {name: data for name, data in files.items() if name.endswith(".log")}
    found = load(logs, log_start=log_start(directory))
    for name, data in files.items():
        segment, snapshot = segment_file(name), snapshot_file(name)
        if segment is not None and segment[1] == "log":
            kept = found.logs[segment[0]]
            assert data.startswith(kept)
            assert len(kept) == len(data) or directory.name.startswith(PREALLOCATED)
            assert is_padding(data[len(kept) :])
        elif segment is not None and segment[1] == "txnindex":
            assert found.segments[segment[0]].get("txnindex", b"") == data
        elif snapshot is not None and snapshot > found.log_start:
            ours, theirs = (decode_snapshot(one) for one in (found.snapshots[snapshot], data))
            assert set(ours) == set(theirs)
    if any(logs.values()):
        checkpoint = files["leader-epoch-checkpoint"]
        assert encode_epoch_checkpoint(found.epochs.entries) == checkpoint


@pytest.mark.parametrize("log_dir", LOG_DIRS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_the_broker_wrote_is_written_the_same(log_dir: Path) -> None:
    for path in log_dir.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        # A broker has no line for what it does not checkpoint, or no file content at all.
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
            assert sorted(lines[2:]) == sorted(one for one in data.splitlines() if one[:1] != b"#")
