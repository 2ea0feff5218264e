"""Blocks of lines of a file, and the lines of a block.

The rule: a block is complete lines, so nothing is read twice and memory has one block, or one line
that is longer. A line has at most as many bytes as a batch of klog's. A mark of the byte order at
the start of the file belongs to no line. Lines are split by numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from klog.errors import KlogError
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES

BLOCK_BYTES = 8 << 20
MAX_LINE_BYTES = MAX_BATCH_BYTES
Numbers: TypeAlias = "np.ndarray[Any, Any]"
"""The numbers of lines in their file, from 1."""
_LINE_FEED, _CARRIAGE_RETURN = 10, 13
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(stream: Any) -> Iterator[bytes]:
    """Yield a file in blocks of complete lines, each with its line feed.

    Args:
        stream: The file, decompressed.

    Raises:
        KlogError: A line is too long.
    """
    rest: list[bytes] = []
    line = 1
    block = stream.read(BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK)
    while block:
        end = block.rfind(b"\n") + 1
        if end:
            line += block.count(b"\n")
            yield b"".join([*rest, block[:end]])
            rest = [block[end:]]
        else:
            rest.append(block)
        if sum(map(len, rest)) > MAX_LINE_BYTES:
            raise KlogError(
                f"line {line} has more than {MAX_LINE_BYTES} bytes, and no record has as many. "
                "Write each record in a line of its own"
            )
        block = stream.read(BLOCK_BYTES)
    if any(rest):
        yield b"".join([*rest, b"\n"])


def split_lines(block: bytes, first_line: int) -> tuple[pa.Array, Numbers]:
    """Return the lines that are not empty, and their numbers.

    Args:
        block: Lines, each with its line feed.
        first_line: The number of the first one.
    """
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == _LINE_FEED)
    has_return = (ends > 0) & (data[ends - 1] == _CARRIAGE_RETURN)
    is_kept = np.ones(len(data), bool)
    is_kept[ends] = False
    is_kept[ends[has_return] - 1] = False
    kept_before = ends - np.arange(len(ends)) - np.cumsum(has_return)
    bounds = np.concatenate([[0], kept_before]).astype(np.int32)
    lines = pa.Array.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(data[is_kept])]
    )
    is_line = bounds[1:] > bounds[:-1]
    return lines.filter(pa.array(is_line)), first_line + np.flatnonzero(is_line)
