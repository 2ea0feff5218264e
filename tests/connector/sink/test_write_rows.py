"""Every column type that a write accepts, and every error with its row or column named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.connector.sink.row_checks import RowRules
from klog.connector.sink.write_columns import as_milliseconds
from klog.connector.sink.write_rows import check_rows
from klog.errors import KlogError, OptionError
from klog.logformat.batches.batch_limits import MAX_RECORD_HEADERS
from klog.logformat.batches.encode_records import (
    measure_records,
)
from klog.logformat.batches.record_headers import (
    HEADERS_TYPE,
)
from klog.logformat.batches.records_to_write import Records
from tests.connector.sink.staged_tasks import NOW_MS, stage_rows, topic_state

TEXTS: tuple[pa.DataType, ...] = (pa.string(), pa.large_string(), pa.string_view())
BINARIES: tuple[pa.DataType, ...] = (pa.binary(), pa.large_binary(), pa.binary_view())
VALUES = ["a", None, "", "four"]


def with_column(column: str, *values: Any, kind: pa.DataType | None = None) -> pa.Table:
    """Return a table of values and one more column."""
    return pa.table({"value": ["v"] * len(values), column: pa.array(values, kind)})


@pytest.mark.parametrize("kind", TEXTS + BINARIES + (pa.dictionary(pa.int8(), pa.string()),))
def test_keys_and_values_may_be_text_or_bytes(kind: pa.DataType) -> None:
    if kind in BINARIES:
        column = pa.array([None if v is None else v.encode() for v in VALUES], kind)
    elif pa.types.is_dictionary(kind):
        column = pa.array(VALUES).dictionary_encode()
    else:
        column = pa.array(VALUES, kind)
    # The offset of a slice into its buffers must be respected.
    rows = stage_rows(topic_state(), pa.table({"key": column, "value": column}).slice(1)).rows(0)
    assert [row.key for row in rows] == [row.value for row in rows] == [None, b"", b"four"]


def test_fixed_size_binary_and_null_columns_are_accepted() -> None:
    columns = {"key": pa.array([b"ab", None], pa.binary(2)), "value": pa.nulls(2)}
    rows = stage_rows(topic_state(), pa.table(columns)).rows(0)
    assert [(row.key, row.value) for row in rows] == [(b"ab", None), (None, None)]


@pytest.mark.parametrize(
    "kind",
    [
        HEADERS_TYPE,
        pa.large_list(pa.struct([("value", pa.large_binary()), ("key", pa.large_string())])),
        pa.list_(pa.struct([("key", pa.string_view()), ("value", pa.string())])),
    ],
)
def test_headers_of_every_list_and_text_type_are_accepted(kind: pa.DataType) -> None:
    is_text = pa.types.is_string(kind.value_type.field("value").type)
    header_value: Any = "1" if is_text else b"1"
    pairs = [
        [{"key": "gone", "value": header_value}],
        [{"key": "a", "value": header_value}, {"key": "a", "value": None}],
        None,
        [],
        [{"key": "", "value": header_value}],
    ]
    rows = stage_rows(topic_state(), with_column("headers", *pairs, kind=kind).slice(1)).rows(0)
    assert [row.headers for row in rows] == [(("a", b"1"), ("a", None)), (), (), (("", b"1"),)]


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        (pa.timestamp("s"), 5, 5000),
        (pa.timestamp("ms", "Europe/Berlin"), 5, 5),
        (pa.timestamp("us", "UTC"), 5999, 5),
        (pa.timestamp("ns"), 5_999_999, 5),
        (pa.timestamp("us", "UTC"), None, NOW_MS),
        (pa.timestamp("us", "UTC"), -1000, -1),
    ],
)
def test_timestamps_are_milliseconds_rounded_down(
    kind: pa.DataType, raw: int | None, expected: int
) -> None:
    times = pa.array([7, raw], pa.int64()).cast(kind)
    rows = stage_rows(topic_state(), pa.table({"value": ["a", "b"], "timestamp": times})).rows(0)
    assert rows[1].timestamp == expected


def test_null_timestamp_is_the_time_of_staging() -> None:
    assert stage_rows(topic_state(), pa.table({"value": ["a"]})).rows(0)[0].timestamp == NOW_MS


def test_columns_that_only_readers_have_are_ignored() -> None:
    rows = pa.table({"value": ["a"], "offset": [99], "timestampType": ["any"], "topic": ["any"]})
    assert [row.offset for row in stage_rows(topic_state(), rows).rows(0)] == [0]


LATE = pa.array([NOW_MS - 1001, -1], pa.int64()).cast(pa.timestamp("ms"))

COLUMNS = [
    ({"value": ["a"], "vlaue": [1]}, "column vlaue.*did you mean value"),
    ({"value": ["a"], "amount": [1]}, "column amount.*a write takes value, key, headers"),
    ({"key": ["a"]}, "no column value"),
    ({"value": [1]}, "column value is int64; cast it to binary or string"),
    ({"value": ["a"], "key": [1.5]}, "column key is double"),
    ({"value": ["a"], "partition": ["0"]}, "column partition is string; cast it to int"),
    ({"value": ["a"], "timestamp": [1]}, "column timestamp is int64; cast it to timestamp"),
    ({"value": ["a"], "topic": [b"t"]}, "column topic is binary; cast it to string"),
    ({"value": ["a"], "headers": ["h"]}, "column headers is string; cast it to array<struct"),
    ({"value": ["a"], "headers": [[{"key": b"h", "value": b"x"}]]}, "column headers is list"),
    ({"value": ["a"], "headers": [[{"key": "h"}]]}, "column headers is list"),
]


@pytest.mark.parametrize(("columns", "message"), COLUMNS)
def test_wrong_column_is_named(columns: dict[str, Any], message: str) -> None:
    rows = pa.table(columns)
    for input_rows in (rows, rows.slice(0, 0), rows.to_batches()[0]):
        with pytest.raises(OptionError, match=message):
            stage_rows(topic_state(), input_rows)


def test_duplicate_column_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array(["a"])] * 2, names=["value", "value"])
    with pytest.raises(OptionError, match="value is there more than once"):
        stage_rows(topic_state(), twice)


TOO_MANY_HEADERS = [{"key": "", "value": b""}] * (MAX_RECORD_HEADERS + 1)
ROWS: list[tuple[dict[str, str], pa.Table, str]] = [
    ({}, with_column("partition", 0, 0, 2), "row 2: there is no partition 2, only 0 to 1"),
    ({}, with_column("partition", 0, -1), "row 1: there is no partition -1"),
    (
        {},
        with_column("partition", 0, 2**64 - 1, kind=pa.uint64()),
        "row 1: there is no partition 9223372036854775807",
    ),
    ({"cleanup_policy": "compact"}, with_column("key", "a", None, "b"), "row 1: it has no key"),
    ({"cleanup_policy": "compact,delete"}, pa.table({"value": ["a"]}), "row 0: it has no key"),
    ({}, with_column("timestamp", 0, -2, kind=pa.timestamp("ms")), "row 1: the timestamp, -2 ms"),
    (
        {},
        with_column("timestamp", 0, 1 << 60, kind=pa.timestamp("s")),
        "row 1: the timestamp.*does not fit",
    ),
    (
        {"message_timestamp_before_max_ms": "1000"},
        with_column("timestamp", -1, NOW_MS - 1000, NOW_MS - 1001, kind=pa.timestamp("ms")),
        f"row 2: the timestamp, {NOW_MS - 1001} ms.*message.timestamp.before.max.ms",
    ),
    (
        {"message_timestamp_after_max_ms": "0"},
        with_column("timestamp", NOW_MS, NOW_MS + 1, kind=pa.timestamp("ms")),
        f"row 1: the timestamp, {NOW_MS + 1} ms.*message.timestamp.after.max.ms",
    ),
    (
        {},
        with_column("headers", None, [{"key": None, "value": b"x"}], kind=HEADERS_TYPE),
        "row 1: a header without a key",
    ),
    ({}, with_column("headers", [], [None], kind=HEADERS_TYPE), "row 1: a header without a key"),
    (
        {},
        with_column("headers", None, TOO_MANY_HEADERS, kind=HEADERS_TYPE),
        f"row 1: the record has more than {MAX_RECORD_HEADERS} headers",
    ),
]


@pytest.mark.parametrize(("config", "rows", "message"), ROWS)
def test_rejected_row_is_named(config: dict[str, str], rows: pa.Table, message: str) -> None:
    with pytest.raises(KlogError, match=f"orders: {message}"):
        stage_rows(topic_state(2, **config), rows)
    # Rows are numbered over all batches.
    with pytest.raises(KlogError, match=f"orders: {message}"):
        stage_rows(topic_state(2, **config), rows.to_batches(max_chunksize=1))


def test_record_that_no_batch_holds_is_named_before_it_is_copied() -> None:
    huge = pa.array([b"a", bytes(129 << 20)], pa.large_binary())
    with pytest.raises(KlogError, match=r"orders: row 1: the record has more than \d+ bytes"):
        stage_rows(topic_state(), pa.table({"value": huge}))


def test_headers_count_for_the_size_of_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klog.connector.sink.write_rows.MAX_RECORD_BYTES", 1000)
    large = with_column("headers", None, [{"key": "h", "value": bytes(1000)}], kind=HEADERS_TYPE)
    with pytest.raises(KlogError, match="orders: row 1: the record has more than"):
        stage_rows(topic_state(), large)


def test_timestamp_bounds_do_not_apply_with_log_append_time() -> None:
    state = topic_state(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="0")
    assert len(stage_rows(state, pa.table({"value": ["a", "b"], "timestamp": LATE})).rows(0)) == 2


def test_dictionary_encoded_columns_are_accepted() -> None:
    """DuckDB and pandas make them of categories, also sliced and with nulls in the dictionary."""

    def encoded(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(values, kind))

    pairs = [[{"key": "h", "value": b"1"}], None, []]
    columns = {
        "value": ["gone", "a", "b", "c"],
        "timestamp": encoded([4, None, 7], pa.timestamp("s")),
        "partition": encoded([0, None, (1 << 64) - 1], pa.uint64()),
        "headers": encoded(pairs, HEADERS_TYPE),
    }
    with pytest.raises(KlogError, match="row 3: there is no partition 9223372036854775807"):
        stage_rows(topic_state(), pa.table(columns))
    columns["partition"] = encoded([0, None, 0], pa.uint64())
    rows = stage_rows(topic_state(), pa.table(columns)).rows(0)
    assert [row.timestamp for row in rows] == [4000, NOW_MS, NOW_MS, 7000]
    assert [row.headers for row in rows] == [(("h", b"1"),), (), (), ()]
    rows = stage_rows(topic_state(), pa.table(columns).slice(3)).rows(0)
    assert [(row.value, row.timestamp) for row in rows] == [(b"c", 7000)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"val": pa.array([], pa.string())}), "column val: .*did you mean value"),
        (
            pa.RecordBatchReader.from_batches(pa.schema([("val", pa.string())]), []),
            "column val: .*did you mean value",
        ),
        ([{"value": "a"}], "rows come as dict; give a pyarrow Table"),
        (["value"], "rows come as str; give"),
        (7, "rows are int; give"),
    ],
)
def test_input_that_is_not_rows_is_refused(rows: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stage_rows(topic_state(), rows)


HEADERS = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=80), "value": st.none() | st.binary()})
)
FIELD = st.none() | st.binary(max_size=200)


@given(st.lists(st.tuples(FIELD, FIELD, HEADERS, st.integers(0, 3)), min_size=1))
def test_no_record_is_smaller_than_the_min_bytes_of_its_row(records: list[Any]) -> None:
    keys, values, headers, partitions = zip(*records, strict=True)
    batch = pa.record_batch(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers, HEADERS_TYPE),
            "partition": pa.array(partitions, pa.int32()),
        }
    )
    rules = RowRules("orders", 3, NOW_MS)  # Rows of the fourth partition are rejected.
    for rows in check_rows(batch, np.arange(len(records)), rules, lambda *_: None):
        written = Records(pa.array(rows.timestamp_ms), rows.key, rows.value, rows.headers)
        sizes = measure_records(written, 0, len(written)).min_sizes
        assert len(rows.min_bytes) == len(records) - partitions.count(3)
        assert (rows.min_bytes <= sizes).all()
        assert (rows.min_bytes > sizes - 10).all()


MAX_SECONDS = ((1 << 63) - 1) // 1000


@pytest.mark.parametrize(
    ("second", "expected_ms"),
    [
        (0, 0),
        (-1, -1000),
        (MAX_SECONDS, MAX_SECONDS * 1000),
        (-MAX_SECONDS, -MAX_SECONDS * 1000),
        (MAX_SECONDS + 1, -(1 << 63)),
        (-MAX_SECONDS - 1, -(1 << 63)),
        ((1 << 63) - 1, -(1 << 63)),
        (-(1 << 63), -(1 << 63)),
    ],
)
def test_seconds_out_of_the_range_of_milliseconds_are_marked(second: int, expected_ms: int) -> None:
    column = pa.array([second], pa.timestamp("s"))
    assert as_milliseconds(column, 7).tolist() == [expected_ms]


@pytest.mark.parametrize("second", [-(1 << 63), MAX_SECONDS + 1])
def test_timestamp_out_of_the_range_of_milliseconds_is_rejected(second: int) -> None:
    rows = pa.record_batch({"value": ["v"], "timestamp": pa.array([second], pa.timestamp("s"))})
    with pytest.raises(KlogError, match="is before 1970, or does not fit into milliseconds"):
        list(check_rows(rows, np.arange(1), RowRules("t", 1, 0)))
