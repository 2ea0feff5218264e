"""What writing needs of Arrow's columns: lengths to numpy, bytes from numpy, rows named in errors.

The rule: no byte of a key or value passes through numpy. Arrow tells lengths, numpy makes what
stands between, and Arrow joins both, element by element, in one piece of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from klog.logformat.varint import Bytes, Longs, Raw, Sizes, varint_sizes, write_varints

Column: TypeAlias = pa.Array | pa.ChunkedArray


def byte_lengths(column: Column) -> Longs:
    """Give the bytes of each element, -1 for null: what the varint before a field says."""
    lengths = pc.binary_length(column)
    if lengths.null_count:
        lengths = lengths.fill_null(-1)
    numbers: Longs = lengths.to_numpy().astype(np.int64)
    return numbers


def field_sizes(lengths: Longs, raw: Raw) -> Longs:
    """Give the bytes of fields with their varints; `raw` are the same lengths by zig-zag."""
    sizes: Longs = np.maximum(lengths, 0)
    sizes += varint_sizes(raw)
    return sizes


def varints(*columns: Raw) -> pa.BinaryArray:
    """Write the varints of each row side by side, each row an element."""
    data, sizes = write_varints(columns)
    return binary_array(data, bounds_of(sizes))


def bounds_of(sizes: Longs | Sizes) -> Longs:
    """Give where elements of these sizes begin, and behind them where the last one ends."""
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def binary_array(data: Bytes, bounds: Longs) -> pa.BinaryArray:
    """Take bytes and the bounds of elements in them for an Arrow array; nothing is copied."""
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def joined(pieces: Sequence[pa.Array]) -> Bytes:
    """Join the elements of several columns row by row, without gaps; null is nothing."""
    # Not a constant: Arrow imports pandas to make it, which takes who never writes half a second.
    empty = pa.scalar(b"", pa.binary())
    whole = pc.binary_join_element_wise(
        *pieces, empty, null_handling="replace", null_replacement=b""
    )
    if not len(whole):
        return np.empty(0, np.uint8)
    _, bounds, data = whole.buffers()
    return np.frombuffer(data, np.uint8, int(np.frombuffer(bounds, np.int32)[len(whole)]))


def chunks_of(column: Column) -> list[pa.Array]:
    """Give the chunks of a column; an array is one."""
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def in_one_piece(column: Column, begin: int, end: int) -> pa.Array:
    """Take the rows from `begin` to before `end`; only rows in several chunks are copied."""
    part = column.slice(begin, end - begin)
    if not isinstance(part, pa.ChunkedArray):
        return part
    return part.chunk(0) if part.num_chunks == 1 else pa.concat_arrays(part.chunks)


def refuse(wrong: npt.NDArray[np.bool_], first_row: int, reason: str) -> None:
    """Raise `ValueError` that names the first row that is wrong; rows count from `first_row`."""
    if wrong.any():
        raise ValueError(f"row {first_row + int(np.argmax(wrong))}: {reason}")
