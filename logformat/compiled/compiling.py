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
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar, cast
from zipimport import zipimporter

import numpy as np
import numpy.typing as npt

Loop = TypeVar("Loop", bound=Callable[..., Any])
Kernel = TypeVar("Kernel")

WORTH_RECORDS = 1 << 22
"""To read or to write so many records takes some 0.7 s less with loops; to load them takes 0.6 s,
and to compile them, once where they can be kept, 5."""
_COMPILED_EACH_TIME = 4
"""Times as many records are worth loops in a zip, of which nothing is kept. Where klog lies in
folders and there is no place to keep them either, which is seen only when they are compiled, a
process loses 1 to 2 s once."""


class Loops(NamedTuple):
    """Modules of loops: over records, and over tables of keys."""

    records: ModuleType
    tables: ModuleType


class Rented(Generic[Kernel]):
    """Loops that a process loads once they are worth it, and uses from then on.

    They are worth it when the records that the process has done without, and those that it is
    known to have still to do, are more than `worth_records`. So a process that knows nothing of
    what is to come loses at most what loading takes, once more; one that knows loses nothing.
    """

    def __init__(self, load: Callable[[], Kernel | None], worth_records: int) -> None:
        """Begin with no record done; below 0 they are worth it at once."""
        self._load = load
        self._left = worth_records * (_COMPILED_EACH_TIME if _is_zipped(__name__) else 1)

    def given(self, records: int, remaining: int = 0) -> Kernel | None:
        """Return the loops for so many records more, None while they are not worth it.

        Args:
            records: Records to do now.
            remaining: Records that the process is known to have still to do, these included.
        """
        if max(records, remaining) <= self._left:
            self._left -= records
            return None
        self._left = -1
        return self._load()


@cache
def loops() -> Loops | None:
    """Give the loops of compactions, compiled; None where there can be none.

    Then there is a warning if numba is there. It is worked out once in a process.
    """
    found = _compiled("loops", "tables")
    return None if found is None else Loops(*found)


@cache
def writing_loops() -> ModuleType | None:
    """Give the loops that write batches, as `loops` does."""
    found = _compiled("writing")
    return None if found is None else found[0]


@cache
def message_loops() -> ModuleType | None:
    """Give the loops that read formats v0 and v1, as `loops` does."""
    found = _compiled("messages")
    return None if found is None else found[0]


def _compiled(*names: str) -> list[ModuleType] | None:
    if find_spec("numba") is None:
        return None
    try:
        found = [import_module(f"klog.logformat.compiled.{name}") for name in names]
        for module in found:
            module.compile_all()
    except Exception as exc:  # noqa: BLE001 - whatever it is, it can be done without
        warnings.warn(
            f"numba is installed and cannot be used, which only makes klog slower: "
            f"{type(exc).__name__}: {exc}",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    return found


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View an array as a loop takes it: whichever it is, the loop is compiled once."""
    found = np.require(array, requirements=["C", "A"]).view()
    found.flags.writeable = False
    return found


def compiled(loop: Loop) -> Loop:
    """Compile a function of numbers and arrays when it is first called, and keep it if possible."""
    from numba import njit

    if _is_zipped(loop.__module__):
        return part(loop)
    try:
        return cast("Loop", njit(cache=True, nogil=True)(loop))
    except RuntimeError:  # There is no place to keep it.
        return part(loop)


def _is_zipped(module: str) -> bool:
    return isinstance(getattr(sys.modules[module], "__loader__", None), zipimporter)


def part(loop: Loop) -> Loop:
    """Compile a function into those that call it: a call would take as long as what it does."""
    from numba import njit

    return cast("Loop", njit(nogil=True, forceinline=True)(loop))
