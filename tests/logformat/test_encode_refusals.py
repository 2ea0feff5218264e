"""What the encoder refuses: forms that no batch can have, and rows, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klog.logformat import records as records_module
from klog.logformat.codecs import MAX_BATCH_BYTES
from klog.logformat.encode import Form, empty_batch, encode
from klog.logformat.headers import HEADERS_TYPE, MAX_HEADERS
from klog.logformat.records import MAX_FIRST_OFFSET, Records

REFUSED_FORMS: list[tuple[dict[str, Any], str]] = [
    ({"transactional": True}, "a transactional batch needs a producer id"),
    ({"producer_id": 1, "base_sequence": 0}, "needs a producer epoch"),
    ({"producer_id": 1, "producer_epoch": 0}, "needs a base sequence"),
    ({"producer_id": -2}, "producer id is -2"),
    ({"producer_id": 1 << 63}, "producer id is"),
    ({"producer_epoch": 1 << 15}, "producer epoch is 32768"),
    ({"base_sequence": 1 << 31}, "base sequence is"),
    ({"leader_epoch": -2}, "leader epoch is -2"),
    ({"append_time_ms": -1}, "append_time_ms is -1"),
    ({"delete_horizon_ms": -1}, "delete_horizon_ms is -1"),
    ({"batch_bytes": -1}, "batch_bytes is -1"),
    ({"batch_bytes": MAX_BATCH_BYTES + 1}, "batch_bytes is"),
    ({"codec": 5}, "codec 5 does not exist"),
    ({"codec": 1, "level": 10}, "gzip has levels -1 or 1 to 9"),
    ({"codec": 1, "control": True}, "a control batch is never compressed"),
]


@pytest.mark.parametrize(("given_form", "words"), REFUSED_FORMS)
def test_refuses_what_no_batch_can_say(given_form: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Form(**given_form)


def column_of(kind: pa.DataType, *values: Any) -> pa.Array:
    return pa.array(values, kind)


BYTES, LONG = pa.binary(), pa.int64()
NULLS = column_of(BYTES, None, None)
NAMELESS = column_of(HEADERS_TYPE, None, [{"key": "a", "value": b""}, {"key": None, "value": b""}])
REFUSED_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"timestamp_ms": column_of(LONG, 0, None)}, "row 1: the timestamp is null"),
    ({"timestamp_ms": column_of(LONG, -2, 0)}, "row 0: the timestamp -2 is negative and not -1"),
    ({"offset": np.array([5, 5])}, "row 1: the offset is not above that of the row before"),
    ({"offset": np.array([-1, 5])}, "row 0: there is no such offset"),
    ({"offset": np.array([0, MAX_FIRST_OFFSET + 1])}, "row 1: there is no such offset"),
    ({"offset": MAX_FIRST_OFFSET}, "there are no 2 offsets from"),
    ({"offset": -1}, "there are no 2 offsets from -1"),
    ({"offset": np.array([1])}, "1 offsets for 2 rows"),
    ({"headers": NAMELESS}, "row 1: a header without a name"),
    ({"headers": column_of(HEADERS_TYPE, None, [None])}, "row 1: a header without a name"),
    ({"key": column_of(pa.string(), "a", "b")}, "key is string; cast it to binary"),
    ({"value": column_of(BYTES, b"")}, "value has 1 rows"),
    ({"headers": column_of(pa.list_(pa.string()), [], [])}, "headers are list"),
    ({"headers": column_of(pa.string(), "a", "b")}, "headers are string"),
    ({"timestamp_ms": column_of(pa.timestamp("ms"), 1, 2)}, "timestamp_ms is timestamp"),
]


@pytest.mark.parametrize(("given_columns", "words"), REFUSED_ROWS)
def test_refuses_rows_by_name(given_columns: dict[str, Any], words: str) -> None:
    usual = {"timestamp_ms": column_of(LONG, 1, 2), "key": NULLS, "value": NULLS}
    with pytest.raises(ValueError, match=words):
        list(encode(Records(**usual | given_columns), Form()))


def test_refuses_more_headers_and_bytes_than_a_reader_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = pa.array([None, [{"key": "", "value": None}] * (MAX_HEADERS + 1)], HEADERS_TYPE)
    times = pa.array([1, 2], LONG)
    with pytest.raises(ValueError, match="row 1: the record has more than 65536 headers"):
        list(encode(Records(times, NULLS, NULLS, many), Form()))
    monkeypatch.setattr(records_module, "MAX_BATCH_BYTES", 1000)
    large = pa.array([b"", bytes(1001)], BYTES)
    with pytest.raises(ValueError, match="row 1: the record has more than 1000 bytes"):
        list(encode(Records(times, NULLS, large), Form()))


@pytest.mark.parametrize(
    ("offset", "delta", "latest"),
    [(-1, 0, 0), (MAX_FIRST_OFFSET + 1, 0, 0), (0, -1, 0), (0, 0, -2)],
)
def test_refuses_an_empty_batch_that_says_nothing(offset: int, delta: int, latest: int) -> None:
    with pytest.raises(ValueError, match="must be from"):
        empty_batch(Form(), offset, delta, latest)
