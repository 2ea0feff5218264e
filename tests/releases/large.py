"""A topic with very many segments, whose commits are written by hand.

The rule: the commits follow docs/commit-protocol.md, and klog does not write them. The segments'
files do not exist, because nothing reads them: state, checkpoint and retention do not need them.
"""

from __future__ import annotations

import json
from pathlib import Path

import klog
from tests.releases.release_topics import OLD_MS, PLAIN

COMMITS = 2
SEGMENTS_IN_COMMIT = 50_001


def write_large(root: Path, topic: str) -> None:
    """Create a topic, and commit old segments of one record each to partition 0."""
    klog.open(root).create_topic(topic, 1, {**PLAIN, "retention.ms": "86400000"})
    log = root / "_klog" / "topics" / topic / "log"
    for version in range(1, COMMITS + 1):
        first = (version - 1) * SEGMENTS_IN_COMMIT
        end = first + SEGMENTS_IN_COMMIT
        commit = {
            "format": 1,
            "since": "0.1.0",
            "version": version,
            "writeId": f"by hand, {version}",
            "timestampMs": json.loads((log / f"{0:020}.json").read_text())["timestampMs"] + version,
            "operation": "append",
            "engine": "a test",
            "add": [_segment(topic, offset, version - 1) for offset in range(first, end)],
            "post": {"0": {"logEnd": end}},
        }
        (log / f"{version:020}.json").write_text(json.dumps(commit))


def _segment(topic: str, offset: int, base_version: int) -> dict[str, object]:
    return {
        "file": f"{topic}-0/{offset:020}-{base_version:010}-{offset:016x}.log",
        "partition": 0,
        "baseOffset": offset,
        "nextOffset": offset + 1,
        "offsetShift": 0,
        "sizeBytes": 72,
        "indexBytes": 0,
        "timeIndexBytes": 0,
        "crc32c": 0,
        "recordCount": 1,
        "batchCount": 1,
        "minTimestampMs": OLD_MS,
        "maxTimestampMs": OLD_MS,
        "leaderEpoch": 0,
        "codec": "none",
        "producerIds": [],
        "origin": "append",
    }
