"""Cases of a log directory's listing: which directories are partitions."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from klog.connector.kafka_dir.raw_root import RawRoot
from tests.connector.log_dirs import many, offsets, read, write_log


def partitions_found(*names: str) -> list[tuple[str, int]]:
    """List a log directory in which each of these directories holds a segment."""
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        for name in names:
            write_log(Path(root), {0: many(1)}, name)
        return [
            (partition.topic, partition.partition) for partition in RawRoot([root]).partitions()
        ]


def offsets_found(topic: str, logs: Sequence[tuple[str, int, int]]) -> list[int]:
    """Read a topic where directories hold these (name, first offset, records)."""
    with tempfile.TemporaryDirectory(prefix="klog-") as root:
        for name, first, count in logs:
            write_log(Path(root), {first: many(count, first)}, name)
        return offsets(read(root, subscribe=topic))
