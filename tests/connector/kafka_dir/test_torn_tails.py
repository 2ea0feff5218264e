"""Where a log ends: torn tails are left out, damage is an error."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from klog.connector.kafka_dir.log_bounds import LogEnd, RecoveryPoint
from klog.connector.kafka_dir.log_end import find_segment_end
from klog.errors import CorruptRecordError
from tests.connector.log_dirs import entries_of, many, offset_index, open_segment, write_log
from tests.logformat.golden_vectors import LEGACY
from tests.support.batch_bytes import GZIP, Record, batch, plain
from tests.support.legacy_bytes import message, wrapper

BATCHES = many(10)
SIZE = len(BATCHES[0])
LOG = b"".join(BATCHES)


def recovery_point_of(offset: int, *, clean: bool = False) -> RecoveryPoint:
    """Return what a broker promises that stopped after it had flushed all below an offset."""
    return RecoveryPoint(offset, is_cleanly_shut_down=clean, is_locked_by_broker=False)


CLEAN, UNCLEAN = recovery_point_of(10, clean=True), recovery_point_of(0)
LOCKED = RecoveryPoint(0, is_cleanly_shut_down=False, is_locked_by_broker=True)
BAD = BATCHES[9][:-1] + b"!"


def end_of(
    root: Path,
    data: bytes,
    recovery_point: RecoveryPoint,
    index: bytes | None = None,
    hint: LogEnd | None = None,
) -> tuple[int, int]:
    directory = write_log(root, {0: [data]})
    path = directory / "00000000000000000000.index"
    path.unlink(missing_ok=True)
    if index is not None:
        path.write_bytes(index)
    reader = open_segment(directory)
    try:
        end = find_segment_end(reader, recovery_point, hint)
    finally:
        reader.close()
    return end.next_offset, end.position


@pytest.mark.parametrize("recovery_point", [CLEAN, UNCLEAN, recovery_point_of(10), LOCKED])
def test_a_whole_log(tmp_path: Path, recovery_point: RecoveryPoint) -> None:
    assert end_of(tmp_path, LOG, recovery_point) == (10, 10 * SIZE)


def test_end_is_after_offsets_without_a_record(tmp_path: Path) -> None:
    data = plain(0) + batch([Record(1, 0)], last_offset_delta=9)
    assert end_of(tmp_path, data, CLEAN) == (11, len(data))


@pytest.mark.parametrize(
    "recovery_point", [recovery_point_of(8, clean=True), recovery_point_of(8), UNCLEAN, LOCKED]
)
def test_a_cut_at_any_byte_leaves_the_batches_before_it(
    tmp_path: Path, recovery_point: RecoveryPoint
) -> None:
    for size in range(8 * SIZE, 9 * SIZE):
        assert end_of(tmp_path, LOG[:size], recovery_point) == (8, 8 * SIZE)


TAILS = [
    pytest.param(BATCHES[8][:-1], id="cut short"),
    pytest.param(BATCHES[8][:7], id="less than a header"),
    pytest.param(bytes(1), id="a zero"),
    pytest.param(bytes(60), id="zeros, less than a header"),
    pytest.param(bytes(5000), id="zeros"),
    pytest.param(b"\xff" * 200, id="ones"),
    pytest.param(b"garbage" * 30, id="garbage"),
    pytest.param(bytes(100) + b"\1", id="zeros and a one"),
]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize(
    "recovery_point", [recovery_point_of(8, clean=True), recovery_point_of(8), UNCLEAN, LOCKED]
)
def test_a_torn_tail_is_left_out(
    tmp_path: Path, tail: bytes, recovery_point: RecoveryPoint
) -> None:
    assert end_of(tmp_path, LOG[: 8 * SIZE] + tail, recovery_point) == (8, 8 * SIZE)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("recovery_point", [recovery_point_of(9), recovery_point_of(1 << 40)])
def test_flushed_bytes_are_not_a_torn_tail(
    tmp_path: Path, tail: bytes, recovery_point: RecoveryPoint
) -> None:
    with pytest.raises(CorruptRecordError, match="had flushed") as caught:
        end_of(tmp_path, LOG[: 8 * SIZE] + tail, recovery_point)
    assert caught.value.position == 8 * SIZE


@pytest.mark.parametrize("magic", [0, 1])
def test_tail_that_resembles_an_older_format_is_left_out(tmp_path: Path, magic: int) -> None:
    # docs/format.md, 4, seen 30: garbage tails are cut, and the CRC is over magic to end.
    tail = b"\xaa" * 8 + (90).to_bytes(4, "big") + b"\xaa" * 4 + bytes([magic]) + b"\xaa" * 100
    assert end_of(tmp_path, LOG + tail, UNCLEAN) == (10, 10 * SIZE)


def test_a_log_of_zeros_only(tmp_path: Path) -> None:
    assert end_of(tmp_path, bytes(5000), recovery_point_of(0, clean=True)) == (0, 0)


def test_torn_tail_is_a_warning_and_padding_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    end_of(tmp_path, LOG + bytes(99), UNCLEAN)
    assert caplog.messages == []
    end_of(tmp_path, LOG + b"garbage", UNCLEAN)
    (message,) = caplog.messages
    assert f"7 bytes after position {10 * SIZE} are a torn append" in message


def test_a_last_batch_with_a_bad_crc(tmp_path: Path) -> None:
    data = LOG[: 9 * SIZE] + BAD
    assert end_of(tmp_path, data, UNCLEAN) == (9, 9 * SIZE)
    assert end_of(tmp_path, data, LOCKED) == (10, 10 * SIZE)
    for recovery_point in (CLEAN, recovery_point_of(10)):
        with pytest.raises(CorruptRecordError, match="fails its CRC") as caught:
            end_of(tmp_path, data, recovery_point)
        assert caught.value.position == 9 * SIZE


def test_several_torn_batches(tmp_path: Path) -> None:
    torn = [intact[:-1] + b"!" for intact in BATCHES[6:]]
    data = LOG[: 6 * SIZE] + b"".join(torn)
    assert end_of(tmp_path, data, UNCLEAN) == (6, 6 * SIZE)
    assert end_of(tmp_path, b"".join(torn), UNCLEAN) == (0, 0)


@pytest.mark.parametrize("recovery_point", [CLEAN, UNCLEAN, recovery_point_of(100)])
def test_intact_batch_after_damage_makes_it_an_error(
    tmp_path: Path, recovery_point: RecoveryPoint
) -> None:
    for damage in (bytes(SIZE), b"\xff" * 77, BATCHES[5][:9] + b"\x7f" + BATCHES[5][10:]):
        data = LOG[: 5 * SIZE] + damage + LOG[6 * SIZE :]
        with pytest.raises(CorruptRecordError) as caught:
            end_of(tmp_path, data, recovery_point)
        assert caught.value.position == 5 * SIZE


def test_a_batch_damaged_outside_its_crc_is_an_error(tmp_path: Path) -> None:
    # docs/format.md, seen 26.
    for damaged in (batch([Record(9, 0)], magic=3), plain(3), plain(8)):
        with pytest.raises(CorruptRecordError) as caught:
            end_of(tmp_path, LOG[: 9 * SIZE] + damaged, UNCLEAN)
        assert caught.value.position == 9 * SIZE


def test_a_torn_batch_whose_length_still_leads_somewhere(tmp_path: Path) -> None:
    # A page of zeros inside the header: the count and the offsets are wrong, the length is not.
    torn = BATCHES[8][:12] + bytes(11) + b"\xff" * 4 + bytes(SIZE - 27)
    torn = torn[:16] + b"\2" + torn[17:]
    for data in (torn, torn + bytes(100)):
        assert end_of(tmp_path, LOG[: 8 * SIZE] + data, UNCLEAN) == (8, 8 * SIZE)


@pytest.mark.parametrize("base", [-5, 1 << 31, 1 << 50])
def test_a_first_batch_outside_its_segment(tmp_path: Path, base: int) -> None:
    first = plain(max(base, 0))
    data = base.to_bytes(8, "big", signed=True) + first[8:]
    with pytest.raises(CorruptRecordError):
        end_of(tmp_path, data, CLEAN)


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(offset_index(entries_of(BATCHES, 3)), id="true"),
        pytest.param(offset_index([(8, 8 * SIZE), (50, 90 * SIZE)]), id="past the end"),
        pytest.param(offset_index([(8, 8 * SIZE + 1)]), id="no batch there"),
        pytest.param(b"garbage", id="garbage"),
        pytest.param(b"", id="empty"),
    ],
)
def test_no_index_hides_the_end(tmp_path: Path, index: bytes) -> None:
    # docs/format.md, seen 28: a broker drops the tail; klog reads it.
    assert end_of(tmp_path, LOG, CLEAN, index) == (10, 10 * SIZE)
    assert end_of(tmp_path, LOG + bytes(99), CLEAN, index) == (10, 10 * SIZE)


def test_search_goes_on_from_a_hint(tmp_path: Path) -> None:
    hint = LogEnd(7, 7 * SIZE, 6 * SIZE)
    assert end_of(tmp_path, LOG, CLEAN, hint=hint) == (10, 10 * SIZE)
    assert end_of(tmp_path, LOG[: 7 * SIZE], UNCLEAN, hint=hint) == (7, 7 * SIZE)
    # What lies before the hint is not looked at again.
    assert end_of(tmp_path, bytes(6 * SIZE) + LOG[6 * SIZE :], CLEAN, hint=hint)[0] == 10


@pytest.mark.parametrize("hint", [LogEnd(9, 7 * SIZE, 6 * SIZE), LogEnd(7, 7 * SIZE, 6 * SIZE - 1)])
def test_a_hint_that_the_batch_there_denies_is_dropped(tmp_path: Path, hint: LogEnd) -> None:
    """Another file may have the number of an inode that is free again."""
    assert end_of(tmp_path, LOG, CLEAN, hint=hint) == (10, 10 * SIZE)


# Logs of message formats v0 and v1.

MESSAGES = [message(Record(n, 1000 + n, b"k", b"%04d" % n), n % 2) for n in range(8)]
MESSAGES += [wrapper([Record(8, 1008, b"k", b"v"), Record(9, 1009)], 1, GZIP)]


@pytest.mark.parametrize("data", LEGACY.values(), ids=LEGACY)
@pytest.mark.parametrize("recovery_point", [CLEAN, UNCLEAN, recovery_point_of(100)])
def test_logs_of_older_formats_end_too(
    tmp_path: Path, data: bytes, recovery_point: RecoveryPoint
) -> None:
    next_offset = 6 if len(data) == 38 else 8
    assert end_of(tmp_path, data, recovery_point) == (next_offset, len(data))


def test_every_cut_of_an_older_log(tmp_path: Path) -> None:
    data = b"".join(MESSAGES)
    ends = [0, *accumulate(map(len, MESSAGES))]
    for size in range(1, len(data) + 1):
        count = max(n for n, end in enumerate(ends) if end <= size)
        next_offset = 10 if count == 9 else count
        assert end_of(tmp_path, data[:size], UNCLEAN) == (next_offset, ends[count])


def test_a_last_message_with_a_bad_crc(tmp_path: Path) -> None:
    for number in (7, 8):
        intact = b"".join(MESSAGES[:number])
        torn = intact + MESSAGES[number][:-1] + b"!"
        assert end_of(tmp_path, torn, UNCLEAN) == (number, len(intact))
        for recovery_point in (CLEAN, recovery_point_of(number + 1)):
            with pytest.raises(CorruptRecordError, match="fails its CRC") as caught:
                end_of(tmp_path, torn, recovery_point)
            assert caught.value.position == len(intact)


@pytest.mark.parametrize("following", [MESSAGES[6], MESSAGES[7], MESSAGES[8], plain(9)])
def test_intact_message_after_damage_makes_it_an_error(tmp_path: Path, following: bytes) -> None:
    intact = b"".join(MESSAGES[:5])
    for damage in (bytes(40), b"\xff" * 77, MESSAGES[5][:9] + b"\x7f" + MESSAGES[5][10:]):
        for more in (b"", b"x" * 5, bytes(500)):
            with pytest.raises(CorruptRecordError, match="seems to follow") as caught:
                end_of(tmp_path, intact + damage + following + more, UNCLEAN)
            assert caught.value.position == len(intact)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_batch_of_v2_that_says_another_magic_is_an_error(tmp_path: Path, magic: int) -> None:
    # docs/format.md, seen 26: the magic is outside the CRC, so this is not a torn append.
    wrong = batch([Record(9, 0, b"k", b"v")], magic=magic)
    with pytest.raises(CorruptRecordError, match=f"magic {magic} on a batch of format v2"):
        end_of(tmp_path, LOG[: 9 * SIZE] + wrong, UNCLEAN)
