"""What headers say of records is what the records say, and no more than that."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import decode_records
from klog.logformat.batches.header_records import are_headers_enough, decode_by_headers
from klog.logformat.batches.record_batch import Batches
from klog.logformat.batches.record_columns import RecordColumns
from klog.logformat.batches.record_sections import record_sections
from klog.logformat.batches.scan_batches import scan_batches
from tests.support.batch_bytes import (
    CODECS,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    Record,
    batch,
)

NUMBERS = ("offset", "timestamp_ms", "timestamp_type")


def records(offsets: Sequence[int], times: Sequence[int]) -> list[Record]:
    return [
        Record(offset, time, b"k", b"v" * offset)
        for offset, time in zip(offsets, times, strict=True)
    ]


def is_enough(data: bytes, *columns: str) -> bool:
    mask = are_headers_enough(scan_batches(data, 0, len(data)), columns)
    return bool(mask.all())


DENSE = batch(records((5, 6, 7), (9, 9, 9)))
GAPPED = batch(records((5, 7), (9, 9)))
ENDS_EARLY = batch(records((5, 6), (9, 9)), last_offset_delta=2)
BEGINS_LATE = batch(records((6, 7), (9, 9)), base_offset=5)
ONE = batch(records((5,), (9,)))


@pytest.mark.parametrize(
    ("data", "offsets", "times"),
    [
        (DENSE, True, False),
        (GAPPED, False, False),
        (ENDS_EARLY, False, False),
        (BEGINS_LATE, False, False),
        (ONE, True, True),
        (batch(records((5,), (9,)), base_offset=4), False, True),
        # The first and the largest timestamp are 9, and the one between is not.
        (batch(records((5, 6, 7), (9, 1, 9))), True, False),
        (batch(records((5, 6), (1, 2)), attributes=LOG_APPEND_TIME, max_timestamp=9), True, True),
        (batch(records((5, 7), (1, 2)), attributes=LOG_APPEND_TIME, max_timestamp=9), False, True),
        # The base timestamp is a delete horizon.
        (batch(records((5,), (9,)), attributes=DELETE_HORIZON, base_timestamp=9), True, False),
        (batch(records((5,), (9,)), base_timestamp=4), True, False),
        (batch(records((5, 6), (9, 9)), attributes=GZIP), True, False),
    ],
)
def test_what_a_header_is_enough_for(data: bytes, offsets: bool, times: bool) -> None:
    assert is_enough(data)
    assert is_enough(data, "timestamp_type")
    assert is_enough(data, "offset") == offsets
    assert is_enough(data, "timestamp_ms") == times
    assert is_enough(data, *NUMBERS) == (offsets and times)
    for name in ("key", "value", "headers", "is_tombstone"):
        assert not is_enough(data, "offset", name)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Draw batches of every kind: dense or with gaps, of one or many times, of each codec."""
    log, offset = b"", 0
    for _ in range(draw(st.integers(1, 8))):
        base = offset + draw(st.integers(0, 2))
        steps = draw(st.lists(st.integers(1, draw(st.sampled_from([1, 3]))), min_size=1))
        offsets = (base - 1 + np.cumsum(steps)).tolist()
        size = len(offsets)
        times = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        flags = draw(st.sampled_from(CODECS)) | draw(st.sampled_from([0, LOG_APPEND_TIME]))
        rest = draw(st.integers(0, 1))
        log += batch(
            records(offsets, times),
            base_offset=base,
            attributes=flags,
            last_offset_delta=offsets[-1] - base + rest,
        )
        offset = offsets[-1] + rest + 1
    return log


@given(logs(), st.sets(st.sampled_from(NUMBERS)))
def test_rows_are_those_of_the_records(log: bytes, columns: set[str]) -> None:
    expected = decoded(log, columns)
    parts = list(by_headers(log, columns))
    result = RecordColumns.concat(parts)
    for name in columns:
        assert getattr(result, name).tolist() == getattr(expected, name).tolist()
        assert getattr(result, name).dtype == getattr(expected, name).dtype
    assert len(result.offset) == len(expected.offset)
    assert (np.diff(result.offset) > 0).all(), "a read that is interrupted goes on after the last"


def test_without_offsets_the_last_one_is_the_batchs() -> None:
    (columns,) = by_headers(GAPPED + batch(records((8, 9), (1, 1)), last_offset_delta=4), ())
    assert columns.offset.tolist() == [6, 7, 11, 12]
    assert columns.timestamp_ms is None


def test_only_the_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(data: bytes, batches: Batches, part_bytes: int) -> object:
        read.extend(batches.base_offsets.tolist())
        return record_sections(data, batches, part_bytes)

    monkeypatch.setattr(decode_records, "record_sections", counted)
    log = b"".join(
        batch(records(offsets, [0] * len(offsets)), attributes=GZIP, last_offset_delta=9)
        if len(offsets) < 10
        else batch(records(offsets, [0] * 10), attributes=GZIP)
        for offsets in (range(10), (10, 12), range(20, 30), (30,), range(40, 50))
    )
    (columns,) = by_headers(log, ("offset",))
    assert columns.offset.tolist() == [*range(10), 10, 12, *range(20, 30), 30, *range(40, 50)]
    assert read == [10, 30]


def test_a_part_has_a_bounded_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klog.logformat.batches.header_records._BLOCK_RECORDS", 25)
    log = b"".join(batch(records(range(n, n + 10), [0] * 10)) for n in range(0, 70, 10))
    assert [len(part.offset) for part in by_headers(log, ("offset",))] == [20, 20, 20, 10]


def test_a_count_that_no_memory_holds_is_refused() -> None:
    data = batch(count=1 << 30, last_offset_delta=(1 << 30) - 1, payload=b"")
    with pytest.raises(CorruptRecordError, match="a batch of 1073741824 records is refused"):
        list(by_headers(data, ("offset",)))


@pytest.mark.parametrize("payload_bytes", [13, 14])
def test_a_count_that_its_bytes_do_not_hold_is_refused(payload_bytes: int) -> None:
    data = batch(count=2, last_offset_delta=1, payload=bytes(payload_bytes))
    if payload_bytes == 14:  # The smallest records take seven bytes each.
        assert [part.offset.tolist() for part in by_headers(data, ("offset",))] == [[0, 1]]
        return
    with pytest.raises(CorruptRecordError, match="2 records in 13 bytes"):
        list(by_headers(data, ("offset",)))


def decoded(log: bytes, columns: Collection[str]) -> RecordColumns:
    return decode_records.decode_records(log, scan_batches(log, 0, len(log)), columns)


def by_headers(log: bytes, columns: Collection[str]) -> Sequence[RecordColumns]:
    batches = scan_batches(log, 0, len(log))
    mask = are_headers_enough(batches, columns)
    return list(decode_by_headers(log, batches, columns, mask))
