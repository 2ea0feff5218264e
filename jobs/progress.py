"""A progress bar on a terminal, and nothing where there is none.

The rule: it is one line on standard error that each step overwrites, and it is gone in the end, so
that what a job prints is the same with and without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

Item = TypeVar("Item")

_WIDTH = 30


def shown(items: Iterable[Item], total: int, what: str, to: TextIO | None = None) -> Iterator[Item]:
    """Give the items, and show how many of `total` have come; 0 is a total that is not known."""
    out = sys.stderr if to is None else to
    if not out.isatty():
        yield from items
        return
    try:
        for done, item in enumerate(items):
            _show(out, done, total, what)
            yield item
    finally:
        out.write("\r\x1b[K")
        out.flush()


def _show(out: TextIO, done: int, total: int, what: str) -> None:
    filled = _WIDTH * done // total if total else 0
    of = f" of {total}" if total else ""
    out.write(f"\r{what} [{'=' * filled}{' ' * (_WIDTH - filled)}] {done}{of}\x1b[K")
    out.flush()
