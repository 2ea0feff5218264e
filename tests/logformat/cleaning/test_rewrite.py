"""What a cleaning writes of batches: the same bytes, or what Kafka's classes wrote of the same."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import numpy as np
import pytest

from klog.errors import CorruptRecordError
from klog.logformat.cleaning.marks import SegmentMarks
from klog.logformat.cleaning.rewrite import Fates, Rewrite
from klog.logformat.cleaning.thinned import thin_by
from klog.logformat.compiled import loops
from klog.logformat.index import Longs
from klog.logformat.restamp import Run, moved
from tests.encode import (
    ABORT,
    CODECS,
    COMMIT,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Record,
    batch,
    control,
    marker,
    sealed,
)
from tests.encode_legacy import plain as legacy_plain
from tests.encode_legacy import wrapper
from tests.logformat.cleaning.kafkas_rules import Batch, batches
from tests.logformat.cleaning.rounds import scan
from tests.logformat.decoding import by_klog

NOW_MS, RETENTION_MS = 5000, 86_400_000
HORIZON_MS = NOW_MS + RETENTION_MS
GOLDEN = bytes.fromhex(
    "00000000000000640000005700000003025104c9fe00000000000300000000000003e800000000000005dc000000"
    "0000000007000100000028000000041000000002610231001200e8070202620232001000900304026301001200c8"
    "01060264023400"
)
"""Offsets 100 to 103, leader epoch 3, producer 7 of epoch 1 from sequence 40: a, b, c (null), d."""
FOUR = [Record(10 + n, 1000 + n, b"k%d" % n, b"v%d" % n) for n in range(4)]
HEADERS = (("h", b"x"), ("h", None), ("", b""))


def marks(kept: str) -> SegmentMarks:
    """Take a sign a record: `x` it stays, `t` so does a tombstone, `.` it goes."""
    stay, tombstones = (
        np.packbits(np.array([sign in signs for sign in kept], np.bool_)).tobytes()
        for signs in ("xt", "t")
    )
    return SegmentMarks(len(kept), stay, tombstones if "t" in kept else b"", is_plain=False)


def fates(
    *kept_empty: int, spent: Sequence[int] = (), now_ms: int = NOW_MS, horizon_ms: int = HORIZON_MS
) -> Fates:
    return Fates(now_ms, horizon_ms, longs(kept_empty), longs(spent))


def longs(numbers: Sequence[int]) -> Longs:
    return np.array(numbers, np.int64)


def rewritten(data: bytes, kept: str, given: Fates | None = None) -> bytes:
    return b"".join(run.data for run in runs(data, kept, given))


def runs(data: bytes, kept: str, given: Fates | None = None) -> list[Run]:
    """Rewrite a segment; what comes is what it is said to be, also of what numba compiled."""
    compiled = Rewrite(marks(kept), given or fates(), thin_by(loops))
    one = Rewrite(marks(kept), given or fates())
    found = list(one.clean(data, scan(data)))
    one.close()
    assert [run.data for run in compiled.clean(data, scan(data))] == [run.data for run in found]
    for run in found:
        told, seen = run.batches, scan(run.data)
        assert told.starts.tolist() == seen.starts.tolist()
        assert told.ends.tolist() == seen.ends.tolist()
        assert told.headers.tobytes() == seen.headers.tobytes()
        assert told.ends[-1] == len(run.data)
    return found


def only(data: bytes) -> Batch:
    (one,) = batches(data)
    return one


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (
            "x..x",
            "0000000000000064000000440000000302e8109d1800000000000300000000000003e80000000000000"
            "44c0000000000000007000100000028000000021000000002610231001200c801060264023400",
        ),
        (
            "x.tx",
            "000000000000006400000054000000030260d4a8770040000000030000000005266f880000000000000"
            "4b00000000000000007000100000028000000031600bfaeb3520002610231001400afabb3520402630100"
            "1600f7acb352060264023400",
        ),
        (
            "....",
            "0000000000000064000000310000000302e3ba3fda000000000003ffffffffffffffff0000000000000"
            "5dc000000000000000700010000002800000000",
        ),
    ],
)
def test_it_writes_what_kafka_wrote(kept: str, expected: str) -> None:
    assert rewritten(GOLDEN, kept, fates(103)).hex() == expected


def test_a_batch_that_keeps_all_keeps_its_bytes() -> None:
    """Whoever wrote it: overlong varints, another compressor's output."""
    wide = batch(FOUR, wide=(3, 4, 2))
    packed = [batch(FOUR, attributes=codec) for codec in CODECS]
    stored = gzip_stored(FOUR)
    for data in (wide, stored, *packed):
        assert rewritten(data, "xxxx") == data


