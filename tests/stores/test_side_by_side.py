"""Reads side by side: in order, so many under way, and no more when the caller has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Barrier, Lock

import pytest

from klog.connector.store.side_by_side import in_order

WAIT_SECONDS = 30


@pytest.mark.parametrize("at_once", [1, 2, 5, 50])
def test_results_come_in_order(at_once: int) -> None:
    assert list(in_order(lambda one: -one, range(20), at_once)) == [-one for one in range(20)]
    assert list(in_order(lambda one: -one, [], at_once)) == []


@pytest.mark.parametrize("at_once", [2, 5])
def test_so_many_are_under_way_together(at_once: int) -> None:
    """Each waits until as many have begun; with fewer under way none would end."""
    barrier = Barrier(at_once)
    found = in_order(lambda one: barrier.wait(WAIT_SECONDS) and one, range(4 * at_once), at_once)
    assert len(list(found)) == 4 * at_once


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_no_more_are_taken_than_are_under_way(at_once: int) -> None:
    lock, taken = Lock(), 0

    def coming() -> Iterator[int]:
        nonlocal taken
        for number in count():
            with lock:
                taken = number + 1
            yield number

    found = in_order(lambda one: one, coming(), at_once)
    for number in range(10):
        assert next(found) == number
        assert taken <= number + at_once
    found.close()  # type: ignore[attr-defined]
    assert taken <= 9 + at_once


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_what_a_read_raises_comes_when_its_turn_has_come(at_once: int) -> None:
    def read(one: int) -> int:
        if one == 3:
            raise FileNotFoundError("three")
        return one

    found = in_order(read, range(9), at_once)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match="three"):
        next(found)
