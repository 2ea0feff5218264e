"""Work in waves: what the driver holds at a time is bounded, however much there is.

The rule: a wave has neighbouring items whose sizes together are within the bound, or one item that
alone is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def waves(items: Iterable[T], size: Callable[[T], int], max_size: int) -> Iterator[list[T]]:
    """Yield items in waves, in order.

    Args:
        items: The items.
        size: Returns the size of an item.
        max_size: The size of a wave, unless it is one item.
    """
    wave: list[T] = []
    wave_size = 0
    for item in items:
        item_size = size(item)
        if wave and wave_size + item_size > max_size:
            yield wave
            wave, wave_size = [], 0
        wave.append(item)
        wave_size += item_size
    if wave:
        yield wave