def gzip_stored(records: Sequence[Record]) -> bytes:
    """Write gzip as no encoder of klog's does: without compression."""
    plain = batch(records)[61:]
    payload = gzip.compress(plain, 0, mtime=9)
    return batch(records, attributes=GZIP, payload=payload)


def test_neighbours_that_stay_are_one_piece() -> None:
    segment = b"".join(
        batch([Record(offset, 1000, b"k", b"v"), Record(offset + 1, 1000, b"l", b"v")])
        for offset in range(0, 14, 2)
    )
    size = len(segment) // 7
    found = runs(segment, "xxxx..xxx.xxxx")
    assert [len(run.batches) for run in found] == [2, 1, 1, 2]
    assert found[0].data == segment[: 2 * size]
    assert found[1].data == segment[3 * size : 4 * size]
    assert found[3].data == segment[5 * size :]
    assert len(runs(segment, "x" * 14)) == 1
    assert runs(segment, "." * 14) == []


@pytest.mark.parametrize("codec", CODECS)
def test_it_keeps_codec_and_all_that_records_say(codec: int) -> None:
    own = [
        Record(10, 3000, b"a", b"1" * 50, HEADERS),
        Record(12, -1, b"b", b"2" * 50),
        Record(15, 1 << 40, b"", b"", HEADERS[:1]),
        Record(16, 2000, None, None),
    ]
    found = rewritten(batch(own, attributes=codec, last_offset_delta=9), ".xx.")
    assert by_klog(found) == own[1:3]
    (header,) = scan(found).headers
    assert header["attributes"] == codec
    assert (header["base_offset"], header["last_offset_delta"]) == (10, 9)
    assert (header["base_timestamp"], header["max_timestamp"]) == (-1, 1 << 40)


def test_what_a_header_says_stays() -> None:
    data = batch(
        FOUR,
        base_offset=7,
        last_offset_delta=8,
        attributes=TRANSACTIONAL,
        leader_epoch=9,
        producer_id=4000,
        producer_epoch=3,
        base_sequence=2147483647,
    )
    found, before = only(rewritten(data, ".xx.")), only(data)
    assert found.records == tuple(FOUR[1:3])
    for name in ("base_offset", "last_offset", "attributes", "leader_epoch", "producer_id"):
        assert getattr(found, name) == getattr(before, name)
    assert (found.producer_epoch, found.base_sequence) == (3, 2147483647)
    assert (found.base_timestamp, found.max_timestamp) == (1001, 1002)


def test_the_time_of_an_append_stays() -> None:
    data = batch(FOUR, attributes=LOG_APPEND_TIME, max_timestamp=7777)
    found = only(rewritten(data, "x..x"))
    assert found.attributes == LOG_APPEND_TIME
    assert found.max_timestamp == 7777
    assert [one.timestamp for one in found.records] == [7777, 7777]
    left = only(rewritten(data, "....", fates(13)))
    assert (left.attributes, left.max_timestamp) == (LOG_APPEND_TIME, 7777)


