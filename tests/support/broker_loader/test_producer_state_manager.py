"""What a broker adds to producer state: snapshots loaded, checked appends, the stable offset."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import OutOfOrderSequenceError, ProducerFencedError
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.batches.sequence_numbers import MAX_SEQUENCE
from klog.logformat.producers.producer_batch import ProducerBatch
from klog.logformat.producers.producer_snapshot import ProducerEntry
from tests.logformat.golden_vectors import DIRECTORY
from tests.logformat.producers.test_producer_state import aborting, data, opening
from tests.logformat.random_batches import logs
from tests.support.broker_loader.producer_state_manager import (
    CACHED_BATCHES,
    AppendOrigin,
    ProducerStateManager,
)


def replayed(log: bytes) -> ProducerStateManager:
    state = ProducerStateManager()
    state.replay(log, scan_batches(log, 0, len(log)))
    return state


def test_stable_offset_of_the_golden_directory() -> None:
    state = replayed(b"".join(DIRECTORY))
    assert state.first_unstable_offset() == 2
    assert [state.last_stable_offset(high) for high in (1, 5, 11)] == [1, 2, 2]
    state.raise_high_watermark(8)
    assert state.first_unstable_offset() == 6
    state.raise_high_watermark(11)
    assert state.last_stable_offset(11) == 10
    assert state.last_stable_offset(11, log_start=11) == 11


def test_cache_holds_five_batches() -> None:
    state = ProducerStateManager()
    for number in range(8):
        state.append(data(number, number))
    sequences = [cached.last_sequence for cached in state.batches[1]]
    assert sequences == list(range(8 - CACHED_BATCHES, 8))


def test_sequences_wrap() -> None:
    state = ProducerStateManager()
    state.append(data(0, MAX_SEQUENCE - 1, count=3))
    assert state.producers[1].last_sequence == 0
    assert state.duplicate_of(data(9, MAX_SEQUENCE - 1, count=3)) is not None
    state.append(data(3, 1))


@pytest.mark.parametrize(
    ("batch", "error", "reason"),
    [
        (
            data(5, 7, epoch=3),
            OutOfOrderSequenceError,
            "producer 1 epoch 3.*sequence 7 at offset 5, must be 1",
        ),
        (data(5, 1, epoch=4), OutOfOrderSequenceError, "sequence 1 at offset 5, must be 0"),
        (data(5, 1, epoch=2), ProducerFencedError, "epoch 2 at offset 5, but epoch 3 has written"),
    ],
)
def test_refused_append_of_a_client(
    batch: ProducerBatch, error: type[Exception], reason: str
) -> None:
    state = ProducerStateManager()
    state.append(data(0, 0, epoch=3))
    before = state.copy()
    with pytest.raises(error, match=reason):
        state.append(batch)
    assert state == before
    state.append(batch, AppendOrigin.REPLICATION)
    assert state.end_offset == 6


def test_copy_is_independent() -> None:
    state = ProducerStateManager()
    state.append(data(0, 0, is_transactional=True))
    copy = state.copy()
    copy.append(data(1, 1, is_transactional=True))
    assert state.producers[1].last_sequence == 0
    assert state.end_offset == 1


def test_snapshot_without_a_batch() -> None:
    entry = ProducerEntry(1, 3, -1, -1, 0, 500, 7, -1)
    state = ProducerStateManager.from_snapshot([entry], 9)
    assert (state.producers, state.batches) == ({1: entry}, {})
    assert state.snapshot() == (entry,)
    with pytest.raises(OutOfOrderSequenceError):
        state.append(data(9, 4, epoch=3))
    state.append(data(9, 0, epoch=3))


@given(logs())
def test_snapshot_has_all_but_older_batches(batches: list[bytes]) -> None:
    state = replayed(b"".join(batches))
    loaded = ProducerStateManager.from_snapshot(state.snapshot(), state.end_offset)
    assert loaded.snapshot() == state.snapshot()
    assert loaded.open_transactions == state.open_transactions
    for producer_id, cached in state.batches.items():
        assert loaded.batches.get(producer_id, ()) == cached[-1:]


@given(logs())
def test_stable_offset_is_below_every_open_transaction(batches: list[bytes]) -> None:
    state = replayed(b"".join(batches))
    stable = state.last_stable_offset(state.end_offset)
    assert all(stable <= first for first in state.open_transactions.values())
    state.raise_high_watermark(state.end_offset)
    stable = state.last_stable_offset(state.end_offset)
    assert stable == min(state.open_transactions.values(), default=state.end_offset)


@given(
    st.lists(st.integers(0, 99), unique=True, max_size=6),
    st.lists(st.integers(100, 199), unique=True, min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_completed_transaction_has_the_earliest_other_open_one(
    loaded: list[int], appended: list[int], random: Random
) -> None:
    # A producer's id is its first offset. Snapshots have them in any order, and so has `appended`,
    # though no log has.
    entries = [ProducerEntry(first, 0, 0, first, 0, 0, 0, first) for first in loaded]
    state = ProducerStateManager.from_snapshot(entries, 100)
    for first in appended:
        state.append(opening(first, first), AppendOrigin.REPLICATION)
    is_open = {*loaded, *appended}
    assert list(state.open_transactions) == sorted(is_open)
    for offset, first in enumerate(random.sample(sorted(is_open), len(is_open)), 200):
        is_open.remove(first)
        completed = state.append(aborting(first, offset), AppendOrigin.REPLICATION)
        assert completed is not None
        assert completed.last_stable_offset == min(is_open, default=offset + 1)
    assert not state.open_transactions
