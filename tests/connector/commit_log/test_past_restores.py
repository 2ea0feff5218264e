"""From which offset on restores changed what a reader has seen, on whatever branch it read."""

from __future__ import annotations

import pytest

from klog.connector.commit_log.past_restores import (
    MAX_RESTORES,
    PastRestore,
    first_changed_offset,
    last_restore,
    with_restore,
)

FIRST = PastRestore(10, 5, {0: 100})
"""The log ended at 200 when commit 10 restored version 5, which ended at 100."""
UNDONE = PastRestore(12, 9, {0: 200})
"""Commit 11 appended, and commit 12 restored what was before the first restore."""
LATER = PastRestore(20, 15, {0: 400})


@pytest.mark.parametrize(
    ("restores", "seen", "expected"),
    [
        ((), 0, None),
        ((FIRST,), 0, 100),
        ((FIRST,), 10, None),
        # Who has seen neither has what is there; who read after the first one saw a hole from 100.
        ((FIRST, UNDONE), 0, 200),
        ((FIRST, UNDONE), 10, 100),
        ((FIRST, UNDONE), 12, None),
        # The lowest end of all restores since counts, not the last one.
        ((FIRST, LATER), 0, 100),
        ((FIRST, LATER), 10, 400),
        ((FIRST, UNDONE, LATER), 10, 100),
        ((FIRST, UNDONE, LATER), 12, 400),
        # A restore that no state remembers may be of any branch.
        ((FIRST, LATER), 7, 100),
    ],
)
def test_first_changed_offset(
    restores: tuple[PastRestore, ...], seen: int, expected: int | None
) -> None:
    assert first_changed_offset(restores, seen, 0) == expected


def test_a_partition_that_had_no_later_offsets_is_not_changed() -> None:
    assert first_changed_offset((FIRST,), 0, 1) is None


def test_a_topic_remembers_the_last_restores() -> None:
    restores: tuple[PastRestore, ...] = ()
    for number in range(1, MAX_RESTORES + 3):
        restores = with_restore(restores, PastRestore(number * 10, number * 10 - 1, {0: number}))
    assert len(restores) == MAX_RESTORES
    assert last_restore(restores) == (MAX_RESTORES + 2) * 10
    # The log is one branch: who has seen a remembered restore is compared with those after it.
    assert first_changed_offset(restores, 50, 0) == 6
    # Who has seen none may have read offsets that a forgotten one took back.
    assert first_changed_offset(restores, 0, 0) == first_changed_offset(restores, 10, 0) == 3
