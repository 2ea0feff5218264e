"""A broker's segments put into a klog root: copied, and committed as they are.

The rule: offsets tile the log, so a segment reaches to where the next one begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import google_crc32c
import numpy as np

from klog.connector.log import entries
from klog.connector.log.commit import Actions
from klog.connector.log.entries import Entry
from klog.connector.log.root import KlogRoot
from klog.connector.log.topic_log import Attempt
from klog.logformat import batch as v2
from klog.logformat.columnar import decode
from klog.logformat.transactions import is_control

_ids = count()


def adopt(root: KlogRoot, topic: str, logs: Mapping[int, bytes], log_end: int) -> None:
    """Put segments of partition 0, by base offset, behind those that the topic has."""
    log = root.log_to_write(topic)
    bases = sorted(logs)
    # Where the broker's first segment is not the next, offsets between are of no record.
    begins = [log.load().log_end[0], *bases[1:]]
    found = [
        _entry(root, topic, base, (begin, behind), logs[base])
        for base, begin, behind in zip(bases, begins, [*begins[1:], log_end], strict=True)
    ]
    actions = Actions(add=tuple(found), log_end={0: log_end})
    log.commit(log.load(), lambda state: actions, Attempt(f"adopt {next(_ids)}", "adopt", "a test"))


def _entry(root: KlogRoot, topic: str, base: int, span: tuple[int, int], log: bytes) -> Entry:
    batches = v2.scan(log, 0, len(log))
    headers = batches.headers
    file = f"{topic}-0/{base:020}.log"
    root.store.put(f"{root.path}/{file}", [log])
    ids = np.unique(headers["producer_id"])
    latest = headers["max_timestamp"]
    times = decode(log, batches.where(~is_control(batches)), ("timestamp_ms",)).timestamp_ms
    assert times is not None
    return {
        **dict.fromkeys(entries.SCHEMA.names, 0),
        "partition": 0,
        "file": file,
        "base_offset": span[0],
        "next_offset": span[1],
        "size_bytes": len(log),
        "crc32c": google_crc32c.value(log),
        "record_count": int(headers["count"][~is_control(batches)].sum()),
        "batch_count": len(batches),
        "min_timestamp_ms": min([int(latest.min()), *times.tolist()]),
        "max_timestamp_ms": int(latest.max()),
        "codec": "none",
        "producer_ids": ids[ids >= 0].tolist(),
        "origin": "adopt",
        "aborted": [],
    }
