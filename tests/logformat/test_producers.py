"""Producer state (docs/format.md, 10): what the tables of Kafka's tests do not ask."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError, OutOfOrderSequenceError, ProducerFencedError
from klog.logformat import batch as v2
from klog.logformat.producer import CACHED_BATCHES, Origin, Producer
from klog.logformat.producer_batch import Marker, ProducerBatch, producer_batches
from klog.logformat.producers import CompletedTransaction, ProducerState
from klog.logformat.sequence import MAX_SEQUENCE
from klog.logformat.snapshot import SnapshotEntry
from tests.encode import (
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    control,
    marker,
    plain,
    transactional,
)
from tests.logformat.golden import CONTROLS, DIRECTORY
from tests.logformat.logs import logs


def data(
    offset: int, sequence: int, epoch: int = 0, count: int = 1, *, is_transactional: bool = False
) -> ProducerBatch:
    last = offset + count - 1
    return ProducerBatch(1, epoch, sequence, offset, last, 1000, is_transactional)


def test_the_golden_directory_batch_by_batch() -> None:
    log = b"".join(DIRECTORY)
    state = ProducerState()
    completed = state.replay(log, v2.scan(log, 0, len(log)))
    assert completed == [
        CompletedTransaction(10, 2, 5, is_aborted=True, last_stable_offset=3),
        CompletedTransaction(11, 3, 7, is_aborted=False, last_stable_offset=6),
        CompletedTransaction(10, 6, 9, is_aborted=True, last_stable_offset=10),
    ]
    assert state.first_unstable_offset() == 2
    assert [state.last_stable_offset(high) for high in (1, 5, 11)] == [1, 2, 2]
    state.raise_high_watermark(8)
    assert state.first_unstable_offset() == 6
    state.raise_high_watermark(11)
    assert state.last_stable_offset(11) == 10
    assert state.last_stable_offset(11, log_start=11) == 11


def test_the_facts_of_batches() -> None:
    log = plain(0) + transactional(1, 7, [b"a", b"b"]) + marker(3, 7, 0, producer_epoch=2)
    found = producer_batches(log, v2.scan(log, 0, len(log)))
    first = len(plain(0))
    behind = first + len(transactional(1, 7, [b"a", b"b"]))
    assert found == [
        ProducerBatch(7, 0, 0, 1, 2, 1002, is_transactional=True, position=first),
        ProducerBatch(
            7,
            2,
            -1,
            3,
            3,
            0,
            is_transactional=True,
            is_control=True,
            marker=Marker(is_abort=True, coordinator_epoch=0),
            position=behind,
        ),
    ]
    assert [one.last_sequence for one in found] == [1, -1]


def test_the_golden_markers() -> None:
    facts = {}
    for name in ("commit", "abort"):
        one = next(d for key, (d, _) in CONTROLS.items() if name in key.lower())
        (facts[name],) = producer_batches(one, v2.scan(one, 0, len(one)))
    assert facts["commit"].marker == Marker(is_abort=False, coordinator_epoch=9)
    assert facts["abort"].marker == Marker(is_abort=True, coordinator_epoch=9)
    assert (facts["commit"].producer_id, facts["commit"].epoch) == (4000, 3)


def test_a_newer_marker_is_read_as_one_of_today() -> None:
    one = control(
        0,
        1,
        producer_id=7,
        producer_epoch=0,
        attributes=TRANSACTIONAL | CONTROL,
        value=b"\0\5\0\0\0\x2amore",
    )
    (found,) = producer_batches(one, v2.scan(one, 0, len(one)))
    assert found.marker == Marker(is_abort=False, coordinator_epoch=42)


@given(st.binary(max_size=40))
def test_any_marker_is_read_or_corrupt(value: bytes) -> None:
    one = batch(
        [Record(0, 0)],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=0,
        payload=value,
    )
    try:
        (found,) = producer_batches(one, v2.scan(one, 0, len(one)))
    except CorruptRecordError:
        return
    assert found.is_control


def test_at_most_five_batches_are_kept() -> None:
    state = ProducerState()
    for number in range(8):
        state.append(data(number, number))
    kept = state.producers[1].batches
    assert [one.last_sequence for one in kept] == list(range(8 - CACHED_BATCHES, 8))
    assert [one.timestamp_ms for one in kept] == [1000] * CACHED_BATCHES


def test_sequences_wrap() -> None:
    state = ProducerState()
    state.append(data(0, MAX_SEQUENCE - 1, count=3))
    assert state.producers[1].last_sequence == 0
    assert state.duplicate_of(data(9, MAX_SEQUENCE - 1, count=3)) is not None
    state.append(data(3, 1))


@pytest.mark.parametrize(
    ("batch_", "error", "words"),
    [
        (
            data(5, 7, epoch=3),
            OutOfOrderSequenceError,
            "producer 1 epoch 3.*sequence 7 at offset 5 where 1",
        ),
        (data(5, 1, epoch=4), OutOfOrderSequenceError, "sequence 1 at offset 5 where 0 must come"),
        (data(5, 1, epoch=2), ProducerFencedError, "epoch 2 at offset 5, but epoch 3 has written"),
    ],
)
def test_what_a_client_may_not_append(
    batch_: ProducerBatch, error: type[Exception], words: str
) -> None:
    state = ProducerState()
    state.append(data(0, 0, epoch=3))
    before = state.copy()
    with pytest.raises(error, match=words):
        state.append(batch_)
    assert state == before
    state.append(batch_, Origin.REPLICATION)
    assert state.end_offset == 6


def test_a_copy_is_a_state_of_its_own() -> None:
    state = ProducerState()
    state.append(data(0, 0, is_transactional=True))
    copy = state.copy()
    copy.append(data(1, 1, is_transactional=True))
    assert state.producers[1].last_sequence == 0
    assert state.end_offset == 1


def test_a_snapshot_without_a_batch_has_none() -> None:
    entry = SnapshotEntry(1, 3, -1, -1, 0, 500, 7, -1)
    state = ProducerState.from_snapshot([entry], 9)
    assert state.producers == {1: Producer(1, 3, 7, 500)}
    assert state.snapshot() == (entry,)
    with pytest.raises(OutOfOrderSequenceError):
        state.append(data(9, 4, epoch=3))
    state.append(data(9, 0, epoch=3))


@given(logs())
def test_a_snapshot_keeps_all_but_older_batches(batches: list[bytes]) -> None:
    log = b"".join(batches)
    state = ProducerState()
    state.replay(log, v2.scan(log, 0, len(log)))
    loaded = ProducerState.from_snapshot(state.snapshot(), state.end_offset)
    assert loaded.snapshot() == state.snapshot()
    assert loaded.open_transactions == state.open_transactions
    for one, producer in state.producers.items():
        newest = [kept.last_offset for kept in producer.batches[-1:]]
        assert [kept.last_offset for kept in loaded.producers[one].batches] == newest


@given(logs())
def test_the_stable_offset_is_below_every_open_transaction(batches: list[bytes]) -> None:
    log = b"".join(batches)
    state = ProducerState()
    state.replay(log, v2.scan(log, 0, len(log)))
    stable = state.last_stable_offset(state.end_offset)
    assert all(stable <= first for first in state.open_transactions.values())
    state.raise_high_watermark(state.end_offset)
    stable = state.last_stable_offset(state.end_offset)
    assert stable == min(state.open_transactions.values(), default=state.end_offset)


def opened(producer_id: int, first_offset: int) -> ProducerBatch:
    return ProducerBatch(producer_id, 0, 0, first_offset, first_offset, 1000, is_transactional=True)


def ended(producer_id: int, offset: int) -> ProducerBatch:
    return ProducerBatch(
        producer_id,
        0,
        -1,
        offset,
        offset,
        1000,
        is_transactional=True,
        is_control=True,
        marker=Marker(is_abort=True, coordinator_epoch=0),
    )


@given(
    st.lists(st.integers(0, 99), unique=True, max_size=6),
    st.lists(st.integers(100, 199), unique=True, min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_a_marker_says_where_the_earliest_other_transaction_begins(
    loaded: list[int], more: list[int], random: Random
) -> None:
    # A producer's id is its first offset. Snapshots have them in any order, and so has `more`,
    # though no log has: some lie before others that are known.
    entries = [SnapshotEntry(first, 0, 0, first, 0, 0, 0, first) for first in loaded]
    state = ProducerState.from_snapshot(entries, 100)
    for first in more:
        state.append(opened(first, first), Origin.REPLICATION)
    left = {*loaded, *more}
    assert list(state.open_transactions) == sorted(left)
    for offset, first in enumerate(random.sample(sorted(left), len(left)), 200):
        left.remove(first)
        completed = state.append(ended(first, offset), Origin.REPLICATION)
        assert completed is not None
        assert completed.last_stable_offset == min(left, default=offset + 1)
    assert not state.open_transactions


def test_many_open_transactions_end() -> None:
    count = 10_000  # To look at every open one at every marker would be 50 million steps.
    state = ProducerState()
    for number in range(count):
        state.append(opened(number, number))
    for number in range(count):
        completed = state.append(ended(number, count + number))
        assert completed is not None
        assert completed.last_stable_offset == (number + 1 if number + 1 < count else 2 * count)
