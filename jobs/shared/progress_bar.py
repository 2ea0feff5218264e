"""A progress bar on a terminal; without a terminal nothing.

The rule: the bar is one line on standard error. Each step overwrites it and the last one clears it,
so what a job prints is the same with and without a bar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

Item = TypeVar("Item")

_WIDTH = 30


def with_progress_bar(
    items: Iterable[Item], total: int, label: str, out: TextIO | None = None
) -> Iterator[Item]:
    """Yield items and show how many have come.

    Args:
        items: The items.
        total: How many items there are; 0 if that is not known.
        label: The text before the bar.
        out: Where the bar is shown; by default standard error.
    """
    out = sys.stderr if out is None else out
    if not out.isatty():
        yield from items
        return
    try:
        for count, item in enumerate(items):
            _draw(out, count, total, label)
            yield item
    finally:
        out.write("\r\x1b[K")
        out.flush()


def _draw(out: TextIO, count: int, total: int, label: str) -> None:
    filled = _WIDTH * count // total if total else 0
    of_total = f" of {total}" if total else ""
    out.write(f"\r{label} [{'=' * filled}{' ' * (_WIDTH - filled)}] {count}{of_total}\x1b[K")
    out.flush()