def test_a_horizon_is_set_once() -> None:
    """A later cleaning keeps it, whatever its own would be, and when no tombstone is left too."""
    own = [Record(0, 1000, b"a", None), Record(1, 1001, b"b", b"v"), Record(2, 1002, b"c", b"v")]
    first = rewritten(batch(own), "txx")
    assert only(first).attributes == DELETE_HORIZON
    assert only(first).base_timestamp == HORIZON_MS
    assert only(first).records == tuple(own)
    later = fates(now_ms=HORIZON_MS - 1, horizon_ms=HORIZON_MS + 99)
    assert rewritten(first, "txx", later) == first
    for kept, left in (("tx.", own[:2]), (".xx", own[1:])):
        found = only(rewritten(first, kept, later))
        assert (found.base_timestamp, found.records) == (HORIZON_MS, tuple(left))
        assert found.attributes == DELETE_HORIZON


def test_a_tombstone_goes_when_its_horizon_has_come() -> None:
    """By the cleaning's time, not the record's: this one is of long ago, and of far ahead."""
    own = [Record(0, 1, b"a", None), Record(1, 1 << 50, b"b", None), Record(2, 5, b"c", b"v")]
    first = rewritten(batch(own), "ttx")
    for now_ms, left in ((HORIZON_MS - 1, own), (HORIZON_MS, own[2:]), (HORIZON_MS + 1, own[2:])):
        found = only(rewritten(first, "ttx", fates(now_ms=now_ms, horizon_ms=now_ms + 1)))
        assert found.records == tuple(left)
    assert rewritten(batch(own[:2]), "tt", fates(now_ms=1 << 60)) != b""


@pytest.mark.parametrize("offset", [9, 14])
def test_an_empty_batch_goes_unless_it_is_needed(offset: int) -> None:
    data = batch(FOUR, base_offset=9, last_offset_delta=5)
    assert rewritten(data, "....") == b""
    assert rewritten(data, "....", fates(offset)) == (b"" if offset == 9 else rewritten_empty())
    left = rewritten_empty()
    assert rewritten(left, "", fates(14)) == left
    assert rewritten(left, "", fates(13, 15)) == b""


def rewritten_empty() -> bytes:
    return batch(base_offset=9, last_offset_delta=5, max_timestamp=1003)


@pytest.mark.parametrize("codec", CODECS)
def test_an_emptied_batch_has_neither_codec_nor_horizon(codec: int) -> None:
    data = batch(
        [Record(3, 1000, b"a", None)],
        attributes=codec | DELETE_HORIZON | TRANSACTIONAL,
        base_timestamp=2000,
        producer_id=1,
        producer_epoch=0,
        base_sequence=4,
    )
    found = rewritten(data, "t", fates(3))
    assert len(found) == 61
    left = only(found)
    assert (left.attributes, left.base_timestamp, left.max_timestamp) == (TRANSACTIONAL, -1, 1000)
    assert (left.producer_id, left.base_sequence) == (1, 4)


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_goes_in_two_steps(kind: int) -> None:
    data = marker(5, 1, kind)
    assert rewritten(data, "") == data
    first = rewritten(data, "", fates(spent=[5]))
    assert (len(data), len(first)) == (78, 81)  # The time's delta takes three bytes more.
    assert only(first).attributes == TRANSACTIONAL | CONTROL | DELETE_HORIZON
    assert only(first).base_timestamp == HORIZON_MS
    assert only(first).records == only(data).records
    before, then = fates(spent=[5], now_ms=HORIZON_MS - 1), fates(spent=[5], now_ms=HORIZON_MS)
    assert rewritten(first, "", before) == first
    assert rewritten(first, "", then) == b""
    # Data of the same transaction has come to light again, or never went.
    assert rewritten(first, "", fates(now_ms=HORIZON_MS)) == first


def test_a_marker_by_which_a_producer_is_known_stays_empty() -> None:
    data = rewritten(marker(5, 1, COMMIT), "", fates(spent=[5]))
    given = fates(5, spent=[5], now_ms=HORIZON_MS)
    found = rewritten(data, "", given)
    assert only(found).attributes == TRANSACTIONAL | CONTROL
    assert (len(found), only(found).producer_id) == (61, 1)
    assert rewritten(found, "", given) == found
    assert rewritten(found, "", fates()) == b""


