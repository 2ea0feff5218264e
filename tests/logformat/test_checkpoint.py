"""The text files of a log directory (format notes 4.7, 4.8 and 13.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.checkpoint import read_offset_checkpoint
from klog.logformat.metadata import read_topic_id

TOPIC_ID = "ASNFZ4mrze_-3LqYdlQyEA"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"0\n2\nmy-topic 0 120\nt.x 11 0\n", {("my-topic", 0): 120, ("t.x", 11): 0}),
        (b"0\n0\n", {}),
        (b"", {}),
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
        pytest.param(b"0\n", id="no count"),
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
    # Format notes 4.8: three fields; Kafka's `OffsetCheckpointFile` reads them by Long.parseLong.
    assert read_offset_checkpoint(b"0\n1\nt 0 " + number + b"\n") is None


def test_every_cut_of_a_checkpoint_is_none_or_says_less() -> None:
    data = b"0\n2\nmy-topic 0 120\nt.x 11 345\n"
    for size in range(1, len(data)):
        found = read_offset_checkpoint(data[:size])
        if found is not None:
            # A number cut in its digits cannot be told; everything else can.
            assert found in (
                {("my-topic", 0): 120, ("t.x", 11): 3},
                {("my-topic", 0): 120, ("t.x", 11): 34},
                {("my-topic", 0): 120, ("t.x", 11): 345},
            )


def test_a_topic_id() -> None:
    assert read_topic_id(f"version: 0\ntopic_id: {TOPIC_ID}".encode()) == TOPIC_ID
    assert read_topic_id(f"version: 1\ntopic_id: {TOPIC_ID}\n".encode()) == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"version: 0\n", id="no id"),
        pytest.param(f"topic_id: {TOPIC_ID}".encode(), id="no version"),
        pytest.param(f"version: -1\ntopic_id: {TOPIC_ID}".encode(), id="negative version"),
        pytest.param(f"version: x\ntopic_id: {TOPIC_ID}".encode(), id="no number"),
        pytest.param(f"version 0\ntopic_id: {TOPIC_ID}".encode(), id="no colon"),
        pytest.param(f"version: 0\ntopic_id: {TOPIC_ID}\n\xff".encode("latin-1"), id="not ASCII"),
    ],
)
def test_malformed_metadata_is_none(data: bytes) -> None:
    assert read_topic_id(data) is None


@pytest.mark.parametrize(
    "topic_id", ["AAAAAAAAAAAAAAAAAAAAAA", "", "short", TOPIC_ID + "A", "?" * 22]
)
def test_an_id_that_is_none(topic_id: str) -> None:
    # Format notes 4.7: all-zero uuid rejected; 22 characters of base64url.
    assert read_topic_id(f"version: 0\ntopic_id: {topic_id}".encode()) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_none(data: bytes) -> None:
    for text in (data, b"0\n1\n" + data, b"version: 0\ntopic_id: " + data):
        found = read_offset_checkpoint(text)
        assert found is None or all(isinstance(offset, int) for offset in found.values())
        topic_id = read_topic_id(text)
        assert topic_id is None or isinstance(topic_id, str)
