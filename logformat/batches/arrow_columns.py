"""Arrow columns for writers: lengths to numpy, bytes from numpy, and errors that name a row.

The rule: no byte of a key or value passes through numpy. Arrow returns lengths, numpy writes what
stands between the fields, and Arrow joins both, element by element, into one buffer. Arrow's
functions are imported when records are written: a reader has no need of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from klog.logformat.array_types import Bytes, Longs, Mask, SignedBytes, UnsignedLongs
from klog.logformat.batches.varint import encode_varints, varint_sizes

Column: TypeAlias = pa.Array | pa.ChunkedArray


def byte_lengths(column: Column) -> Longs:
    """Return the length of each element in bytes, -1 for null, as the varint before a field.

    Args:
        column: Binary or string.
    """
    import pyarrow.compute as pc

    lengths = pc.binary_length(column)
    if lengths.null_count:
        lengths = lengths.fill_null(-1)
    numbers: Longs = lengths.to_numpy().astype(np.int64)
    return numbers


def field_sizes(lengths: Longs, zigzag_lengths: UnsignedLongs) -> Longs:
    """Return the bytes of fields with the varints of their lengths.

    Args:
        lengths: As `byte_lengths` returns them.
        zigzag_lengths: The zig-zags of the same lengths.
    """
    sizes: Longs = np.maximum(lengths, 0)
    sizes += varint_sizes(zigzag_lengths)
    return sizes


def varint_column(*columns: UnsignedLongs) -> pa.BinaryArray:
    """Return the varints of each row, side by side, as one element.

    Args:
        *columns: Zig-zags, a column for each varint of a row.
    """
    data, sizes = encode_varints(columns)
    return binary_array(data, element_bounds(sizes))


def element_bounds(sizes: Longs | SignedBytes) -> Longs:
    """Return where elements of these sizes start, and the end of the last one.

    Args:
        sizes: The bytes of each element.
    """
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def binary_array(data: Bytes, bounds: Longs) -> pa.BinaryArray:
    """Return elements of a buffer as an Arrow array; the bytes are not copied.

    Args:
        data: The bytes of all elements.
        bounds: Where each element starts, and the end of the last one.
    """
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def join_columns(columns: Sequence[pa.Array]) -> Bytes:
    """Return the elements of several columns, row by row, without gaps; null has no bytes.

    Args:
        columns: Binary columns of the same length.
    """
    import pyarrow.compute as pc

    # Not a constant: Arrow imports pandas for it, which costs processes that never write 0.5 s.
    separator = pa.scalar(b"", pa.binary())
    rows = pc.binary_join_element_wise(
        *columns, separator, null_handling="replace", null_replacement=b""
    )
    if not len(rows):
        return np.empty(0, np.uint8)
    _, bounds, data = rows.buffers()
    return np.frombuffer(data, np.uint8, int(np.frombuffer(bounds, np.int32)[len(rows)]))


def column_chunks(column: Column) -> list[pa.Array]:
    """Return the chunks of a column; an array is one chunk.

    Args:
        column: An Arrow array, chunked or not.
    """
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def contiguous_slice(column: Column, start: int, end: int) -> pa.Array:
    """Return the rows from `start` to before `end`; only rows in several chunks are copied.

    Args:
        column: An Arrow array, chunked or not.
        start: The first row.
        end: The row after the last one.
    """
    rows = column.slice(start, end - start)
    if not isinstance(rows, pa.ChunkedArray):
        return rows
    return rows.chunk(0) if rows.num_chunks == 1 else pa.concat_arrays(rows.chunks)


def raise_for_row(is_wrong: Mask, first_row: int, reason: str) -> None:
    """Raise an error for the first wrong row, if there is one.

    Args:
        is_wrong: Which rows are wrong.
        first_row: The number of the mask's first row.
        reason: What is wrong with the row.

    Raises:
        ValueError: A row is wrong; the error names the row.
    """
    if is_wrong.any():
        raise ValueError(f"row {first_row + int(np.argmax(is_wrong))}: {reason}")
