"""Loops that numba compiled, from the first record on, and none at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from klog.logformat import legacy
from klog.logformat.compiled.compiling import Rented, loops, message_loops, writing_loops

BY_COLUMNS = Rented[Any](lambda: None, -1)
BY_LOOPS = Rented(writing_loops, -1)
CLEANED_BY_LOOPS = Rented(loops, -1)
MESSAGES_BY_LOOPS = Rented(message_loops, -1)


@contextmanager
def read_by(way: Rented[ModuleType]) -> Iterator[None]:
    """Read formats v0 and v1 this way."""
    usual, legacy.READING = legacy.READING, way
    try:
        yield
    finally:
        legacy.READING = usual
