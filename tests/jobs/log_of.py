"""What a klog root holds of a partition: its segments' bytes, offsets as the log has them."""

from __future__ import annotations

from pathlib import Path

from klog.connector.log import entries
from klog.connector.log.entries import Entry
from klog.connector.log.root import find_root
from klog.connector.log.state import State
from klog.jobs import verify
from klog.logformat import batch as v2
from klog.logformat.restamp import Run, moved
from tests.encode import Record
from tests.logformat.cleaning.rounds import scan
from tests.logformat.decoding import by_klog


def state_of(path: Path, topic: str = "t") -> State:
    """Load a topic."""
    root = find_root(str(path))
    assert root is not None
    return root.log(topic).load()


def entries_of(path: Path, partition: int = 0, topic: str = "t") -> list[Entry]:
    """Give a partition's live segments."""
    found: list[Entry] = entries.of_partition(
        state_of(path, topic).segments.combine_chunks(), partition
    ).to_pylist()
    return found


def segments(path: Path, partition: int = 0, topic: str = "t") -> list[bytes]:
    """Give their bytes."""
    found = []
    for entry in entries_of(path, partition, topic):
        data = (path / entry["file"]).read_bytes()
        batches = moved(scan(data), entry["offset_shift"])
        found.append(Run(data, batches).stamped().data if entry["offset_shift"] else data)
    return found


def records(path: Path, partition: int = 0, topic: str = "t") -> list[Record]:
    """Give the records, control ones left out."""
    found: list[Record] = []
    for segment in segments(path, partition, topic):
        batches = scan(segment)
        for start, end, header in zip(batches.starts, batches.ends, batches.headers, strict=True):
            if not int(header["attributes"]) & v2.CONTROL and header["count"]:
                found += by_klog(segment[start:end])
    return found


def nothing_is_wrong(path: Path) -> None:
    """Hold a root to `verify`, in both its forms."""
    for fast in (False, True):
        findings = verify.run(None, str(path), fast=fast).findings
        assert not findings, findings
