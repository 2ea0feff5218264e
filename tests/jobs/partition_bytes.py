"""What a klog root holds of a partition: its segments' bytes, offsets as the log has them."""

from __future__ import annotations

from pathlib import Path

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.jobs import verify
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.rewrite_offsets import BatchRun, shift_offsets
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.logformat.reference_decoder import decode_with_klog
from tests.support.batch_bytes import Record


def state_of(path: Path, topic: str = "t") -> TopicState:
    """Load a topic."""
    root = find_root(str(path))
    assert root is not None
    return root.log(topic).load()


def entries_of(path: Path, partition: int = 0, topic: str = "t") -> list[SegmentEntry]:
    """Return the entries of a partition's live segments."""
    entries: list[SegmentEntry] = segment_entries.rows_of_partition(
        state_of(path, topic).segments.combine_chunks(), partition
    ).to_pylist()
    return entries


def segments(path: Path, partition: int = 0, topic: str = "t") -> list[bytes]:
    """Return the bytes of the segments."""
    logs = []
    for entry in entries_of(path, partition, topic):
        data = (path / entry["file"]).read_bytes()
        batches = shift_offsets(scan(data), entry["offset_shift"])
        logs.append(BatchRun(data, batches).rewritten().data if entry["offset_shift"] else data)
    return logs


def records(path: Path, partition: int = 0, topic: str = "t") -> list[Record]:
    """Return the records without control records."""
    result: list[Record] = []
    for segment in segments(path, partition, topic):
        batches = scan(segment)
        for start, end, header in zip(batches.starts, batches.ends, batches.headers, strict=True):
            if not int(header["attributes"]) & v2.CONTROL and header["count"]:
                result += decode_with_klog(segment[start:end])
    return result


def nothing_is_wrong(path: Path) -> None:
    """Hold a root to `verify`, in both its forms."""
    for fast in (False, True):
        findings = verify.run(None, str(path), fast=fast).findings
        assert not findings, findings
