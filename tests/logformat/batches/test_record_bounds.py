"""The walk: a plain one from each start is right by eye; entering in the middle must agree."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Bytes, Longs
from klog.logformat.batches import record_bounds as walking
from klog.logformat.batches.record_bounds import record_bounds
from klog.logformat.batches.record_sections import RecordSections
from klog.logformat.batches.varint import (
    PADDING,
)
from tests.logformat.reference_decoder import Plodder
from tests.support.batch_bytes import Record, record, varint

SMALLEST = varint(6) + bytes(3) + b"\1\1\0"


def section(values: list[bytes | None], first: int = 0) -> list[bytes]:
    """Write records, one for each value."""
    return [record(Record(first + i, i, b"k", value), first, 0) for i, value in enumerate(values)]


def look_alikes(rng: random.Random) -> bytes:
    """Make a value of bytes that look like records, at any place."""
    inner = section([rng.randbytes(rng.choice([2, 5, 9])) for _ in range(rng.randint(1, 4))])
    cut = rng.randint(0, 5)
    return b"".join(inner)[cut:]


def bounds(sections: list[list[bytes]], junk: bytes = b"") -> list[tuple[int, int, int]]:
    """Ask klog: (start, end, number of the batch) of every record."""
    pieces = [b"".join(section) for section in sections]
    starts = np.cumsum([len(junk), *(len(piece) + len(junk) for piece in pieces)])[:-1]
    data = junk + junk.join(pieces) + junk + bytes(PADDING)
    ends = starts + [len(piece) for piece in pieces]
    given_sections = RecordSections(
        data, starts.astype(np.int64), ends.astype(np.int64), starts * 1000
    )
    counts = np.array([len(section) for section in sections], np.int64)
    result = record_bounds(np.frombuffer(data, np.uint8), given_sections, counts)
    return list(zip(*(column.tolist() for column in result), strict=True))


def expected(sections: list[list[bytes]], junk: bytes = b"") -> list[tuple[int, int, int]]:
    at, result = len(junk), []
    for number, section in enumerate(sections):
        for piece in section:
            result.append((at, at + len(piece), number))
            at += len(piece)
        at += len(junk)
    return result


def entered(
    sections: list[list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[int, int, int]], bool, int]:
    """Walk, and tell whether entering was tried and believed, and from how many places."""
    seen: list[bool] = []
    lanes: list[int] = []
    real_walk, real_entries = walking._walk_entered, walking._entries

    def watched(
        buffer: Bytes, s: RecordSections, counts: Longs, pieces: Longs
    ) -> tuple[Longs, Longs] | None:
        result = real_walk(buffer, s, counts, pieces)
        seen.append(result is not None)
        return result

    def counted(
        buffer: Bytes, s: RecordSections, counts: Longs, pieces: Longs
    ) -> tuple[Longs, np.ndarray[tuple[int, ...], np.dtype[np.intp]]]:
        result = real_entries(buffer, s, counts, pieces)
        lanes.append(len(result[0]))
        return result

    monkeypatch.setattr(walking, "_walk_entered", watched)
    monkeypatch.setattr(walking, "_entries", counted)
    return bounds(sections), seen == [True], sum(lanes)


@pytest.mark.parametrize("junk", [b"", b"\xff" * 3, bytes(9), SMALLEST])
@pytest.mark.parametrize(
    "counts", [[1], [0], [0, 0], [3, 0, 1], [1] * 200, [7, 300], [2] * 64 + [257], [0, 400, 0]]
)
def test_batches_of_any_count(counts: list[int], junk: bytes) -> None:
    sections = [section([b"v" * (i % 7)] * count) for i, count in enumerate(counts)]
    assert bounds(sections, junk) == expected(sections, junk)


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 58, 8180, 8181, 8182, 8183, 8190, 1 << 20])
def test_records_of_any_length(size: int) -> None:
    sections = [section([b"", b"v" * size, None]), section([b"v" * size])]
    assert bounds(sections) == expected(sections)


def test_the_smallest_records() -> None:
    assert len(SMALLEST) == walking.MIN_RECORD_BYTES
    sections = [[SMALLEST] * 300, [SMALLEST], [SMALLEST] * 5]
    assert bounds(sections) == expected(sections)


@pytest.mark.parametrize("batches", [1, 2, 3, 17, 64])
def test_long_batches_are_entered_in_the_middle(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections = [section([b"plain text" * (i % 12) for i in range(600)]) for _ in range(batches)]
    result, believed, lanes = entered(sections, monkeypatch)
    assert result == expected(sections)
    assert believed
    assert lanes > batches, "entering found no place, so this tests nothing"


def test_more_batches_than_that_are_not_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [section([b"v" * 100] * 257) for _ in range(65)]
    result, believed, _ = entered(sections, monkeypatch)
    assert result == expected(sections)
    assert not believed


def test_long_batches_between_short_and_empty_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = (0, 400, 0, 1, 300, 0, *[2] * 200)
    sections = [section([b"v" * 90] * count) for count in counts]
    result, believed, lanes = entered(sections, monkeypatch)
    assert result == expected(sections)
    assert believed
    assert lanes > 50, "short batches keep long ones from being entered"


@pytest.mark.parametrize("other_counts", [[1], [1] * 40, [1] * 3000, [256] * 3, [0]])
def test_a_long_batch_takes_few_steps_and_little_memory(
    other_counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = positions = 0
    real = walking._quick_step

    def counted(buffer: Bytes) -> Callable[[Longs], Longs]:
        step = real(buffer)

        def counted_step(here: Longs) -> Longs:
            nonlocal steps, positions
            steps, positions = steps + 1, positions + len(here)
            return step(here)

        return counted_step

    monkeypatch.setattr(walking, "_quick_step", counted)
    sections = [[SMALLEST] * 30_000, *([SMALLEST] * count for count in other_counts)]
    assert bounds(sections) == expected(sections)
    records = 30_000 + sum(other_counts)
    assert steps < 1000
    assert positions < 2 * records


def test_one_record_of_many_bytes_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sections = [section([b"v" * 90] * 600), section([b"v" * 100_000])]
    result, believed, lanes = entered(sections, monkeypatch)
    assert result == expected(sections)
    assert believed
    assert lanes > 50


@pytest.mark.parametrize("seed", range(30))
def test_values_that_look_like_records(seed: int) -> None:
    rng = random.Random(seed)
    sections = [
        section([look_alikes(rng) if rng.random() < 0.9 else None for _ in range(600)])
        for _ in range(rng.randint(1, 4))
    ]
    assert bounds(sections) == expected(sections), f"seed {seed}"


def test_wrong_guesses_really_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = 0
    for seed in range(30):
        rng = random.Random(seed)
        sections = [section([look_alikes(rng) for _ in range(600)])]
        result, believed, _ = entered(sections, monkeypatch)
        monkeypatch.undo()
        assert result == expected(sections), f"seed {seed}"
        wrong += not believed
    assert wrong > 0, "every guess was right, so these values test nothing"


def test_values_that_are_whole_chains_of_records() -> None:
    chain = b"".join(section([b"inner"] * 12))
    for cut in range(12):
        sections = [section([chain[cut:]] * 400)]
        assert bounds(sections) == expected(sections), cut


def test_one_record_far_longer_than_the_others() -> None:
    values: list[bytes | None] = [b"v" * 20] * 500
    for at in (0, 250, 499):
        for size in (5000, 9000, 40000, 3 << 20):
            sections = [section([*values[:at], b"\0" * size, *values[at:]])]
            assert bounds(sections) == expected(sections), (at, size)


@pytest.mark.parametrize("attributes", [1, 255])
def test_attributes_do_not_matter_in_long_batches(attributes: int) -> None:
    section = [
        record(Record(i, i, b"k", b"v" * 50), 0, 0, attributes=attributes) for i in range(500)
    ]
    assert bounds([section]) == expected([section])


def test_overlong_lengths_in_long_batches() -> None:
    for wide in ((2, 1, 1), (3, 1, 1), (5, 10, 5)):
        section = [record(Record(i, i, b"k", b"v" * 30), 0, 0, wide=wide) for i in range(400)]
        assert bounds([section]) == expected([section])


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0, 1, 5, 257, 300]), min_size=1, max_size=6),
    st.integers(0, 1 << 30),
)
def test_any_mix_of_batches(counts: list[int], seed: int) -> None:
    rng = random.Random(seed)
    makers = [
        lambda: rng.randbytes(rng.randint(0, 90)),
        lambda: look_alikes(rng),
        lambda: bytes(rng.randint(0, 90)),
        lambda: struct.pack(">q", rng.randint(0, 99)) * 3,
    ]
    sections = [section([rng.choice(makers)() for _ in range(count)]) for count in counts]
    assert bounds(sections) == expected(sections)


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("batches", [1, 3])
def test_batches_not_filled_by_their_records_are_named(count: int, batches: int) -> None:
    good = section([b"v" * 40] * count)
    for bad in ([*good[:-1], good[-1] + b"\0"], [*good[:-1], b"\xfe" + good[-1][1:]]):
        sections = [good] * (batches - 1) + [bad] + [good]
        pieces = [b"".join(section) for section in sections]
        with pytest.raises(CorruptRecordError, match=f"{count} records do not fill") as caught:
            bounds(sections)
        assert caught.value.position == 1000 * sum(map(len, pieces[: batches - 1]))


def test_more_records_than_bytes() -> None:
    section = SMALLEST * 5
    data = np.frombuffer(section + bytes(PADDING), np.uint8)
    where = RecordSections(bytes(data), np.array([0]), np.array([len(section)]), np.array([42]))
    for count in (6, 1 << 20, (1 << 31) - 1):
        with pytest.raises(CorruptRecordError, match=f"{count} records in 35 bytes") as caught:
            record_bounds(data, where, np.array([count]))
        assert caught.value.position == 42
    for count in (4, 3):
        with pytest.raises(CorruptRecordError, match="do not fill"):
            record_bounds(data, where, np.array([count]))
    starts, _, _ = record_bounds(data, where, np.array([0]))
    assert not len(starts), "Kafka does not look at what no record counts"


@settings(max_examples=150)
@given(st.integers(0, 1 << 30), st.sampled_from([3, 260, 500]))
def test_changed_bytes_are_walked_as_by_hand_or_refused(seed: int, count: int) -> None:
    rng = random.Random(seed)
    data = bytearray(b"".join(section([rng.randbytes(rng.randint(0, 40)) for _ in range(count)])))
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 12, 13, 0x7F, 0x80, 0xFF])
    whole = bytes(data)
    record_after = SMALLEST
    buffer = np.frombuffer(whole + record_after + bytes(PADDING), np.uint8)
    where = RecordSections(
        bytes(buffer),
        np.array([0, len(whole)]),
        np.array([len(whole), len(whole) + len(record_after)]),
        np.array([0, 1]),
    )
    try:
        starts, ends, _ = record_bounds(buffer, where, np.array([count, 1]))
    except CorruptRecordError:
        return
    plodder, at = Plodder(whole), []
    for _ in range(count):
        start = plodder.at
        plodder.take(plodder.varint())
        at.append((start, plodder.at))
    assert list(zip(starts.tolist(), ends.tolist(), strict=True))[:-1] == at
    assert plodder.at == len(whole)
