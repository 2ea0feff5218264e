"""The scan of a broker's segment: what it counts before kernels are loaded."""

from __future__ import annotations

import pytest

from klog.connector import compiled_kernels
from klog.connector.compiled_kernels import LazyKernel
from klog.connector.segment_chunks import Chunk
from klog.jobs.shared.segment_scan import SegmentScan
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers.transaction_outcomes import aborted_rows
from tests.support import legacy_bytes
from tests.support.batch_bytes import GZIP, Record


def test_all_messages_of_the_first_wrapper_of_a_chunk_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrapper has the offset of its last message, so the offset before it is needed."""
    counts: list[int | None] = []
    kernels: LazyKernel[None] = LazyKernel(lambda: None, 1 << 40)

    def get(records: int | None = None) -> None:
        counts.append(records)

    monkeypatch.setattr(kernels, "get", get)
    monkeypatch.setattr(compiled_kernels, "LEGACY", kernels)
    scan, position = SegmentScan(100, 140, aborted_rows([])), 0
    for first in (100, 120):
        records = [Record(first + index, 1000, b"k", b"value" * 20) for index in range(20)]
        data = legacy_bytes.wrapper(records, 1, GZIP)
        scan.add(Chunk(data, position, scan_batches(data, 0, len(data))))
        position += len(data)
    assert [count for count in counts if count] == [20, 20]
