"""Parallel reads: in order, a bounded number at a time, none after the caller has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Barrier, Lock

import pytest

from klog.connector.store.parallel_reads import read_in_order
from tests.support.waiting import TIMEOUT_SECONDS


@pytest.mark.parametrize("max_parallel_reads", [1, 2, 5, 50])
def test_results_come_in_order(max_parallel_reads: int) -> None:
    assert list(read_in_order(lambda item: -item, range(20), max_parallel_reads)) == [
        -item for item in range(20)
    ]
    assert list(read_in_order(lambda item: -item, [], max_parallel_reads)) == []


@pytest.mark.parametrize("max_parallel_reads", [2, 5])
def test_max_parallel_reads_run_at_a_time(max_parallel_reads: int) -> None:
    """Each read waits until as many have started; with fewer, none would end."""
    barrier = Barrier(max_parallel_reads)
    results = read_in_order(
        lambda item: barrier.wait(TIMEOUT_SECONDS) and item,
        range(4 * max_parallel_reads),
        max_parallel_reads,
    )
    assert len(list(results)) == 4 * max_parallel_reads


@pytest.mark.parametrize("max_parallel_reads", [1, 2, 5])
def test_no_read_starts_after_the_caller_stops(max_parallel_reads: int) -> None:
    lock, taken = Lock(), 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in count():
            with lock:
                taken = number + 1
            yield number

    results = read_in_order(lambda item: item, items(), max_parallel_reads)
    for number in range(10):
        assert next(results) == number
        assert taken <= number + max_parallel_reads
    results.close()  # type: ignore[attr-defined]
    assert taken <= 9 + max_parallel_reads


@pytest.mark.parametrize("max_parallel_reads", [1, 2, 5])
def test_error_is_raised_at_the_turn_of_its_item(max_parallel_reads: int) -> None:
    def read(item: int) -> int:
        if item == 3:
            raise FileNotFoundError("three")
        return item

    results = read_in_order(read, range(9), max_parallel_reads)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match="three"):
        next(results)
