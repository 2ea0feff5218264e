"""Where a log ends: torn tails are left out, damage is an error."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from klog.connector.log.tail import End, Flushed, find_end
from klog.errors import CorruptRecordError
from tests.connector.logs import entries_of, many, offset_index, open_segment, write_log
from tests.encode import GZIP, Record, batch, plain
from tests.encode_legacy import message, wrapper
from tests.logformat.golden import LEGACY

BATCHES = many(10)
SIZE = len(BATCHES[0])
WHOLE = b"".join(BATCHES)


def stopped(recovery_point: int, *, clean: bool = False) -> Flushed:
    """Say that a broker stopped, having flushed all below this offset."""
    return Flushed(recovery_point, clean=clean, held=False)


CLEAN, UNCLEAN = stopped(10, clean=True), stopped(0)
HELD = Flushed(0, clean=False, held=True)
BAD = BATCHES[9][:-1] + b"!"


def end_of(
    root: Path, data: bytes, flushed: Flushed, index: bytes | None = None, hint: End | None = None
) -> tuple[int, int]:
    directory = write_log(root, {0: [data]})
    path = directory / "00000000000000000000.index"
    path.unlink(missing_ok=True)
    if index is not None:
        path.write_bytes(index)
    reader = open_segment(directory)
    try:
        end = find_end(reader, flushed, hint)
    finally:
        reader.close()
    return end.next_offset, end.position


@pytest.mark.parametrize("flushed", [CLEAN, UNCLEAN, stopped(10), HELD])
def test_a_whole_log(tmp_path: Path, flushed: Flushed) -> None:
    assert end_of(tmp_path, WHOLE, flushed) == (10, 10 * SIZE)


def test_the_end_is_behind_offsets_that_have_no_record(tmp_path: Path) -> None:
    data = plain(0) + batch([Record(1, 0)], last_offset_delta=9)
    assert end_of(tmp_path, data, CLEAN) == (11, len(data))


@pytest.mark.parametrize("flushed", [stopped(8, clean=True), stopped(8), UNCLEAN, HELD])
def test_a_cut_at_any_byte_leaves_the_batches_before_it(tmp_path: Path, flushed: Flushed) -> None:
    for size in range(8 * SIZE, 9 * SIZE):
        assert end_of(tmp_path, WHOLE[:size], flushed) == (8, 8 * SIZE)


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
@pytest.mark.parametrize("flushed", [stopped(8, clean=True), stopped(8), UNCLEAN, HELD])
def test_a_torn_tail_is_left_out(tmp_path: Path, tail: bytes, flushed: Flushed) -> None:
    assert end_of(tmp_path, WHOLE[: 8 * SIZE] + tail, flushed) == (8, 8 * SIZE)


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("flushed", [stopped(9), stopped(1 << 40)])
def test_what_the_broker_had_flushed_is_no_torn_tail(
    tmp_path: Path, tail: bytes, flushed: Flushed
) -> None:
    with pytest.raises(CorruptRecordError, match="had flushed") as caught:
        end_of(tmp_path, WHOLE[: 8 * SIZE] + tail, flushed)
    assert caught.value.position == 8 * SIZE


@pytest.mark.parametrize("magic", [0, 1])
def test_garbage_that_resembles_an_older_format_is_left_out(tmp_path: Path, magic: int) -> None:
    # docs/format.md, 4, seen 30: garbage tails are cut, and the CRC is over magic to end.
    tail = b"\xaa" * 8 + (90).to_bytes(4, "big") + b"\xaa" * 4 + bytes([magic]) + b"\xaa" * 100
    assert end_of(tmp_path, WHOLE + tail, UNCLEAN) == (10, 10 * SIZE)


def test_a_log_of_zeros_only(tmp_path: Path) -> None:
    assert end_of(tmp_path, bytes(5000), stopped(0, clean=True)) == (0, 0)


def test_garbage_is_warned_of_and_padding_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    end_of(tmp_path, WHOLE + bytes(99), UNCLEAN)
    assert caplog.messages == []
    end_of(tmp_path, WHOLE + b"garbage", UNCLEAN)
    (message,) = caplog.messages
    assert f"7 bytes behind position {10 * SIZE} are a torn append" in message


def test_a_last_batch_with_a_bad_crc(tmp_path: Path) -> None:
    data = WHOLE[: 9 * SIZE] + BAD
    assert end_of(tmp_path, data, UNCLEAN) == (9, 9 * SIZE)
    assert end_of(tmp_path, data, HELD) == (10, 10 * SIZE)
    for flushed in (CLEAN, stopped(10)):
        with pytest.raises(CorruptRecordError, match="fails its CRC") as caught:
            end_of(tmp_path, data, flushed)
        assert caught.value.position == 9 * SIZE


def test_several_torn_batches(tmp_path: Path) -> None:
    torn = [one[:-1] + b"!" for one in BATCHES[6:]]
    data = WHOLE[: 6 * SIZE] + b"".join(torn)
    assert end_of(tmp_path, data, UNCLEAN) == (6, 6 * SIZE)
    assert end_of(tmp_path, b"".join(torn), UNCLEAN) == (0, 0)


@pytest.mark.parametrize("flushed", [CLEAN, UNCLEAN, stopped(100)])
def test_an_intact_batch_behind_damage_makes_it_an_error(tmp_path: Path, flushed: Flushed) -> None:
    for damage in (bytes(SIZE), b"\xff" * 77, BATCHES[5][:9] + b"\x7f" + BATCHES[5][10:]):
        data = WHOLE[: 5 * SIZE] + damage + WHOLE[6 * SIZE :]
        with pytest.raises(CorruptRecordError) as caught:
            end_of(tmp_path, data, flushed)
        assert caught.value.position == 5 * SIZE


def test_a_batch_damaged_outside_its_crc_is_an_error(tmp_path: Path) -> None:
    # docs/format.md, seen 26.
    for wrong in (batch([Record(9, 0)], magic=3), plain(3), plain(8)):
        with pytest.raises(CorruptRecordError) as caught:
            end_of(tmp_path, WHOLE[: 9 * SIZE] + wrong, UNCLEAN)
        assert caught.value.position == 9 * SIZE


def test_a_torn_batch_whose_length_still_leads_somewhere(tmp_path: Path) -> None:
    # A page of zeros inside the header: the count and the offsets are wrong, the length is not.
    torn = BATCHES[8][:12] + bytes(11) + b"\xff" * 4 + bytes(SIZE - 27)
    torn = torn[:16] + b"\2" + torn[17:]
    for data in (torn, torn + bytes(100)):
        assert end_of(tmp_path, WHOLE[: 8 * SIZE] + data, UNCLEAN) == (8, 8 * SIZE)


@pytest.mark.parametrize("base", [-5, 1 << 31, 1 << 50])
def test_a_first_batch_outside_its_segment(tmp_path: Path, base: int) -> None:
    one = plain(max(base, 0))
    data = base.to_bytes(8, "big", signed=True) + one[8:]
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
    assert end_of(tmp_path, WHOLE, CLEAN, index) == (10, 10 * SIZE)
    assert end_of(tmp_path, WHOLE + bytes(99), CLEAN, index) == (10, 10 * SIZE)


def test_a_hint_is_gone_on_from(tmp_path: Path) -> None:
    hint = End(7, 7 * SIZE, 6 * SIZE)
    assert end_of(tmp_path, WHOLE, CLEAN, hint=hint) == (10, 10 * SIZE)
    assert end_of(tmp_path, WHOLE[: 7 * SIZE], UNCLEAN, hint=hint) == (7, 7 * SIZE)
    # What lies before the hint is not looked at again.
    assert end_of(tmp_path, bytes(6 * SIZE) + WHOLE[6 * SIZE :], CLEAN, hint=hint)[0] == 10


@pytest.mark.parametrize("hint", [End(9, 7 * SIZE, 6 * SIZE), End(7, 7 * SIZE, 6 * SIZE - 1)])
def test_a_hint_that_the_batch_there_denies_is_dropped(tmp_path: Path, hint: End) -> None:
    """Another file may have the number of an inode that is free again."""
    assert end_of(tmp_path, WHOLE, CLEAN, hint=hint) == (10, 10 * SIZE)


# Logs of message formats v0 and v1.

MESSAGES = [message(Record(n, 1000 + n, b"k", b"%04d" % n), n % 2) for n in range(8)]
MESSAGES += [wrapper([Record(8, 1008, b"k", b"v"), Record(9, 1009)], 1, GZIP)]


@pytest.mark.parametrize("data", LEGACY.values(), ids=LEGACY)
@pytest.mark.parametrize("flushed", [CLEAN, UNCLEAN, stopped(100)])
def test_logs_of_older_formats_end_too(tmp_path: Path, data: bytes, flushed: Flushed) -> None:
    next_offset = 6 if len(data) == 38 else 8
    assert end_of(tmp_path, data, flushed) == (next_offset, len(data))


def test_every_cut_of_an_older_log(tmp_path: Path) -> None:
    data = b"".join(MESSAGES)
    ends = [0, *accumulate(map(len, MESSAGES))]
    for size in range(1, len(data) + 1):
        whole = max(n for n, end in enumerate(ends) if end <= size)
        next_offset = 10 if whole == 9 else whole
        assert end_of(tmp_path, data[:size], UNCLEAN) == (next_offset, ends[whole])


def test_a_last_message_with_a_bad_crc(tmp_path: Path) -> None:
    for number in (7, 8):
        whole = b"".join(MESSAGES[:number])
        torn = whole + MESSAGES[number][:-1] + b"!"
        assert end_of(tmp_path, torn, UNCLEAN) == (number, len(whole))
        for flushed in (CLEAN, stopped(number + 1)):
            with pytest.raises(CorruptRecordError, match="fails its CRC") as caught:
                end_of(tmp_path, torn, flushed)
            assert caught.value.position == len(whole)


@pytest.mark.parametrize("behind", [MESSAGES[6], MESSAGES[7], MESSAGES[8], plain(9)])
def test_an_intact_message_behind_damage_makes_it_an_error(tmp_path: Path, behind: bytes) -> None:
    whole = b"".join(MESSAGES[:5])
    for damage in (bytes(40), b"\xff" * 77, MESSAGES[5][:9] + b"\x7f" + MESSAGES[5][10:]):
        for rest in (b"", b"x" * 5, bytes(500)):
            with pytest.raises(CorruptRecordError, match="seems to follow") as caught:
                end_of(tmp_path, whole + damage + behind + rest, UNCLEAN)
            assert caught.value.position == len(whole)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_batch_of_v2_that_says_another_magic_is_an_error(tmp_path: Path, magic: int) -> None:
    # docs/format.md, seen 26: the magic is outside the CRC, so this is no torn append.
    wrong = batch([Record(9, 0, b"k", b"v")], magic=magic)
    with pytest.raises(CorruptRecordError, match=f"magic {magic} on a batch of format v2"):
        end_of(tmp_path, WHOLE[: 9 * SIZE] + wrong, UNCLEAN)
