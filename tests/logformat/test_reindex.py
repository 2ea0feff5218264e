"""The indexes that recovery makes, against Kafka's own (format notes 4.3 and 4.4)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.reindex import SegmentIndexes
from klog.logformat.varint import Longs


def longs(numbers: list[int]) -> Longs:
    return np.array(numbers, np.int64)


def indexed(
    positions: list[int], lasts: list[int], times: list[int], interval: int, *, base: int = 0
) -> tuple[bytes, bytes]:
    indexes = SegmentIndexes(base, interval)
    indexes.add(longs(positions), longs(lasts), longs(times))
    return indexes.finish()


def test_the_example_of_the_notes() -> None:
    # Base 100, interval 200, seven appends of 115 bytes, two records each.
    positions = [115 * number for number in range(7)]
    lasts = [101 + 2 * number for number in range(7)]
    times = [1001, 1101, 1051, 1201, 1201, 901, 1301]
    index, time_index = indexed(positions, lasts, times, 200, base=100)
    assert index.hex() == "00000005000000e600000009000001cc0000000d000002b2"
    assert time_index.hex() == (
        "000000000000044d0000000300000000000004b10000000700000000000005150000000d"
    )


def test_more_than_the_interval_lies_between_entries() -> None:
    assert indexed([0, 100], [0, 1], [5, 6], 100)[0] == b""
    assert indexed([0, 101], [0, 1], [5, 6], 100)[0] == bytes.fromhex("0000000100000065")


def test_without_timestamps_there_is_no_time_entry() -> None:
    assert indexed([0, 80, 160], [0, 1, 2], [-1, -1, -1], 0)[1] == b""


def test_nothing() -> None:
    assert indexed([], [], [], 0) == (b"", b"")


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    sizes = draw(st.lists(st.integers(61, 300), max_size=40))
    deltas = draw(st.lists(st.integers(1, 5), min_size=len(sizes), max_size=len(sizes)))
    times = draw(st.lists(st.integers(-1, 50), min_size=len(sizes), max_size=len(sizes)))
    positions = [sum(sizes[:number]) for number in range(len(sizes))]
    return positions, [sum(deltas[: number + 1]) for number in range(len(sizes))], times


def one_by_one(
    positions: list[int], lasts: list[int], times: list[int], interval: int
) -> tuple[bytes, bytes]:
    """Index as Kafka's `LogSegment.recover` is written: batch by batch."""
    index, time_index = b"", b""
    indexed_at, largest, largest_at, written = 0, -1, 0, -1
    for position, last, time in zip(positions, lasts, times, strict=True):
        if time > largest:
            largest, largest_at = time, last
        if position - indexed_at > interval:
            index += last.to_bytes(4, "big") + position.to_bytes(4, "big")
            indexed_at = position
            if largest > written:
                time_index += largest.to_bytes(8, "big") + largest_at.to_bytes(4, "big")
                written = largest
    if largest > written:
        time_index += largest.to_bytes(8, "big") + largest_at.to_bytes(4, "big")
    return index, time_index


@given(batches(), st.integers(0, 700), st.integers(1, 7))
def test_pieces_of_any_size_make_the_same_indexes(
    rows: tuple[list[int], list[int], list[int]], interval: int, step: int
) -> None:
    positions, lasts, times = rows
    indexes = SegmentIndexes(0, interval)
    for begin in range(0, len(positions), step):
        piece = slice(begin, begin + step)
        indexes.add(longs(positions[piece]), longs(lasts[piece]), longs(times[piece]))
    assert indexes.finish() == one_by_one(positions, lasts, times, interval)
