"""Topics that are compacted, for tests: their records, and what is left of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from klog.jobs import compact
from klog.jobs.compacting import clean_partition
from klog.jobs.compacting.compact_report import CompactReport
from klog.jobs.shared.marking import compiled_kernels
from klog.logformat.cleaning import clean_newest_first
from tests.corpus.clients import Sent
from tests.jobs.written_root import WrittenRoot
from tests.logformat.cleaning.cleaning_rounds import next_offset
from tests.support.batch_bytes import Record
from tests.support.kernel_choices import CLEANING_FROM_THE_START

NOW_MS = 1_700_000_000_000
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "3000",
    "index.interval.bytes": "100",
    "min.cleanable.dirty.ratio": "0.5",
}


def path_of(root: WrittenRoot) -> Path:
    return Path(root.location)


def rows(first: int, count: int, keys: int = 7, size: int = 30) -> list[Sent]:
    """Return records of a few keys, a second apart; every ninth is a tombstone."""
    return [
        Sent(
            b"k%d" % (n * n % keys),
            None if n % 9 == 0 else (b"v%d-" % n).ljust(size, b"."),
            NOW_MS + 1000 * n,
            (("h", b"%d" % n),) if n % 4 == 0 else (),
        )
        for n in range(first, first + count)
    ]


def run(root: WrittenRoot, topic: Any = None, now_ms: int = NOW_MS, **more: Any) -> CompactReport:
    options = {"min_dirty_ratio": 0.0, **more}
    return compact.run(None, root.location, topic, clock_ms=lambda: now_ms, **options)


def by_loops(monkeypatch: pytest.MonkeyPatch, *, little_memory: bool) -> None:
    """Have all compactions go by loops that numba compiled, however few records there are.

    With little memory segments are read twice, what is left lies in a file, and a block is a batch.
    """
    monkeypatch.setattr(compiled_kernels, "CLEANING", CLEANING_FROM_THE_START)
    if little_memory:
        monkeypatch.setattr(clean_partition, "MAX_BUFFER_BYTES", 1)
        monkeypatch.setattr(clean_newest_first, "_BLOCK_BYTES", 1)


def created(root: WrittenRoot, partitions: int = 1, **config: str) -> None:
    named = {name.replace("_", "."): value for name, value in config.items()}
    root.create("t", partitions, COMPACTED | named)


def adopted(root: WrittenRoot, segments_: Sequence[bytes], **config: str) -> None:
    """Make a topic of a broker's segments."""
    created(root, 1, **config)
    base_offsets = [0, *map(next_offset, segments_)]
    root.adopt("t", 0, dict(zip(base_offsets, segments_, strict=False)))


def sent_at(offset: int, rows_: Sequence[Sent]) -> list[Record]:
    return [
        Record(offset + n, row.timestamp, row.key, row.value, tuple(row.headers))
        for n, row in enumerate(rows_)
    ]


def survivors(before: Sequence[Record]) -> list[Record]:
    last = {record.key: record for record in before}
    return sorted(last.values(), key=lambda record: record.offset)


def contended(root: WrittenRoot) -> None:
    """Write two partitions; a writer that lost a race has its offsets shifted."""
    created(root, 2)
    for partition in (0, 1):
        root.append("t", rows(0, 60), partition)
        seen = root.state("t")
        root.append("t", rows(60, 60), partition, compression_type="zstd")
        root.append("t", rows(120, 60), partition, seen=seen, compression_type="gzip")
    assert max(root.state("t").segments["offset_shift"].to_pylist()) > 0
