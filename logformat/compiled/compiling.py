"""Whether loops that numba compiles can be had here, and what is kept of them.

The rule: nobody depends on them. Where numba is missing, or is there and cannot be used, for
whatever reason, there are none, and who asked goes the way without. What was compiled numba keeps
beside the source, or in the user's cache where it may not write there, until the source changes; of
a module in a zip nothing is kept, for Spark unpacks one somewhere else each time.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast
from zipimport import zipimporter

Loop = TypeVar("Loop", bound=Callable[..., Any])

WORTH_RECORDS = 1 << 22
"""A partition of fewer takes some 1.5 s more without them; to load them takes 0.6 s, and to compile
them, once where they can be kept, 5."""


class Loops(NamedTuple):
    """Modules of loops: over records, and over tables of keys."""

    records: ModuleType
    tables: ModuleType


@cache
def loops() -> Loops | None:
    """Give the loops, compiled; None where there can be none, with a warning if numba is there.

    It is worked out once in a process.
    """
    if find_spec("numba") is None:
        return None
    try:
        from klog.logformat.compiled import loops as records
        from klog.logformat.compiled import tables

        records.compile_all()
        tables.compile_all()
    except Exception as exc:  # noqa: BLE001 - whatever it is, it can be done without
        warnings.warn(
            f"numba is installed and cannot be used, which only makes compaction slower: "
            f"{type(exc).__name__}: {exc}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return Loops(records, tables)


def compiled(loop: Loop) -> Loop:
    """Compile a function of numbers and arrays when it is first called, and keep it if possible."""
    from numba import njit

    if isinstance(getattr(sys.modules[loop.__module__], "__loader__", None), zipimporter):
        return part(loop)
    try:
        return cast("Loop", njit(cache=True, nogil=True)(loop))
    except RuntimeError:  # There is no place to keep it.
        return part(loop)


def part(loop: Loop) -> Loop:
    """Compile a function into those that call it: a call would take as long as what it does."""
    from numba import njit

    return cast("Loop", njit(nogil=True, forceinline=True)(loop))
