"""Parquet files of klog's own, read whole: checkpoints, their parts and sidecars.

The rule: what a file's footer says it holds is bounded before it is read, for a small file can say
that it holds very much; and whatever its bytes are, there is a table or an error in words.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from klog.errors import UnsupportedFormatError

MOST_ROWS = 8_000_000
MOST_BYTES = 2 << 30
"""Decompressed, as the footer says; a million segments are 300 MB, and stand in parts."""

DAMAGE = (
    pa.ArrowException, KeyError, ValueError, TypeError, AttributeError, RecursionError
)  # fmt: skip
"""What is raised where the rows or the metadata of a file are not what they should be."""


def read_schema(data: bytes) -> pa.Schema:
    """Read the schema of a file that is not larger than may be read.

    Raises `UnsupportedFormatError` for what is no Parquet file, or too large a one.
    """
    return _opened(data).schema_arrow


def read_table(data: bytes) -> pa.Table:
    """Read all rows; errors as those of `read_schema`."""
    file = _opened(data)
    try:
        return file.read(use_threads=False)
    except (pa.ArrowException, OSError) as exc:
        raise UnsupportedFormatError(f"its rows cannot be read: {exc}") from exc


def _opened(data: bytes) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as exc:
        # What exceeds a limit of Thrift's is an OSError, and no Arrow one.
        raise UnsupportedFormatError(f"it is no Parquet file: {exc}") from exc
    footer = file.metadata
    groups = range(footer.num_row_groups)
    size_bytes = sum(footer.row_group(number).total_byte_size for number in groups)
    if footer.num_rows > MOST_ROWS or size_bytes > MOST_BYTES:
        raise UnsupportedFormatError(
            f"it has {footer.num_rows} rows of {size_bytes} bytes, at most {MOST_ROWS} of "
            f"{MOST_BYTES} are read"
        )
    return file
