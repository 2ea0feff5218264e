"""Arrays as kernels take them.

The rule: numba compiles a kernel once for each layout, alignment and writability of its arguments.
So arrays that a kernel only reads are contiguous, aligned and read-only.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from klog.logformat.array_types import Bytes

Array = TypeVar("Array", bound=npt.NDArray[Any])


def read_only(array: Array) -> Array:
    """Return a read-only view of an array; only one that is not contiguous or aligned is copied.

    Args:
        array: The array; it stays writable.
    """
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return cast("Array", view)


def read_only_bytes(data: bytes | bytearray) -> Bytes:
    """Return a read-only view of bytes.

    Args:
        data: The bytes; a bytearray stays writable.
    """
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view
