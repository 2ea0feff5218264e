"""klog's own Parquet files, each read in full: checkpoints, their parts and sidecars.

The rule: the size of the contents is bounded before they are read, for a small file can hold very
much. The footer says it, and the headers of the pages (`parquet_pages.py`), if a value that a
million rows have is written once. A text in a dictionary is repeated only after its size is known.
Whatever a file's bytes are, the result is a table or an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log.parquet_pages import FileSizes, file_sizes
from klog.errors import UnsupportedFormatError
from klog.logformat.arrow_values import to_numpy

if TYPE_CHECKING:
    from pyarrow import parquet as pq

MAX_ROWS = 8_000_000
MAX_BYTES = 2 << 30
"""Decompressed; a million segments are 300 MB, and are in parts."""
_VALUE_BYTES = 8
"""The memory of a value, without the bytes of a text."""

DAMAGE = (
    pa.ArrowException, KeyError, ValueError, TypeError, AttributeError, RecursionError
)  # fmt: skip
"""The errors that wrong rows or metadata of a file cause."""


def decode_schema(data: bytes) -> pa.Schema:
    """Read the schema of a file that is not too large.

    Args:
        data: The bytes of the file.

    Raises:
        UnsupportedFormatError: It is not a Parquet file, or too large.
    """
    _checked_sizes(data)
    return _open(data).schema_arrow


def decode_table(data: bytes) -> pa.Table:
    """Read all rows of a file.

    Args:
        data: The bytes of the file.

    Raises:
        UnsupportedFormatError: It is not a Parquet file, too large, or has damaged rows.
    """
    sizes = _checked_sizes(data)
    file = _open(data)
    try:
        if sizes.repeated_bytes > MAX_BYTES:
            file = _open(data, _texts(file.schema_arrow))
        return _repeated(file.read(use_threads=False))
    except (pa.ArrowException, OSError, ValueError, IndexError) as exc:
        raise UnsupportedFormatError(f"its rows cannot be read: {exc}") from exc


def encode_table(table: pa.Table, dictionaries: Sequence[str]) -> bytes:
    """Return a table as a file.

    Args:
        table: The table, with the metadata of the file in its schema.
        dictionaries: The columns whose values are written as a dictionary.
    """
    from pyarrow import parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=list(dictionaries))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _checked_sizes(data: bytes) -> FileSizes:
    """Return what a file holds; raises as `decode_schema` does."""
    try:
        sizes = file_sizes(data)
    except ValueError as exc:
        raise UnsupportedFormatError(f"it is not a Parquet file: {exc}") from exc
    size_bytes = max(sizes.size_bytes, sizes.values * _VALUE_BYTES)
    if sizes.rows > MAX_ROWS or size_bytes > MAX_BYTES:
        raise _too_much(sizes.rows, size_bytes)
    return sizes


def _open(data: bytes, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    # A reader of a topic without checkpoints needs no Parquet.
    from pyarrow import parquet as pq

    try:
        return pq.ParquetFile(pa.BufferReader(data), read_dictionary=dictionaries)
    except (pa.ArrowException, OSError, ValueError) as exc:
        # A footer above a limit of Thrift's is an OSError, a wrong column name a ValueError.
        raise UnsupportedFormatError(f"it is not a Parquet file: {exc}") from exc


def _texts(schema: pa.Schema) -> list[str]:
    """Return the columns of texts; raises `ValueError` if other columns may have texts too."""
    texts = []
    for field in schema:
        value_type = field.type.value_type if pa.types.is_list(field.type) else field.type
        if _is_text(field.type):
            texts.append(field.name)
        elif not pa.types.is_integer(value_type):
            raise ValueError(f"column {field.name} has {field.type}")
    return texts


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _repeated(table: pa.Table) -> pa.Table:
    """Replace each dictionary of texts by the texts."""
    size_bytes = 0
    for number, field in enumerate(table.schema):
        if not pa.types.is_dictionary(field.type):
            continue
        if not _is_text(field.type):
            raise ValueError(f"column {field.name} has {field.type}")
        for chunk in table.column(number).chunks:
            lengths = pc.binary_length(chunk.dictionary).fill_null(0).to_numpy().astype(np.int64)
            size_bytes += int(lengths[to_numpy(chunk.indices.drop_null())].sum())
            if size_bytes > MAX_BYTES:
                raise _too_much(len(table), size_bytes)
        texts = table.column(number).cast(pa.string())
        table = table.set_column(number, field.with_type(pa.string()), texts)
    return table


def _too_much(rows: int, size_bytes: int) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"it has {rows} rows of {size_bytes} bytes, at most {MAX_ROWS} of {MAX_BYTES} are read"
    )
