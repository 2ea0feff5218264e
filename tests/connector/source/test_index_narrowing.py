"""What a plan and a task make of a segment's offset index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import google_crc32c
import pytest

from klog.connector.source.index_narrowing import IndexReads, narrow, range_facts
from klog.connector.source.slices import UNKNOWN
from klog.connector.store.local_store import LocalStore
from tests.connector.log_dirs import many, offset_index
from tests.contracts.slice_case import Files


def test_reads_of_a_failed_attempt_do_not_count() -> None:
    reads = IndexReads(3)
    with pytest.raises(ZeroDivisionError), reads.attempt():
        assert reads.take(2) // 0
    with reads.attempt():
        assert reads.take(2) == 2
    assert reads.take(2) == 1


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 100, (7, 99)), (0, 60, (7, UNKNOWN)), (10, 100, (UNKNOWN, UNKNOWN))],
)
def test_crc_is_known_of_all_bytes_and_the_first_offset_at_the_start(
    start: int, end: int, expected: tuple[int, int]
) -> None:
    assert range_facts(start, end, 100, 7, 99) == expected


def test_segment_that_an_index_does_not_narrow_keeps_its_crc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.contracts.slice_case.FILES", tmp_path)
    files, batches = Files("t", is_dry=False), many(4)
    slice_, size = files.committed(batches), len(batches[0])
    (tmp_path / "x.index").write_bytes(offset_index([(1, size), (2, 2 * size)]))
    store = LocalStore()
    file = store.open(slice_.path)
    for end_offset, crc32c in ((4, google_crc32c.value(b"".join(batches))), (1, UNKNOWN)):
        planned = replace(
            slice_,
            index_path=str(tmp_path / "x.index"),
            index_size_bytes=16,
            end_offset=end_offset,
        )
        assert narrow(store, planned, file).crc32c == crc32c
    file.close()
