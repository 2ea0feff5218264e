"""Small reads at the same time, for stores where each of them waits for the network.

The rule: results come in the order of the items, a bounded number of reads run at a time, and no
read starts after the caller has stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def read_in_order(
    read: Callable[[T], R], items: Iterable[T], max_parallel_reads: int
) -> Iterator[R]:
    """Yield `read(item)` for each item, in order.

    An error of `read` is raised when the turn of its item comes.

    Args:
        read: Reads one item.
        items: What to read.
        max_parallel_reads: How many reads run at a time; with 1, in the caller's thread.
    """
    if max_parallel_reads == 1:
        yield from map(read, items)
        return
    pending = iter(items)
    with ThreadPoolExecutor(max_parallel_reads) as threads:
        running: deque[Future[R]] = deque()
        try:
            while True:
                for item in islice(pending, max_parallel_reads - len(running)):
                    running.append(threads.submit(read, item))
                if not running:
                    return
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
