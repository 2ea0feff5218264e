"""When a tombstone goes, and a removable marker: two cleanings and a delete horizon."""

from __future__ import annotations

import pytest

from klog.logformat.cleaning.tombstone_retention import (
    delete_horizons,
    drop_expired_tombstones,
    has_delete_horizon,
    is_past_delete_horizon,
)
from tests.logformat.cleaning.cleaned_segments import (
    HORIZON_MS,
    cleaned_bytes,
    context_of,
    longs,
    only_batch,
)
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.logformat.reference_decoder import decode_with_klog
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    TRANSACTIONAL,
    Record,
    batch,
    marker,
)
from tests.support.legacy_bytes import plain as legacy_plain
from tests.support.legacy_bytes import wrapper

TOMBSTONE = batch([Record(0, 1000, b"a", None)])
WITH_HORIZON = batch(
    [Record(1, 1000, b"a", None), Record(2, 1000, b"b", b"v")],
    attributes=DELETE_HORIZON,
    base_timestamp=2000,
)


def test_horizon_is_the_base_timestamp_of_flagged_batches() -> None:
    batches = scan(TOMBSTONE + WITH_HORIZON)
    assert has_delete_horizon(batches).tolist() == [False, True]
    for now_ms, is_past in ((1999, False), (2000, True), (2001, True)):
        assert is_past_delete_horizon(batches, now_ms).tolist() == [False, is_past]
    assert delete_horizons(batches, longs([1, 0]) != 0, 9000).tolist() == [9000, 2000]


@pytest.mark.parametrize(("now_ms", "signs"), [(1999, "xxx"), (2000, "x.x")])
def test_only_tombstones_past_their_horizon_are_dropped(now_ms: int, signs: str) -> None:
    batches = scan(TOMBSTONE + WITH_HORIZON)
    retained, tombstones = longs([1, 1, 1]) != 0, longs([1, 1, 0]) != 0
    after = drop_expired_tombstones(batches, longs([1, 2]), retained, tombstones, now_ms)
    assert after.tolist() == [sign == "x" for sign in signs]


def test_horizon_is_set_once() -> None:
    """A later cleaning keeps it, whatever its own would be, and without a tombstone too."""
    records = [
        Record(0, 1000, b"a", None),
        Record(1, 1001, b"b", b"v"),
        Record(2, 1002, b"c", b"v"),
    ]
    first = cleaned_bytes(batch(records), "txx")
    assert only_batch(first).attributes == DELETE_HORIZON
    assert only_batch(first).base_timestamp == HORIZON_MS
    assert only_batch(first).records == tuple(records)
    later = context_of(now_ms=HORIZON_MS - 1, horizon_ms=HORIZON_MS + 99)
    assert cleaned_bytes(first, "txx", later) == first
    for signs, left in (("tx.", records[:2]), (".xx", records[1:])):
        cleaned = only_batch(cleaned_bytes(first, signs, later))
        assert (cleaned.base_timestamp, cleaned.records) == (HORIZON_MS, tuple(left))
        assert cleaned.attributes == DELETE_HORIZON


def test_tombstone_goes_at_its_horizon() -> None:
    """The time of the cleaning counts, not that of the record."""
    records = [
        Record(0, 1, b"a", None),
        Record(1, 1 << 50, b"b", None),
        Record(2, 5, b"c", b"v"),
    ]
    first = cleaned_bytes(batch(records), "ttx")
    for now_ms, left in (
        (HORIZON_MS - 1, records),
        (HORIZON_MS, records[2:]),
        (HORIZON_MS + 1, records[2:]),
    ):
        context = context_of(now_ms=now_ms, horizon_ms=now_ms + 1)
        assert only_batch(cleaned_bytes(first, "ttx", context)).records == tuple(left)
    assert cleaned_bytes(batch(records[:2]), "tt", context_of(now_ms=1 << 60)) != b""


@pytest.mark.parametrize("magic", [0, 1])
def test_tombstone_of_an_old_format_gets_a_horizon(magic: int) -> None:
    """A broker goes by the file's time instead; the time of klog's files has no meaning."""
    tombstone = [Record(10, 1000, b"a", None)]
    for data in (legacy_plain(tombstone, magic), wrapper(tombstone, magic, GZIP)):
        first = cleaned_bytes(data, "t")
        (header,) = scan(first).headers
        assert header["magic"] == 2
        assert header["attributes"] & DELETE_HORIZON
        assert header["base_timestamp"] == HORIZON_MS
        assert [record.timestamp for record in decode_with_klog(first)] == [1000 if magic else -1]
        assert cleaned_bytes(first, "t", context_of(now_ms=HORIZON_MS)) == b""


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_removable_marker_goes_at_its_horizon(kind: int) -> None:
    data = marker(5, 1, kind)
    assert cleaned_bytes(data, "") == data
    first = cleaned_bytes(data, "", context_of(removable=[5]))
    assert (len(data), len(first)) == (78, 81)  # The timestamp delta takes three more bytes.
    assert only_batch(first).attributes == TRANSACTIONAL | CONTROL | DELETE_HORIZON
    assert only_batch(first).base_timestamp == HORIZON_MS
    assert only_batch(first).records == only_batch(data).records
    before = context_of(removable=[5], now_ms=HORIZON_MS - 1)
    assert cleaned_bytes(first, "", before) == first
    assert cleaned_bytes(first, "", context_of(removable=[5], now_ms=HORIZON_MS)) == b""
    # Without `removable` there is data of the transaction.
    assert cleaned_bytes(first, "", context_of(now_ms=HORIZON_MS)) == first