def test_other_controls_stay() -> None:
    data = control(5, 2, attributes=CONTROL)
    assert rewritten(data, "", fates(now_ms=1 << 60)) == data


def test_controls_among_data_have_no_signs() -> None:
    log = batch(FOUR) + marker(14, 1, ABORT) + batch([Record(15, 1, b"x", b"y")])
    assert rewritten(log, "xxxx.") == log[: -len(batch([Record(15, 1, b"x", b"y")]))]
    assert rewritten(log, "....x") == log[len(batch(FOUR)) :]


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_of_old_formats_stay_as_they_are(magic: int) -> None:
    data = legacy_plain(FOUR, magic)
    size = len(data) // 4
    assert rewritten(data, "xxxx") == data
    assert rewritten(data, "x..x") == data[:size] + data[3 * size :]
    assert rewritten(data, "....") == b""


@pytest.mark.parametrize("codec", [GZIP, SNAPPY])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_is_made_a_batch_v2(magic: int, codec: int) -> None:
    """Its last offset stays, as that of a batch does: it may be the log's."""
    data = wrapper(FOUR, magic, codec)
    assert rewritten(data, "xxxx") == data
    found = rewritten(data, ".xx.")
    (header,) = scan(found).headers
    assert (header["magic"], header["attributes"]) == (2, codec)
    assert (header["base_offset"], header["last_offset_delta"]) == (11, 2)
    times = [1001, 1002] if magic else [-1, -1]
    assert [(one.offset, one.timestamp, one.key, one.value) for one in by_klog(found)] == [
        (n, time, b"k%d" % (n - 10), b"v%d" % (n - 10))
        for n, time in zip((11, 12), times, strict=True)
    ]
    assert rewritten(data, "....") == b""
    left = only(rewritten(data, "....", fates(13)))
    assert (left.base_offset, left.last_offset, left.records) == (13, 13, ())


def test_a_wrapper_of_append_time_stays_one() -> None:
    data = wrapper(FOUR, 1, GZIP, attributes=LOG_APPEND_TIME, timestamp=7777)
    found = rewritten(data, "x..x")
    (header,) = scan(found).headers
    assert header["attributes"] == GZIP | LOG_APPEND_TIME
    assert [one.timestamp for one in by_klog(found)] == [7777, 7777]


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_tombstone_gets_a_horizon_too(magic: int) -> None:
    """A broker goes by the file's time instead: klog's files have none that says anything."""
    tombstone = [Record(10, 1000, b"a", None)]
    for data in (legacy_plain(tombstone, magic), wrapper(tombstone, magic, GZIP)):
        first = rewritten(data, "t")
        (header,) = scan(first).headers
        assert header["magic"] == 2
        assert header["attributes"] & DELETE_HORIZON
        assert header["base_timestamp"] == HORIZON_MS
        assert [one.timestamp for one in by_klog(first)] == [1000 if magic else -1]
        assert rewritten(first, "t", fates(now_ms=HORIZON_MS)) == b""


def test_offsets_of_the_log_are_written() -> None:
    """Batches that are said to lie elsewhere than their bytes say; verbatim ones as they are."""
    data = batch(FOUR) + batch([Record(14, 9, b"x", b"1"), Record(15, 9, b"y", b"2")])
    one = Rewrite(marks("xxxx.x"), fates())
    found = list(one.clean(data, moved(scan(data), 90)))
    assert [run.batches.base_offsets.tolist() for run in found] == [[100], [104]]
    assert found[0].data == batch(FOUR)
    left = b"".join(run.stamped().data for run in found)
    assert [record.offset for record in by_klog(left)] == [100, 101, 102, 103, 105]
    assert [each.last_offset for each in batches(left)] == [103, 105]
    empty = Rewrite(marks("......"), fates(105))
    (run,) = empty.clean(data, moved(scan(data), 90))
    assert only(run.data).base_offset == 104


