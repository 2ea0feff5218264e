"""What a broker asks its leader epochs (docs/format.md, 12)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.broker_files.leader_epochs import NO_EPOCHS
from tests.logformat.broker_files.test_leader_epochs import PAIRS
from tests.support.broker_loader.leader_epoch_cache import (
    assign,
    end_offset_for,
    epoch_for,
    next_entry,
    previous_entry,
    truncate_from_end,
)


@given(PAIRS, st.integers(0, 12), st.integers(0, 40))
def test_assigned_epoch_is_that_of_its_start(
    pairs: list[tuple[int, int]], epoch: int, offset: int
) -> None:
    before = NO_EPOCHS.assign_all(pairs)
    after = assign(before, epoch, offset)
    if before.latest_epoch != epoch:
        assert epoch_for(after, offset) == epoch


@given(PAIRS, st.integers(0, 45))
def test_truncated_end_keeps_earlier_epochs(pairs: list[tuple[int, int]], offset: int) -> None:
    epochs = NO_EPOCHS.assign_all(pairs)
    truncated = truncate_from_end(epochs, offset)
    assert truncated.entries == epochs.entries[: len(truncated.entries)]
    assert all(entry.start_offset < offset for entry in truncated.entries)
    for earlier in range(offset):
        assert epoch_for(truncated, earlier) == epoch_for(epochs, earlier)


@given(PAIRS, st.integers(0, 45))
def test_truncated_start_keeps_later_epochs(pairs: list[tuple[int, int]], offset: int) -> None:
    epochs = NO_EPOCHS.assign_all(pairs)
    truncated = epochs.truncate_from_start(offset)
    for later in range(offset, 50):
        assert epoch_for(truncated, later) == epoch_for(epochs, later)


@given(PAIRS, st.integers(-1, 14))
def test_epoch_ends_where_the_next_starts(pairs: list[tuple[int, int]], epoch: int) -> None:
    epochs = NO_EPOCHS.assign_all(pairs)
    floor, end = end_offset_for(epochs, epoch, 100)
    later = next_entry(epochs, epoch)
    if epoch == -1 or epoch > epochs.latest_epoch:
        assert (floor, end) == (-1, -1)
    elif epoch == epochs.latest_epoch:
        assert (floor, end) == (epoch, 100)
    else:
        assert later is not None
        assert end == later.start_offset
        earlier = previous_entry(epochs, epoch + 1)
        assert floor == (epoch if earlier is None else earlier.epoch)
