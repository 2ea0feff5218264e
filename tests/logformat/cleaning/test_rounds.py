"""Several cleanings in a row against Kafka's rules in plain Python, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.offset_map import LEAST_BYTES
from klog.logformat.cleaning.rewrite import Rewrite
from klog.logformat.codecs import decompress
from tests.encode import (
    ABORT,
    CODECS,
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    compress,
    control,
    sealed,
)
from tests.logformat.cleaning.drawn import START_MS, cuts, logs
from tests.logformat.cleaning.kafkas_rules import Batch, Known, Rules, batches, producers
from tests.logformat.cleaning.rounds import NEVER, Round, cleaned, marked, next_offset, scan
from tests.logformat.decoding import by_klog

RETENTION_MS = 20


def by_rules(segments: list[bytes], one: Round, known: dict[int, Known]) -> list[Batch]:
    """Give what Kafka leaves of a log, of which so many segments are cleaned."""
    count = len(segments) if one.count is None else one.count
    ends = [0, one.dirty_from, *map(next_offset, segments[:count])]
    live = {p: k for p, k in known.items() if one.now_ms - k.timestamp < one.expiration_ms}
    rules = Rules(one.dirty_from, max(ends), one.now_ms, one.retention_ms, live)
    return list(rules.clean([made for segment in segments for made in batches(segment)]))


@st.composite
def rounds(draw: st.DrawFn, segments: list[bytes]) -> list[Round]:
    """Draw cleanings one after the other; each begins where the last one ended, or before it."""
    found, end, now = [], 0, START_MS
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, len(segments)))
        if count and next_offset(segments[count - 1]) >= end:
            dirty_from = draw(st.integers(max(end - 2, 0), end))
            found.append(Round(dirty_from, count, now, RETENTION_MS))
            end = next_offset(segments[count - 1])
        now += draw(st.sampled_from((0, 1, RETENTION_MS - 1, RETENTION_MS, 3 * RETENTION_MS)))
    return found


@settings(max_examples=100)
@given(st.data())
def test_it_leaves_what_kafka_leaves(data: st.DataObject) -> None:
    """Batches that stay are the same bytes, others those that the rules give."""
    segments = data.draw(cuts(data.draw(logs())))
    known = producers([one for segment in segments for one in batches(segment)])
    expiration_ms = data.draw(st.sampled_from((NEVER, NEVER, 0)))
    later_ms = 0 if expiration_ms else 100  # Behind all times: then nobody is known any more.
    for given_round in data.draw(rounds(segments)):
        one = replace(
            given_round, expiration_ms=expiration_ms, now_ms=given_round.now_ms + later_ms
        )
        expected = by_rules(segments, one, known)
        segments = cleaned(segments, one)
        found = [made for segment in segments for made in batches(segment)]
        assert found == expected
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.data == (theirs.data or theirs.encoded())


def test_an_earlier_epochs_marker_stays_empty_where_a_cleaning_ends() -> None:
    """Its producer is known by the marker behind it, but the bound - 1 is its own offset."""
    segments = [_aborted(0), _aborted(1)]
    known = producers([one for segment in segments for one in batches(segment)])
    left = []
    for now_ms in (START_MS, START_MS + RETENTION_MS):
        one = Round(0, 1, now_ms, RETENTION_MS)
        expected = by_rules(segments, one, known)
        segments = cleaned(segments, one)
        left = [made for segment in segments for made in batches(segment)]
        assert left == expected
    assert [len(made.records) for made in left] == [0, 1]


def _aborted(offset: int) -> bytes:
    """Make a marker of the epoch that its offset is."""
    attributes = TRANSACTIONAL | CONTROL
    return control(
        offset,
        ABORT,
        producer_id=1,
        producer_epoch=offset,
        timestamp=START_MS,
        attributes=attributes,
    )


@settings(max_examples=60)
@given(st.data())
def test_a_codec_changes_nothing(data: st.DataObject) -> None:
    """What is left of compressed batches says what is left of plain ones, in their codec."""
    plain = data.draw(cuts(data.draw(logs())))
    codec = data.draw(st.sampled_from(CODECS))
    segments = [_each(segment, codec) for segment in plain]
    for one in data.draw(rounds(plain)):
        plain, segments = cleaned(plain, one), cleaned(segments, one)
        assert [_plainly(segment, codec) for segment in segments] == plain


def _each(segment: bytes, codec: int) -> bytes:
    return b"".join(
        one.data if one.has(CONTROL) else _with(one.data, codec, compress(codec, one.data[61:]))
        for one in batches(segment)
    )


def _with(data: bytes, codec: int, payload: bytes) -> bytes:
    """Give a batch another codec, and its records in it."""
    length = (49 + len(payload)).to_bytes(4, "big")
    attributes = (int.from_bytes(data[21:23], "big") & ~7 | codec).to_bytes(2, "big")
    return sealed(data[:8] + length + data[12:21] + attributes + data[23:61] + payload)


def _plainly(segment: bytes, codec: int) -> bytes:
    """Take the batches of a segment out of their codec, which each with records has to have."""
    found = b""
    for start, end in zip(*_bounds(segment), strict=True):
        one = segment[start:end]
        attributes = int.from_bytes(one[21:23], "big")
        if len(one) == 61 or attributes & CONTROL:
            assert attributes & 7 == 0
            found += one
        else:
            assert attributes & 7 == codec
            found += _with(one, 0, decompress(codec, one[61:]))
    return found


def _bounds(segment: bytes) -> tuple[list[int], list[int]]:
    found = scan(segment)
    return found.starts.tolist(), found.ends.tolist()


def test_many_keys_in_little_memory() -> None:
    """A map that gives up keys is followed by others: what is left is the same."""
    numbers = np.random.default_rng(5).integers(0, 6_000, 12_000).tolist()
    records = [
        Record(at, START_MS, b"%d" % n, None if n % 7 == 0 else b"%d" % at)
        for at, n in enumerate(numbers)
    ]
    segments = [
        b"".join(batch(records[at : at + 500]) for at in range(begin, begin + 4_000, 500))
        for begin in range(0, 12_000, 4_000)
    ]
    large, small = Round(now_ms=5, map_bytes=1 << 24), Round(now_ms=5, map_bytes=LEAST_BYTES)
    for later in ({}, {"dirty_from": 5_345}):
        expected = cleaned(segments, replace(large, **later))
        assert cleaned(segments, replace(small, **later)) == expected
    last = {record.key: record for record in records}
    left = cleaned(segments, small)
    assert by_klog(b"".join(left)) == sorted(last.values(), key=lambda one: one.offset)


@settings(max_examples=40)
@given(st.data())
def test_what_stays_is_known_before_it_is_written(data: st.DataObject) -> None:
    """A segment is told to stay as it is exactly if its bytes would be the same."""
    segments = data.draw(cuts(data.draw(logs())))
    one, is_done = Round(now_ms=START_MS, retention_ms=RETENTION_MS), False
    for _ in range(4):
        marks, fates = marked(segments, (), one)
        left = cleaned(segments, one)
        for segment, own, after in zip(segments, marks, left, strict=True):
            rewrite = Rewrite(own, fates)
            assert rewrite.leaves(segment, scan(segment)) == (after == segment)
            rewrite.close()
        is_done, segments = left == segments, left
    assert is_done