def test_a_segment_comes_in_chunks() -> None:
    log = batch(FOUR) + marker(14, 1, ABORT) + batch([Record(15, 1, b"x", b"y")])
    one, found = Rewrite(marks("x..xx"), fates()), b""
    some = scan(log)
    for at in range(3):
        found += b"".join(run.data for run in one.clean(log, some.part(at, at + 1)))
    one.close()
    assert found == rewritten(log, "x..xx")


def test_leaves_tells_without_writing() -> None:
    log = batch(FOUR) + marker(14, 1, ABORT)
    for kept, given, stays in (
        ("xxxx", fates(), True),
        ("xxx.", fates(), False),
        ("xxxt", fates(), False),
        ("xxxx", fates(spent=[14]), False),
        ("....", fates(), False),
        ("xxxx", fates(13), True),
    ):
        one = Rewrite(marks(kept), given)
        assert one.leaves(log, scan(log)) == stays
        one.close()


def with_count(data: bytes, count: int) -> bytes:
    return sealed(data[:57] + count.to_bytes(4, "big") + data[61:])


SIGNS = ("xxxx", "x..x", "....", "xxx", "x.x", "xxxxx", "x...x")


@pytest.mark.parametrize(
    ("count", "kept"),
    # What keeps all of as many records as were marked is not opened.
    [(n, kept) for n in (0, 1, 3) for kept in SIGNS if (n, kept) != (3, "xxx")],
)
@pytest.mark.parametrize("codec", [0, ZSTD])
def test_another_count_is_never_passed_over(codec: int, count: int, kept: str) -> None:
    """What was marked had other records than what is rewritten: no such batch is written."""
    data = with_count(batch(FOUR, attributes=codec), count)
    one = Rewrite(marks(kept), fates(13))
    with pytest.raises((CorruptRecordError, ValueError), match="record"):
        _cleaned(one, data)


def _cleaned(one: Rewrite, data: bytes) -> None:
    list(one.clean(data, scan(data)))
    one.close()


def test_more_records_than_were_marked() -> None:
    one = Rewrite(marks("xxx"), fates())
    with pytest.raises(ValueError, match="4 records where 3 were marked"):
        list(one.clean(batch(FOUR), scan(batch(FOUR))))


def test_fewer_records_than_were_marked() -> None:
    one = Rewrite(marks("xxxxx"), fates())
    list(one.clean(batch(FOUR), scan(batch(FOUR))))
    with pytest.raises(ValueError, match="4 records where 5 were marked"):
        one.close()


def test_a_time_before_any_is_none_in_an_empty_batch() -> None:
    """Brokers take timestamps below -1; where records have them they stay."""
    data = batch([Record(0, -50, b"a", b"1"), Record(1, -70, b"b", b"2")])
    assert only(rewritten(data, "..", fates(1))).max_timestamp == -1
    found = only(rewritten(data, ".x"))
    assert (found.base_timestamp, found.max_timestamp) == (-70, -70)
    assert found.records[0].timestamp == -70


@pytest.mark.parametrize(
    ("kept", "data"),
    [
        ("x.", batch(FOUR[:2], producer_id=1, producer_epoch=0)),
        ("..", batch(FOUR[:2], producer_id=1, producer_epoch=0)),
        ("..", batch(FOUR[:2], producer_id=1, base_sequence=0)),
        ("..", batch(FOUR[:2], attributes=TRANSACTIONAL)),
        ("..", batch(FOUR[:2], attributes=LOG_APPEND_TIME, max_timestamp=-9)),
        ("..", batch(FOUR[:2], leader_epoch=-9)),
    ],
    ids=["sequence", "none left", "epoch", "transaction", "append time", "leader epoch"],
)
def test_a_batch_that_nobody_may_write_is_damage(kept: str, data: bytes) -> None:
    front = batch([Record(0, 1, b"a", b"b")])
    one = Rewrite(marks("x" + kept), fates(11))
    with pytest.raises(CorruptRecordError, match="cannot be made anew") as caught:
        list(one.clean(front + data, scan(front + data)))
    assert caught.value.position == len(front)
