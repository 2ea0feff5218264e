"""Offset and leader epoch checkpoints (docs/format.md, 13)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.broker_files.checkpoint_files import (
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
    parse_offset_checkpoint,
)
from klog.logformat.broker_files.leader_epochs import EpochEntry
from klog.logformat.topic_partition import TopicPartition


@pytest.mark.parametrize(
    ("data", "offsets"),
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
def test_offset_checkpoints(data: bytes, offsets: dict[tuple[str, int], int]) -> None:
    assert parse_offset_checkpoint(data) == offsets


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"1\n1\nt 0 5\n", id="version 1"),
        pytest.param(b"x\n1\nt 0 5\n", id="no version"),
        pytest.param(b"1\n", id="version 1 without a count"),
        pytest.param(b"0\n\n", id="an empty count"),
        pytest.param(b"0 \n1\nt 0 5\n", id="white space after the version"),
        pytest.param(b"0\n1 \nt 0 5\n", id="white space after the count"),
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
def test_malformed_offset_checkpoint_is_none(data: bytes) -> None:
    assert parse_offset_checkpoint(data) is None


@pytest.mark.parametrize("number", [b"1_0", b"1_2_3"])
def test_numbers_are_plain_digits(number: bytes) -> None:
    # docs/format.md, 13: three fields; Kafka's `OffsetCheckpointFile` reads them by Long.parseLong.
    assert parse_offset_checkpoint(b"0\n1\nt 0 " + number + b"\n") is None


def test_cut_checkpoint_is_none_or_shorter() -> None:
    data = b"0\n2\nmy-topic 0 120\nt.x 11 345\n"
    for size in range(1, len(data)):
        offsets = parse_offset_checkpoint(data[:size])
        if offsets is not None:
            # Only a missing count and a number cut in its digits look like a valid file.
            assert offsets in (
                {},
                {("my-topic", 0): 120, ("t.x", 11): 3},
                {("my-topic", 0): 120, ("t.x", 11): 34},
                {("my-topic", 0): 120, ("t.x", 11): 345},
            )


EPOCHS = st.lists(st.integers(0, (1 << 31) - 1), unique=True, max_size=8).map(sorted)
OFFSETS = st.dictionaries(
    st.builds(
        TopicPartition,
        st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True),
        st.integers(0, (1 << 31) - 1),
    ),
    st.integers(0, (1 << 63) - 1),
    max_size=6,
)


@given(OFFSETS)
def test_offset_checkpoint_round_trip(offsets: dict[TopicPartition, int]) -> None:
    encoded = encode_offset_checkpoint(offsets)
    assert decode_offset_checkpoint(encoded) == offsets
    assert list(decode_offset_checkpoint(encoded)) == list(offsets)


@given(EPOCHS, st.data())
def test_epoch_checkpoint_round_trip(epochs: list[int], data: st.DataObject) -> None:
    count = len(epochs)
    offsets = st.lists(st.integers(0, (1 << 63) - 1), unique=True, min_size=count, max_size=count)
    entries = tuple(map(EpochEntry, epochs, sorted(data.draw(offsets))))
    assert decode_epoch_checkpoint(encode_epoch_checkpoint(entries)).entries == entries


def test_golden_files() -> None:
    assert encode_epoch_checkpoint([EpochEntry(0, 0), EpochEntry(3, 120)]) == b"0\n2\n0 0\n3 120\n"
    assert encode_epoch_checkpoint([]) == b"0\n0\n"
    offsets = {TopicPartition("my-topic", 0): 120, TopicPartition("t.x", 11): 0}
    assert encode_offset_checkpoint(offsets) == b"0\n2\nmy-topic 0 120\nt.x 11 0\n"


def test_epoch_replaces_earlier_contradicting_ones() -> None:
    epochs = decode_epoch_checkpoint(b"0\n3\n1 5\n4 9\n2 7\n")
    assert epochs.entries == (EpochEntry(1, 5), EpochEntry(2, 7))


def test_white_space_after_an_epoch_is_ignored() -> None:
    assert decode_epoch_checkpoint(b"0\n1\n1 5 \n").entries == (EpochEntry(1, 5),)
    assert decode_epoch_checkpoint(b"0\n").entries == ()


def test_long_epoch_checkpoint() -> None:
    count = 100_000  # A tuple for each line would be 40 GB of copies.
    entries = tuple(EpochEntry(number, number) for number in range(count))
    assert decode_epoch_checkpoint(encode_epoch_checkpoint(entries)).entries == entries


@pytest.mark.parametrize(
    ("data", "reason", "position"),
    [
        pytest.param(b"1\n0\n", "version 1", 0, id="version"),
        pytest.param(b"0\nx\n", "must be numbers", 2, id="count"),
        pytest.param(b"0\n2\nt 0 5\n", "1 lines where the count is 2", 2, id="a line less"),
        pytest.param(b"0\n2\nt 0 5\nt 0\n", "<topic> <partition> <offset>", 10, id="fields"),
        pytest.param(b"0\n1\nt 0 9999999999999999999\n", "out of range", 4, id="offset"),
        pytest.param(b"0\n1\nt 2147483648 1\n", "out of range", 4, id="partition"),
    ],
)
def test_malformed_line_is_named_with_its_position(data: bytes, reason: str, position: int) -> None:
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
def test_malformed_epoch_checkpoint_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_epoch_checkpoint(data)


@pytest.mark.parametrize("key", [("a b", 0), ("", 0), ("t", -1), ("t\n", 0), ("\xe9", 0)])
def test_topic_with_white_space_is_not_written(key: tuple[str, int]) -> None:
    with pytest.raises(ValueError, match="a checkpoint cannot have the line"):
        encode_offset_checkpoint({TopicPartition(*key): 1})


def test_negative_epoch_is_not_written() -> None:
    with pytest.raises(ValueError, match="a checkpoint cannot have the line"):
        encode_epoch_checkpoint([EpochEntry(-1, 0)])


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_malformed(data: bytes) -> None:
    for text in (data, b"0\n1\n" + data):
        offsets = parse_offset_checkpoint(text)
        assert offsets is None or all(isinstance(offset, int) for offset in offsets.values())
        with suppress(CorruptRecordError):
            epochs = decode_epoch_checkpoint(text)
            assert decode_epoch_checkpoint(encode_epoch_checkpoint(epochs.entries)) == epochs
