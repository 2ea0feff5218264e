"""How a function becomes a kernel: numba compiles it.

The rule: who loads the kernels decides whether numba keeps the compiled code. Kept code is used
until its source file changes. So a module of kernels imports no function that is compiled into its
own: numba would not notice when that changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Return a function of numbers and arrays that numba compiles when it is first called.

    Args:
        function: The function as Python.
    """
    from numba import njit

    return cast("Function", njit(nogil=True)(function))


def inlined(function: Function) -> Function:
    """Return a function that numba compiles into its callers: a call takes as long as its work.

    Args:
        function: The function as Python.
    """
    from numba import njit

    return cast("Function", njit(nogil=True, forceinline=True)(function))
