"""A segment's entry for tests: fields that a test does not set are 0, "none" or empty."""

from __future__ import annotations

from typing import Any

from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry


def entry_of(
    file: str,
    partition: int,
    base_offset: int,
    next_offset: int,
    origin: str = "append",
    **facts: Any,
) -> SegmentEntry:
    """Return an entry; `facts` are other arguments of `build_segment_entry`."""
    defaults: dict[str, Any] = {
        "size_bytes": 0,
        "crc32c": 0,
        "record_count": 0,
        "batch_count": 0,
        "min_timestamp_ms": 0,
        "max_timestamp_ms": 0,
        "leader_epoch": 0,
        "codec": "none",
        "producer_ids": [],
    }
    return build_segment_entry(
        file=file,
        partition=partition,
        base_offset=base_offset,
        next_offset=next_offset,
        origin=origin,
        **{**defaults, **facts},
    )
