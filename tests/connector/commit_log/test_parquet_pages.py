"""A small Parquet file that holds very much: it is refused before its rows are made."""

from __future__ import annotations

import struct
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.commit_log import parquet_tables
from klog.connector.commit_log.parquet_pages import file_sizes
from klog.errors import UnsupportedFormatError

LIMIT = 8 << 20


def file_of(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **options)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def texts(text: str, rows: int) -> pa.Table:
    indices = pa.array([0] * rows, pa.int32())
    return pa.table({"file": pa.DictionaryArray.from_arrays(indices, pa.array([text]))})


def numbers(values: int) -> pa.Table:
    flat = pa.repeat(pa.scalar(7, pa.int64()), values)
    return pa.table({"ids": pa.ListArray.from_arrays(pa.array([0, values], pa.int32()), flat)})


def lying(values: int) -> bytes:
    """Return a file whose footer says that a column has one value."""
    data = file_of(numbers(values))
    (length,) = struct.unpack("<I", data[-8:-4])
    before, footer, tail = data[: -8 - length], data[-8 - length : -8], data[-8:]
    count = _varint(2 * values)
    data = before + footer.replace(count, b"\x82" + b"\x80" * (len(count) - 2) + b"\0") + tail
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0)
    assert column.num_values == 1
    return data


def _varint(value: int) -> bytes:
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


@pytest.mark.parametrize(
    "data",
    [
        file_of(texts("x" * 1000, 100_000)),
        file_of(texts("x" * 1000, 100_000), store_schema=False),
        file_of(texts("x" * 1000, 100_000), data_page_version="2.0"),
        file_of(texts("x" * 1000, 100_000), row_group_size=1000),
        file_of(texts("x" * (LIMIT + 1), 1)),
        file_of(texts("x" * (LIMIT + 1), 1), use_dictionary=False),
        file_of(numbers(2_000_000)),
        file_of(numbers(2_000_000), data_page_version="2.0"),
        lying(2_000_000),
    ],
    ids=[
        "texts", "without a schema", "pages v2", "groups", "a long text", "a plain long text",
        "numbers", "numbers v2", "a footer that lies",
    ],
)  # fmt: skip
def test_a_small_file_that_holds_much_is_refused(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(data) < 1 << 20
    monkeypatch.setattr(parquet_tables, "MAX_BYTES", LIMIT)
    with pytest.raises(UnsupportedFormatError, match="at most 8000000 of 8388608 are"):
        parquet_tables.decode_table(data)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("use_dictionary", [True, False, ["file"]])
def test_texts_and_lists_are_read_as_they_were_written(
    version: str, rows: int, use_dictionary: object
) -> None:
    table = pa.table(
        {
            "file": pa.array([f"t-0/{number % 3}" for number in range(rows)], pa.string()),
            "null": pa.array([None if number % 2 else "x" for number in range(rows)], pa.string()),
            "ids": pa.array([[n] * (n % 3) for n in range(rows)], pa.list_(pa.int64())),
            "count": pa.array(range(rows), pa.int64()),
        }
    )  # fmt: skip
    data = file_of(
        table, data_page_version=version, use_dictionary=use_dictionary, row_group_size=300
    )
    result = parquet_tables.decode_table(data)
    assert result.equals(table)
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    sizes = file_sizes(data)
    assert sizes.rows == rows
    assert sizes.values == sum(column.num_values for column in columns)
    assert sizes.size_bytes == sum(group.total_byte_size for group in groups)


@given(st.integers(0, 600), st.binary(min_size=1, max_size=8))
def test_any_damage_is_a_table_or_an_error_in_words(at: int, junk: bytes) -> None:
    data = bytearray(file_of(texts("text", 10)))
    data[at : at + len(junk)] = junk
    with suppress(UnsupportedFormatError):
        parquet_tables.decode_table(bytes(data))
