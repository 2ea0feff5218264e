"""What becomes of each batch: unchanged, rewritten, emptied or deleted."""

from __future__ import annotations

import pytest

from klog.logformat.array_types import Mask
from klog.logformat.cleaning.batch_retention import count_by_batch, plan_batch_retention
from tests.logformat.cleaning.cleaned_segments import (
    FOUR,
    HORIZON_MS,
    cleaned_bytes,
    context_of,
    longs,
    only_batch,
)
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.support.batch_bytes import (
    ABORT,
    CODECS,
    COMMIT,
    CONTROL,
    DELETE_HORIZON,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
)

EMPTY = batch(base_offset=9, last_offset_delta=5, max_timestamp=1003)


def test_plan_of_each_kind_of_batch() -> None:
    records = [Record(0, 1, b"a", b"v"), Record(1, 1, b"b", b"v")]
    segment = b"".join(
        batch([Record(2 * number + row.offset, 1, row.key, row.value) for row in records])
        for number in range(4)
    )
    retained: Mask = longs([1, 1, 1, 0, 0, 0, 0, 0]) != 0
    plan = plan_batch_retention(
        scan(segment), longs([2] * 4), retained, retained & False, context_of(5)
    )
    assert plan.is_unchanged.tolist() == [True, False, False, False]
    assert plan.is_rewritten.tolist() == [False, True, False, False]
    assert plan.is_emptied.tolist() == [False, False, True, False]
    assert not plan.has_horizon.any()


def test_count_by_batch() -> None:
    mask: Mask = longs([1, 0, 1, 1, 0]) != 0
    assert count_by_batch(mask, longs([2, 0, 1, 2])).tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("offset", [9, 14])
def test_batch_without_records_goes_unless_its_offset_is_retained(offset: int) -> None:
    data = batch(FOUR, base_offset=9, last_offset_delta=5)
    assert cleaned_bytes(data, "....") == b""
    assert cleaned_bytes(data, "....", context_of(offset)) == (b"" if offset == 9 else EMPTY)
    assert cleaned_bytes(EMPTY, "", context_of(14)) == EMPTY
    assert cleaned_bytes(EMPTY, "", context_of(13, 15)) == b""


@pytest.mark.parametrize("codec", CODECS)
def test_emptied_batch_has_neither_codec_nor_horizon(codec: int) -> None:
    data = batch(
        [Record(3, 1000, b"a", None)],
        attributes=codec | DELETE_HORIZON | TRANSACTIONAL,
        base_timestamp=2000,
        producer_id=1,
        producer_epoch=0,
        base_sequence=4,
    )
    cleaned = cleaned_bytes(data, "t", context_of(3))
    assert len(cleaned) == 61
    empty = only_batch(cleaned)
    assert (empty.attributes, empty.base_timestamp) == (TRANSACTIONAL, -1)
    assert empty.max_timestamp == 1000
    assert (empty.producer_id, empty.base_sequence) == (1, 4)


def test_marker_of_an_active_producer_is_emptied() -> None:
    data = cleaned_bytes(marker(5, 1, COMMIT), "", context_of(removable=[5]))
    context = context_of(5, removable=[5], now_ms=HORIZON_MS)
    cleaned = cleaned_bytes(data, "", context)
    assert only_batch(cleaned).attributes == TRANSACTIONAL | CONTROL
    assert (len(cleaned), only_batch(cleaned).producer_id) == (61, 1)
    assert cleaned_bytes(cleaned, "", context) == cleaned
    assert cleaned_bytes(cleaned, "", context_of()) == b""


def test_other_control_batches_are_unchanged() -> None:
    data = control(5, 2, attributes=CONTROL)
    assert cleaned_bytes(data, "", context_of(now_ms=1 << 60)) == data


def test_control_batches_among_data_have_no_bits() -> None:
    last = batch([Record(15, 1, b"x", b"y")])
    log = batch(FOUR) + marker(14, 1, ABORT) + last
    assert cleaned_bytes(log, "xxxx.") == log[: -len(last)]
    assert cleaned_bytes(log, "....x") == log[len(batch(FOUR)) :]


def test_emptied_batch_has_no_timestamp_below_minus_one() -> None:
    """Brokers accept timestamps below -1; records that have them keep them."""
    data = batch([Record(0, -50, b"a", b"1"), Record(1, -70, b"b", b"2")])
    assert only_batch(cleaned_bytes(data, "..", context_of(1))).max_timestamp == -1
    rewritten = only_batch(cleaned_bytes(data, ".x"))
    assert (rewritten.base_timestamp, rewritten.max_timestamp) == (-70, -70)
    assert rewritten.records[0].timestamp == -70
