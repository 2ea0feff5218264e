"""The numpy arrays that functions take and return, by the type of an element.

The rule: a name says the element's type in Java's words, as Kafka's source does, and nothing of
what the numbers mean. An array has one dimension unless the function that takes it says otherwise.
Numbers are in the machine's byte order, except in `Structs`, whose dtype names the order of each
field.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
"""uint8: bytes of a buffer."""
SignedBytes: TypeAlias = npt.NDArray[np.int8]
"""int8: numbers that are small or come from a byte, such as a magic or a timestamp type."""
Shorts: TypeAlias = npt.NDArray[np.int16]
"""int16."""
UnsignedShorts: TypeAlias = npt.NDArray[np.uint16]
"""uint16."""
Ints: TypeAlias = npt.NDArray[np.int32]
"""int32: partitions, and the offsets of Arrow's arrays of binary."""
UnsignedInts: TypeAlias = npt.NDArray[np.uint32]
"""uint32: checksums, and hashes and words of 32 bits."""
Longs: TypeAlias = npt.NDArray[np.int64]
"""int64: offsets, positions, sizes, counts and timestamps."""
UnsignedLongs: TypeAlias = npt.NDArray[np.uint64]
"""uint64: zig-zag numbers, and hashes and words of 64 bits."""
Indices: TypeAlias = npt.NDArray[np.intp]
"""intp: row numbers, as numpy's functions return them."""
Mask: TypeAlias = npt.NDArray[np.bool_]
"""bool: which rows a condition holds for."""
Structs: TypeAlias = npt.NDArray[np.void]
"""Rows of a structured dtype: headers of batches, entries of index files."""
