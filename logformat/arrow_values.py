"""Arrow arrays from numpy's and Python's values and back, without pandas.

The rule: what reads and plans makes its arrays here. `pa.array`, `pa.scalar`, `to_numpy` and an
Arrow function that gets a Python value as an argument ask pandas first whether the value is one of
its own, and so import it: 0.2 to 0.5 s in each Python process that Spark starts. Numbers are not
copied unless a column has several chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column: TypeAlias = pa.Array | pa.ChunkedArray

_ARROW_TYPES: dict[type[np.generic], pa.DataType] = {
    np.int8: pa.int8(),
    np.int16: pa.int16(),
    np.int32: pa.int32(),
    np.int64: pa.int64(),
    np.uint8: pa.uint8(),
    np.uint16: pa.uint16(),
    np.uint32: pa.uint32(),
    np.uint64: pa.uint64(),
}
_NUMPY_TYPES = {arrow_type: numpy_type for numpy_type, arrow_type in _ARROW_TYPES.items()}


def from_numpy(values: npt.NDArray[Any], nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers or truth values as an Arrow array.

    Args:
        values: Whole numbers in the machine's byte order, or truth values.
        nulls: Which of them are null; None if none is.
    """
    validity = None if nulls is None else _bits(~nulls)
    if values.dtype.type is np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [validity, _bits(values)])
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(_ARROW_TYPES[values.dtype.type], len(values), [validity, data])


def to_numpy(column: Column) -> npt.NDArray[Any]:
    """Return whole numbers or truth values, without a null, as a numpy array.

    Args:
        column: An Arrow array, chunked or not.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks != 1:
            return np.concatenate([_empty(column.type), *map(to_numpy, column.chunks)])
        column = column.chunk(0)
    if column.null_count:
        raise ValueError(f"{column.null_count} of {len(column)} values are null")
    if not len(column):
        return _empty(column.type)
    data, first, end = column.buffers()[1], column.offset, column.offset + len(column)
    if column.type == pa.bool_():
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=end, bitorder="little")
        return bits[first:].view(np.bool_)
    return np.frombuffer(data, _NUMPY_TYPES[column.type], end)[first:]


def numbers(values: Sequence[int], arrow_type: pa.DataType) -> pa.Array:
    """Return whole numbers as an Arrow array.

    Args:
        values: The numbers.
        arrow_type: An Arrow type of whole numbers.
    """
    return from_numpy(np.array(values, _NUMPY_TYPES[arrow_type]))


def texts(values: Sequence[str]) -> pa.StringArray:
    """Return texts as an Arrow array.

    Args:
        values: The texts.
    """
    encoded = [value.encode() for value in values]
    bounds = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(value) for value in encoded], out=bounds[1:])
    if bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("the texts of an Arrow array have at most 2 GiB")
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def text(value: str) -> pa.StringScalar:
    """Return a text as an argument of an Arrow function.

    Args:
        value: The text.
    """
    return texts([value])[0]


def number_lists(values: Sequence[Sequence[int]]) -> pa.ListArray:
    """Return lists of whole numbers as an Arrow array of int64 lists.

    Args:
        values: The lists.
    """
    bounds = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in values], out=bounds[1:])
    items = numbers([number for value in values for number in value], pa.int64())
    return pa.Array.from_buffers(
        pa.list_(pa.int64()), len(values), [None, pa.py_buffer(bounds)], children=[items]
    )


def _bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _empty(arrow_type: pa.DataType) -> npt.NDArray[Any]:
    return np.empty(0, np.bool_ if arrow_type == pa.bool_() else _NUMPY_TYPES[arrow_type])
