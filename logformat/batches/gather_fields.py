"""Fields of many records, copied out of the buffer they lie in into one Arrow column.

The rule: Arrow copies all fields of a column in one call; the caller has checked that each lies in
the buffer, and that they do not overlap.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Longs, Mask
from klog.logformat.arrow_values import from_numpy


def gather_fields(
    data: bytes | bytearray, starts: Longs, ends: Longs, is_null: Mask
) -> pa.BinaryArray:
    """Return fields as a column, copied by Arrow's own take.

    Starts and ends rise, so they are the offsets of an array over `data` in which every second
    element is a field, and the others are what lies between the fields. A single field that is most
    of `data` is not copied, if nobody writes to `data` again.

    Args:
        data: The buffer of the fields.
        starts: Where each field starts.
        ends: Where each field ends.
        is_null: Which fields are null.
    """
    count = len(starts)
    if not count:
        return pa.nulls(0, pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2] = starts
    bounds[1::2] = ends
    elements = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    if count == 1 and isinstance(data, bytes) and 2 * int(ends[0] - starts[0]) > len(data):
        return elements
    rows = np.arange(0, 2 * count, 2, dtype=np.int32)
    mask = is_null if is_null.any() else None
    return elements.take(from_numpy(rows, mask))
