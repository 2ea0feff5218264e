"""Leader epochs (docs/format.md, 12): entries always rise, batches start epochs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.broker_files.leader_epochs import NO_EPOCHS, EpochEntry, LeaderEpochs
from tests.support.batch_bytes import Record, batch

PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), max_size=12)


@given(PAIRS)
def test_epochs_and_start_offsets_rise(pairs: list[tuple[int, int]]) -> None:
    for entry, next_entry in pairwise(NO_EPOCHS.assign_all(pairs).entries):
        assert entry.epoch < next_entry.epoch
        assert entry.start_offset < next_entry.start_offset


@given(PAIRS, PAIRS)
def test_epochs_are_assigned_one_after_the_other(
    pairs: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    epochs = NO_EPOCHS
    for pair in pairs + more:
        epochs = epochs.assign_all([pair])
    assert epochs == NO_EPOCHS.assign_all(pairs).assign_all(more)


@given(PAIRS, st.integers(0, 12), st.integers(0, 40))
def test_last_assigned_epoch_is_the_latest(
    pairs: list[tuple[int, int]], epoch: int, offset: int
) -> None:
    before = NO_EPOCHS.assign_all(pairs)
    after = before.assign_all([(epoch, offset)])
    assert after.latest_epoch == epoch
    if before.latest_epoch != epoch:
        assert after.entries[-1] == EpochEntry(epoch, offset)


def test_lower_start_of_the_latest_epoch_replaces_it() -> None:
    assert NO_EPOCHS.assign_all([(2, 9), (2, 5)]).entries == (EpochEntry(2, 5),)
    assert NO_EPOCHS.latest_epoch == -1


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_numbers_are_refused(epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        NO_EPOCHS.assign_all([(epoch, offset)])


def test_batches_start_only_rising_epochs() -> None:
    log = b"".join(
        batch([Record(offset, 0)], leader_epoch=epoch)
        for offset, epoch in enumerate((-1, 3, 2, 3, 5))
    )
    batches = scan_batches(log, 0, len(log))
    assert NO_EPOCHS.assign_batches(batches).entries == (EpochEntry(3, 1), EpochEntry(5, 4))
    known = LeaderEpochs((EpochEntry(4, 0),))
    assert known.assign_batches(batches).entries == (EpochEntry(4, 0), EpochEntry(5, 4))


@given(PAIRS, st.integers(0, 45))
def test_truncated_start_keeps_the_epoch_of_the_log_start(
    pairs: list[tuple[int, int]], offset: int
) -> None:
    epochs = NO_EPOCHS.assign_all(pairs)
    truncated = epochs.truncate_from_start(offset)
    if epochs.entries and epochs.entries[0].start_offset <= offset:
        current = [entry for entry in epochs.entries if entry.start_offset <= offset][-1]
        assert truncated.entries[0] == EpochEntry(current.epoch, offset)
        later = tuple(entry for entry in epochs.entries if entry.start_offset > offset)
        assert truncated.entries[1:] == later
    else:
        assert truncated == epochs
