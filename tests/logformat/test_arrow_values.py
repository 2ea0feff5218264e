"""Arrow arrays are those that `pa.array` makes, and pandas is not imported for them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klog.logformat.arrow_values import (
    from_numpy,
    number_lists,
    numbers,
    text,
    texts,
    to_numpy,
)

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def edges(dtype: type[np.generic]) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)  # type: ignore[type-var]
    return np.array([limits.min, 0, 1, limits.max], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_of_every_size(dtype: type[np.generic]) -> None:
    values = edges(dtype)
    array = from_numpy(values)
    array.validate(full=True)
    assert array.equals(pa.array(values))
    assert to_numpy(array).tolist() == values.tolist()
    assert to_numpy(array).dtype == values.dtype
    assert numbers(values.tolist(), array.type).equals(array)


def test_every_second_number() -> None:
    values = np.arange(10, dtype=np.int64)[::2]
    assert from_numpy(values).to_pylist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 65])
def test_truth_values_and_nulls(count: int) -> None:
    values, nulls = np.arange(count) % 3 == 0, np.arange(count) % 2 == 1
    array = from_numpy(values)
    array.validate(full=True)
    assert array.equals(pa.array(values.tolist(), pa.bool_()))
    assert to_numpy(array).tolist() == values.tolist()
    with_nulls = from_numpy(np.arange(count, dtype=np.int32), nulls)
    with_nulls.validate(full=True)
    assert with_nulls.equals(pa.array(np.arange(count, dtype=np.int32), mask=nulls))


@pytest.mark.parametrize("rows", [slice(0, 0), slice(3, 12), slice(9, 20)])
@pytest.mark.parametrize("values", [np.arange(20), np.arange(20) % 3 == 0])
def test_slices_and_chunks(values: np.ndarray[Any, Any], rows: slice) -> None:
    array = from_numpy(values)[rows]
    assert to_numpy(array).tolist() == values[rows].tolist()
    chunked = pa.chunked_array([array, from_numpy(values)])
    assert to_numpy(chunked).tolist() == [*values[rows].tolist(), *values.tolist()]
    no_chunk = pa.chunked_array([], array.type)
    assert (to_numpy(no_chunk).tolist(), to_numpy(no_chunk).dtype) == ([], values.dtype)


def test_nulls_have_no_number() -> None:
    with pytest.raises(ValueError, match="1 of 2 values are null"):
        to_numpy(pa.array([1, None]))


@pytest.mark.parametrize("values", [[], [""], ["a", "", "ü€", "a/b"]])
def test_texts(values: list[str]) -> None:
    array = texts(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.string()))
    assert [text(value).as_py() for value in values] == values


@pytest.mark.parametrize("values", [[], [[]], [[1, -2], [], [1 << 62]]])
def test_lists_of_numbers(values: list[list[int]]) -> None:
    array = number_lists(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.list_(pa.int64())))


def test_pandas_is_not_imported() -> None:
    code = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from klog.logformat.arrow_values import from_numpy, number_lists, numbers, text, texts, to_numpy

array = from_numpy(np.arange(9), np.arange(9) == 2)
to_numpy(array.drop_null())
to_numpy(pc.equal(texts(["a", "b"]), text("a")))
numbers([1], pa.int32())
number_lists([[1]])
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
