"""Leader epochs (docs/format.md, 12): a value whose entries always rise."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.epochs import NO_EPOCHS, EpochEntry, LeaderEpochs

PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), max_size=12)


def cached(pairs: list[tuple[int, int]]) -> LeaderEpochs:
    epochs = NO_EPOCHS
    for epoch, offset in pairs:
        epochs = epochs.assign(epoch, offset)
    return epochs


@given(PAIRS)
def test_epochs_and_offsets_rise(pairs: list[tuple[int, int]]) -> None:
    for one, other in pairwise(cached(pairs).entries):
        assert one.epoch < other.epoch
        assert one.start_offset < other.start_offset


@given(PAIRS, PAIRS)
def test_all_at_once_is_one_after_the_other(
    pairs: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    assert cached(pairs).assign_all(more) == cached(pairs + more)


@given(PAIRS, st.integers(0, 12), st.integers(0, 40))
def test_what_was_assigned_last_holds(
    pairs: list[tuple[int, int]], epoch: int, offset: int
) -> None:
    before = cached(pairs)
    after = before.assign(epoch, offset)
    assert after.latest_epoch == epoch
    if before.latest_epoch != epoch:
        assert after.entries[-1] == EpochEntry(epoch, offset)
        assert after.epoch_for(offset) == epoch


@given(PAIRS, st.integers(0, 45))
def test_a_cut_at_the_end_keeps_what_is_before(pairs: list[tuple[int, int]], offset: int) -> None:
    epochs = cached(pairs)
    kept = epochs.truncate_from_end(offset)
    assert kept.entries == epochs.entries[: len(kept.entries)]
    assert all(entry.start_offset < offset for entry in kept.entries)
    for before in range(offset):
        assert kept.epoch_for(before) == epochs.epoch_for(before)


@given(PAIRS, st.integers(0, 45))
def test_a_cut_at_the_start_keeps_the_epoch_of_what_is_behind(
    pairs: list[tuple[int, int]], offset: int
) -> None:
    epochs = cached(pairs)
    kept = epochs.truncate_from_start(offset)
    for behind in range(offset, 50):
        assert kept.epoch_for(behind) == epochs.epoch_for(behind)
    if epochs.entries and epochs.entries[0].start_offset <= offset:
        assert kept.earliest is not None
        assert kept.earliest.start_offset == offset


@given(PAIRS, st.integers(-1, 14))
def test_an_epoch_ends_where_the_next_begins(pairs: list[tuple[int, int]], asked: int) -> None:
    epochs = cached(pairs)
    found, end = epochs.end_offset_for(asked, 100)
    behind = epochs.next(asked)
    if asked == -1 or asked > epochs.latest_epoch:
        assert (found, end) == (-1, -1)
    elif asked == epochs.latest_epoch:
        assert (found, end) == (asked, 100)
    else:
        assert behind is not None
        assert end == behind.start_offset
        floor = epochs.previous(asked + 1)
        assert found == (asked if floor is None else floor.epoch)


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 0), (0, -1)])
def test_negative_numbers_are_refused(epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="neither is negative"):
        NO_EPOCHS.assign(epoch, offset)


def test_a_lower_start_of_the_latest_epoch_counts() -> None:
    assert cached([(2, 9), (2, 5)]).entries == (EpochEntry(2, 5),)
    assert NO_EPOCHS.earliest is None
