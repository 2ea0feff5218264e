"""Bytes as kernels take them.

The rule: numba compiles a kernel once for each writability of its arguments. So bytes that a kernel
only reads are read-only, whatever they lie in.
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Bytes


def read_only_bytes(data: bytes | bytearray) -> Bytes:
    """Return a read-only view of bytes.

    Args:
        data: The bytes; a bytearray stays writable.
    """
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view
