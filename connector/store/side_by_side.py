"""Small reads side by side, where one alone waits for the network.

The rule: results come in the order of what was asked for, a bounded number are under way, and none
is begun when the caller has stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(read: Callable[[T], R], wanted: Iterable[T], at_once: int) -> Iterator[R]:
    """Yield `read(one)` for each of `wanted`, in order, `at_once` of them under way.

    Raises what `read` raises, when its turn comes.
    """
    if at_once == 1:
        yield from map(read, wanted)
        return
    coming = iter(wanted)
    with ThreadPoolExecutor(at_once) as threads:
        under_way: deque[Future[R]] = deque()
        try:
            while True:
                for one in islice(coming, at_once - len(under_way)):
                    under_way.append(threads.submit(read, one))
                if not under_way:
                    return
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
