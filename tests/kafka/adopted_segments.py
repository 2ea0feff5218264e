"""A broker's segments in a klog root: copied, and committed unchanged.

The rule: offsets tile the log, so a segment reaches to where the next one begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import google_crc32c
import numpy as np

from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.segment_entry_builder import build_segment_entry
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches

_ids = count()


def adopt(root: KlogRoot, topic: str, logs: Mapping[int, bytes], log_end: int) -> None:
    """Append segments of partition 0, by base offset, to a topic."""
    log = root.log_to_write(topic)
    bases = sorted(logs)
    # If the broker's first segment is not the next one, offsets between have no record.
    begins = [log.load().log_end[0], *bases[1:]]
    entries = [
        _entry(root, topic, base, (begin, end), logs[base])
        for base, begin, end in zip(bases, begins, [*begins[1:], log_end], strict=True)
    ]
    actions = Actions(add=tuple(entries), asserted_log_end={0: log_end})
    log.commit(
        log.load(), lambda state: actions, CommitInfo(f"adopt {next(_ids)}", "adopt", "a test")
    )


def _entry(
    root: KlogRoot, topic: str, base: int, span: tuple[int, int], log: bytes
) -> SegmentEntry:
    batches = scan_batches(log, 0, len(log))
    headers = batches.headers
    file = f"{topic}-0/{base:020}.log"
    root.store.put(f"{root.path}/{file}", [log])
    ids = np.unique(headers["producer_id"])
    latest = headers["max_timestamp"]
    times = decode_records(log, batches.where(~batches.is_control), ("timestamp_ms",)).timestamp_ms
    assert times is not None
    return build_segment_entry(
        file=file,
        partition=0,
        base_offset=span[0],
        next_offset=span[1],
        size_bytes=len(log),
        crc32c=google_crc32c.value(log),
        record_count=int(headers["count"][~batches.is_control].sum()),
        batch_count=len(batches),
        min_timestamp_ms=min([int(latest.min()), *times.tolist()]),
        max_timestamp_ms=int(latest.max()),
        leader_epoch=0,
        codec="none",
        producer_ids=ids[ids >= 0].tolist(),
        origin="adopt",
    )
