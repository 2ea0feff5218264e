"""How a function becomes a kernel: by numba, which keeps the compiled code if it can.

The rule: numba keeps compiled code next to the source, or in the user's cache if it may not write
there, until the source file changes. So a module of kernels imports no function that is compiled
into its own: it would not notice when that changes. Of a module in a zip nothing is kept, because
Spark unpacks a zip into another folder each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast
from zipimport import zipimporter

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Return a function of numbers and arrays that numba compiles when it is first called.

    Args:
        function: The function as Python.
    """
    from numba import njit

    if is_in_zip(function):
        return inlined(function)
    try:
        return cast("Function", njit(cache=True, nogil=True)(function))
    except RuntimeError:  # There is no place to keep the code.
        return inlined(function)


def inlined(function: Function) -> Function:
    """Return a function that numba compiles into its callers: a call takes as long as its work.

    Args:
        function: The function as Python.
    """
    from numba import njit

    return cast("Function", njit(nogil=True, forceinline=True)(function))


def is_in_zip(function: Callable[..., Any]) -> bool:
    """Return whether the function's module was imported from a zip.

    Args:
        function: A function of a module.
    """
    spec = getattr(function, "__globals__", {}).get("__spec__")
    return isinstance(getattr(spec, "loader", None), zipimporter)
