"""Which kernels a process uses: those that numba compiles, or none and the numpy path instead.

The rule: a process loads kernels when they are worth it: when the records that it has processed
without them, plus those that it still has to process, cost more than loading. A process that does
not know its remaining records loses at most the time of one load; a process that does loses
nothing. The count is the process's, because Spark runs task after task in one Python worker. After
they are loaded, kernels are always used (docs/adr/0010 and 0022).

numba keeps compiled code next to the source, or in the user's cache. Of klog in a zip it keeps
nothing, because Spark unpacks a zip into another folder each time.

Nothing depends on kernels. If numba is missing, or is installed and cannot be used for any reason,
all records take the numpy path.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from zipimport import zipimporter

from klog.logformat.compiled.kernel_types import CleaningKernels

LOADING_COST_RECORDS = 1 << 22
"""Kernels save about 0.7 s on so many records, read or written. Loading them takes 0.6 s; compiling
them takes 5 s, once if the code can be kept."""
_COMPILING_COST_RATIO = 4
"""How many times as much loading costs from a zip, whose compiled code cannot be kept. If klog is
in folders and the code cannot be kept either, which shows only at compilation, a process loses 1 to
2 s once."""


class LazyKernel:
    """Kernels that a process loads once they are worth it, and uses from then on."""

    def __init__(self, load: Callable[[], CleaningKernels | None], cost_records: int) -> None:
        """Start to count records.

        Args:
            load: Returns the kernels, or None if there can be none. `get` calls it each time after
                the kernels are worth it.
            cost_records: How many records cost as much without kernels as loading the kernels;
                below 0 the kernels are worth it at once.
        """
        self._load = load
        ratio = _COMPILING_COST_RATIO if is_in_zip() else 1
        self._cost_records = cost_records * ratio

    def get(self, records: int, remaining: int) -> CleaningKernels | None:
        """Return the kernels for more records, None if they are not worth it yet.

        Args:
            records: How many records the caller processes now.
            remaining: How many records the process still has to process, these included.
        """
        if max(records, remaining) <= self._cost_records:
            self._cost_records -= records
            return None
        self._cost_records = -1
        return self._load()


@cache
def load_cleaning_kernels() -> CleaningKernels | None:
    """Return the kernels of compactions, compiled; None if there can be none.

    Warns if numba is installed and cannot be used. It is done once in a process.
    """
    if find_spec("numba") is None:
        return None
    try:
        from klog.logformat.compiled import hash_table_kernels, record_kernels

        keep_compiled_code(record_kernels, hash_table_kernels)
        record_kernels.compile_all()
        hash_table_kernels.compile_all()
    except Exception as exc:  # noqa: BLE001 - klog does all of it without kernels, too
        warnings.warn(
            f"numba is installed but cannot be used, so klog is slower: {type(exc).__name__}: "
            f"{exc}. Repair numba, or uninstall it",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    return CleaningKernels(record_kernels, hash_table_kernels)


def keep_compiled_code(*modules: ModuleType) -> None:
    """Let numba keep the compiled code of kernels, if it can.

    Args:
        *modules: Modules of `logformat.compiled` that have `KERNELS`.
    """
    if is_in_zip():
        return
    for function in (function for module in modules for function in module.KERNELS):
        try:
            function.enable_caching()
        except RuntimeError:  # There is no place to keep the code.
            return


def is_in_zip() -> bool:
    """Return whether klog was imported from a zip."""
    return isinstance(__spec__.loader, zipimporter)


CLEANING = LazyKernel(load_cleaning_kernels, LOADING_COST_RECORDS)
"""For all compactions of this process."""


def get_cleaning_kernels(records: int, remaining: int) -> CleaningKernels | None:
    """Return the kernels to clean segments with, and count their records.

    Args:
        records: How many records they cost without kernels.
        remaining: What all compactions cost that the process has still to do, this one included.
    """
    return CLEANING.get(records, remaining)
