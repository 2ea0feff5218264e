"""Offset and leader epoch checkpoints (docs/format.md, 13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.checkpoint import (
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
    read_epoch_checkpoint,
    read_offset_checkpoint,
)
from klog.logformat.epochs import EpochEntry, LeaderEpochs


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"0\n2\nmy-topic 0 120\nt.x 11 0\n", {("my-topic", 0): 120, ("t.x", 11): 0}),
        (b"0\n0\n", {}),
        (b"", {}),
        (b"0", {}),
        (b"0\n", {}),
        (b"0\n1\nt 0 5 \t\n", {("t", 0): 5}),
        (b"0\n1\nt 0 5", {("t", 0): 5}),
        (b"0\n1\nt\t0  5\n", {("t", 0): 5}),
        (b"0\r\n1\r\nt 0 5\r\n", {("t", 0): 5}),
        (b"0\n1\nt 0 9223372036854775807\n", {("t", 0): (1 << 63) - 1}),
        (b"0\n2\nt 0 5\nt 0 6\n", {("t", 0): 6}),
    ],
)
def test_offset_checkpoints(data: bytes, found: dict[tuple[str, int], int]) -> None:
    assert read_offset_checkpoint(data) == found


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"1\n1\nt 0 5\n", id="version 1"),
        pytest.param(b"x\n1\nt 0 5\n", id="no version"),
        pytest.param(b"1\n", id="version 1 without a count"),
        pytest.param(b"0\n\n", id="an empty count"),
        pytest.param(b"0 \n1\nt 0 5\n", id="white space behind the version"),
        pytest.param(b"0\n1 \nt 0 5\n", id="white space behind the count"),
        pytest.param(b"0\n1\n t 0 5\n", id="white space before the topic"),
        pytest.param(b"0\n2\nt 0 5\n", id="a line less"),
        pytest.param(b"0\n0\nt 0 5\n", id="a line more"),
        pytest.param(b"0\n1\nt 0 5\n\n", id="an empty line"),
        pytest.param(b"0\n1\nt 0\n", id="two fields"),
        pytest.param(b"0\n1\nt 0 5 6\n", id="four fields"),
        pytest.param(b"0\n1\nt x 5\n", id="no partition"),
        pytest.param(b"0\n1\nt 0 5.0\n", id="no offset"),
        pytest.param(b"0\n1\n\xff 0 5\n", id="not ASCII"),
        pytest.param(bytes(20), id="zeros"),
    ],
)
def test_malformed_checkpoints_are_none(data: bytes) -> None:
    assert read_offset_checkpoint(data) is None


@pytest.mark.parametrize("number", [b"1_0", b"1_2_3"])
def test_numbers_are_plain_digits(number: bytes) -> None:
    # docs/format.md, 13: three fields; Kafka's `OffsetCheckpointFile` reads them by Long.parseLong.
    assert read_offset_checkpoint(b"0\n1\nt 0 " + number + b"\n") is None


def test_every_cut_of_a_checkpoint_is_none_or_says_less() -> None:
    data = b"0\n2\nmy-topic 0 120\nt.x 11 345\n"
    for size in range(1, len(data)):
        found = read_offset_checkpoint(data[:size])
        if found is not None:
            # A count that is missing and a number cut in its digits cannot be told; all else can.
            assert found in (
                {},
                {("my-topic", 0): 120, ("t.x", 11): 3},
                {("my-topic", 0): 120, ("t.x", 11): 34},
                {("my-topic", 0): 120, ("t.x", 11): 345},
            )


EPOCHS = st.lists(st.integers(0, (1 << 31) - 1), unique=True, max_size=8).map(sorted)
OFFSETS = st.dictionaries(
    st.tuples(
        st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True), st.integers(0, (1 << 31) - 1)
    ),
    st.integers(0, (1 << 63) - 1),
    max_size=6,
)


@given(OFFSETS)
def test_offsets_written_are_read(offsets: dict[tuple[str, int], int]) -> None:
    written = encode_offset_checkpoint(offsets)
    assert decode_offset_checkpoint(written) == offsets
    assert list(decode_offset_checkpoint(written)) == list(offsets)


@given(EPOCHS, st.data())
def test_epochs_written_are_read(epochs: list[int], data: st.DataObject) -> None:
    count = len(epochs)
    starts = st.lists(st.integers(0, (1 << 63) - 1), unique=True, min_size=count, max_size=count)
    entries = tuple(map(EpochEntry, epochs, sorted(data.draw(starts))))
    assert decode_epoch_checkpoint(encode_epoch_checkpoint(entries)).entries == entries


def test_the_golden_files() -> None:
    assert encode_epoch_checkpoint([EpochEntry(0, 0), EpochEntry(3, 120)]) == b"0\n2\n0 0\n3 120\n"
    assert encode_epoch_checkpoint([]) == b"0\n0\n"
    offsets = {("my-topic", 0): 120, ("t.x", 11): 0}
    assert encode_offset_checkpoint(offsets) == b"0\n2\nmy-topic 0 120\nt.x 11 0\n"


def test_epochs_that_contradict_earlier_ones_replace_them() -> None:
    found = decode_epoch_checkpoint(b"0\n3\n1 5\n4 9\n2 7\n")
    assert found.entries == (EpochEntry(1, 5), EpochEntry(2, 7))


def test_epochs_may_have_white_space_behind_them() -> None:
    assert decode_epoch_checkpoint(b"0\n1\n1 5 \n").entries == (EpochEntry(1, 5),)
    assert decode_epoch_checkpoint(b"0\n").entries == ()


def test_a_long_checkpoint_of_epochs() -> None:
    count = 100_000  # A tuple for each line would be 40 GB of copies.
    entries = tuple(EpochEntry(number, number) for number in range(count))
    assert decode_epoch_checkpoint(encode_epoch_checkpoint(entries)).entries == entries


@pytest.mark.parametrize(
    ("data", "reason", "position"),
    [
        pytest.param(b"1\n0\n", "version 1", 0, id="version"),
        pytest.param(b"0\nx\n", "not a number", 2, id="count"),
        pytest.param(b"0\n2\nt 0 5\n", "1 lines where the count is 2", 2, id="a line less"),
        pytest.param(b"0\n2\nt 0 5\nt 0\n", "<topic> <partition> <offset>", 10, id="fields"),
        pytest.param(b"0\n1\nt 0 9999999999999999999\n", "out of range", 4, id="offset"),
        pytest.param(b"0\n1\nt 2147483648 1\n", "out of range", 4, id="partition"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(data: bytes, reason: str, position: int) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_offset_checkpoint(data)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"0\n1\n1 2 3\n", "<epoch> <start offset>"),
        (b"0\n1\n-1 2\n", "<epoch> <start offset>"),
        (b"0\n1\n2147483648 2\n", "out of range"),
    ],
)
def test_malformed_epochs(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_epoch_checkpoint(data)
    assert read_epoch_checkpoint(data) is None
    assert read_epoch_checkpoint(b"0\n1\n1 2\n") == LeaderEpochs((EpochEntry(1, 2),))


@pytest.mark.parametrize("key", [("a b", 0), ("", 0), ("t", -1), ("t\n", 0), ("\xe9", 0)])
def test_a_name_that_no_line_can_hold(key: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match="no line of a checkpoint"):
        encode_offset_checkpoint({key: 1})


def test_an_epoch_that_no_line_can_hold() -> None:
    with pytest.raises(ValueError, match="no line of a checkpoint"):
        encode_epoch_checkpoint([EpochEntry(-1, 0)])


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_none(data: bytes) -> None:
    for text in (data, b"0\n1\n" + data):
        found = read_offset_checkpoint(text)
        assert found is None or all(isinstance(offset, int) for offset in found.values())
        epochs = read_epoch_checkpoint(text)
        assert epochs is None or decode_epoch_checkpoint(text) == epochs
