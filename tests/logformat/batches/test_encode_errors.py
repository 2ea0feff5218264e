"""What the encoder refuses: forms that no batch can have, and rows, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klog.logformat.batches import batch_header
from klog.logformat.batches import encode_batches as encoding
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES, MAX_RECORD_HEADERS
from klog.logformat.batches.encode_batches import (
    batch_size_bytes,
    empty_batch,
    encode_batch,
    encode_batches,
)
from klog.logformat.batches.record_headers import (
    HEADERS_TYPE,
)
from klog.logformat.batches.records_to_write import MAX_FIRST_OFFSET, Records
from klog.logformat.codecs.codec_names import GZIP, NONE, ZSTD
from tests.support.broker_loader import recover_segment
from tests.support.decompression import decompress

REFUSED_FORMS: list[tuple[dict[str, Any], str]] = [
    ({"is_transactional": True}, "a transactional batch needs a producer id"),
    ({"producer_id": 1, "base_sequence": 0}, "needs a producer epoch"),
    ({"producer_id": 1, "producer_epoch": 0}, "needs a base sequence"),
    ({"producer_id": -2}, "producer id must be .*, got -2"),
    ({"producer_id": 1 << 63}, "producer id must be"),
    ({"producer_epoch": 1 << 15}, "producer epoch must be .*, got 32768"),
    ({"base_sequence": 1 << 31}, "base sequence must be"),
    ({"leader_epoch": -2}, "leader epoch must be .*, got -2"),
    ({"append_time_ms": -1}, "append_time_ms must be .*, got -1"),
    ({"delete_horizon_ms": -1}, "delete_horizon_ms must be .*, got -1"),
    ({"batch_bytes": -1}, "batch_bytes must be .*, got -1"),
    ({"batch_bytes": MAX_BATCH_BYTES + 1}, "batch_bytes must be"),
    ({"codec": 5}, "codec 5 does not exist"),
    ({"codec": 1, "level": 10}, "gzip has levels -1 or 1 to 9"),
    ({"codec": 1, "is_control": True}, "a control batch is never compressed"),
]


@pytest.mark.parametrize(("given_form", "words"), REFUSED_FORMS)
def test_refuses_what_no_batch_can_say(given_form: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BatchAttributes(**given_form)


def column_of(kind: pa.DataType, *values: Any) -> pa.Array:
    return pa.array(values, kind)


BYTES, LONG = pa.binary(), pa.int64()
NULLS = column_of(BYTES, None, None)
NAMELESS = column_of(HEADERS_TYPE, None, [{"key": "a", "value": b""}, {"key": None, "value": b""}])
REFUSED_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"timestamp_ms": column_of(LONG, 0, None)}, "row 1: the timestamp is null"),
    ({"timestamp_ms": column_of(LONG, -2, 0)}, "row 0: the timestamp -2 is negative and not -1"),
    ({"offset": np.array([5, 5])}, "row 1: the offset is not above that of the row before"),
    ({"offset": np.array([-1, 5])}, "row 0: the offset is out of range"),
    ({"offset": np.array([0, MAX_FIRST_OFFSET + 1])}, "row 1: the offset is out of range"),
    ({"offset": MAX_FIRST_OFFSET}, "is out of range for 2 records"),
    ({"offset": -1}, "offset -1 is out of range for 2 records"),
    ({"offset": np.array([5, 3], np.uint64)}, "row 1: the offset is not above that of the row"),
    ({"offset": np.array([5, 3], np.uint8)}, "row 1: the offset is not above that of the row"),
    ({"offset": np.array([2**63, 2**63 + 1], np.uint64)}, "row 0: the offset is out of range"),
    ({"offset": np.array([5.5, 5.9])}, "offsets are 1-dimensional float64"),
    ({"offset": np.array([[5], [6]])}, "offsets are 2-dimensional int64"),
    ({"offset": np.array(5)}, "offsets are 0-dimensional int64"),
    ({"offset": np.array([1])}, "1 offsets for 2 rows"),
    ({"headers": NAMELESS}, "row 1: a header without a key"),
    ({"headers": column_of(HEADERS_TYPE, None, [None])}, "row 1: a header without a key"),
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
        list(encode_batches(Records(**usual | given_columns), BatchAttributes()))


def test_refuses_more_headers_than_a_reader_takes() -> None:
    many = pa.array([None, [{"key": "", "value": None}] * (MAX_RECORD_HEADERS + 1)], HEADERS_TYPE)
    with pytest.raises(ValueError, match="row 1: the record has more than 65536 headers"):
        list(encode_batches(Records(pa.array([1, 2], LONG), NULLS, NULLS, many), BatchAttributes()))


LIMIT = 1000
HIGH_BYTES = bytes(range(128, 256))
"""No codec of Kafka's makes a record of 128 different bytes smaller."""


@pytest.fixture
def lower_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writer and recovery have the same lower limit."""
    for module in (encoding, batch_header):
        monkeypatch.setattr(module, "MAX_BATCH_BYTES", LIMIT)
    monkeypatch.setattr(recover_segment, "MAX_BATCH_BYTES", LIMIT)


def small_and(size_bytes: int) -> Records:
    """Return a small record, and a record that fills a batch of this size."""
    # Around a value: header, 2 bytes of length, attributes, deltas, null key, 2 of length, headers.
    value = bytes(size_bytes - v2.HEADER_BYTES - 2 - 3 - 1 - 2 - 1)
    times = column_of(LONG, 1, 2)
    return Records(times, NULLS, column_of(BYTES, b"", value))


@pytest.mark.usefixtures("lower_limit")
@pytest.mark.parametrize("codec", [NONE, ZSTD])
@pytest.mark.parametrize("size_bytes", [LIMIT - 1, LIMIT])
def test_a_batch_as_large_as_a_reader_takes(size_bytes: int, codec: int) -> None:
    records = small_and(size_bytes)
    form = BatchAttributes(batch_bytes=LIMIT, codec=codec)
    assert batch_size_bytes(records.slice(1, 2), form) == size_bytes
    both = list(encode_batches(records, form))
    assert both[1] == encode_batch(records.slice(1, 2), form)
    log = b"".join(both)
    recovered = recover_segment.recover(log, 0)
    assert (recovered.position, recovered.next_offset) == (len(log), 2)
    begin = len(both[0]) + v2.HEADER_BYTES
    assert len(decompress(codec, log[begin:], LIMIT)) == size_bytes - v2.HEADER_BYTES


@pytest.mark.usefixtures("lower_limit")
@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_refuses_a_record_larger_than_any_batch(codec: int) -> None:
    records = small_and(LIMIT + 1)
    form = BatchAttributes(batch_bytes=LIMIT, codec=codec)
    words = "row 1: the record makes a batch of more than 1000 bytes"
    with pytest.raises(ValueError, match=words):
        list(encode_batches(records, form))
    with pytest.raises(ValueError, match=words):
        encode_batch(records, form)


@pytest.mark.usefixtures("lower_limit")
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_refuses_more_records_than_one_batch_has_room_for(over: int) -> None:
    # Of 10 records each has 9 bytes around its value, and the first 9 have values of 80 bytes.
    values = [bytes(80)] * 9 + [bytes(LIMIT - v2.HEADER_BYTES - 9 * 89 - 9 + over)]
    times, nulls = pa.array([1] * 10, LONG), pa.nulls(10, BYTES)
    records, form = (
        Records(times, nulls, pa.array(values, BYTES)),
        BatchAttributes(batch_bytes=LIMIT),
    )
    assert batch_size_bytes(records, form) == LIMIT + over
    if over <= 0:
        assert len(encode_batch(records, form)) == LIMIT + over
        return
    with pytest.raises(ValueError, match=r"10 records of 940 bytes .* limits are .* and 939"):
        encode_batch(records, form)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_refuses_a_batch_that_outgrew_the_limit_in_compression(
    over: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(column_of(LONG, 1, 2), NULLS, column_of(BYTES, b"", HIGH_BYTES))
    form = BatchAttributes(batch_bytes=100, codec=GZIP)
    large = list(encode_batches(records, form))[1]
    assert len(large) > batch_size_bytes(records.slice(1, 2), form)
    monkeypatch.setattr(batch_header, "MAX_BATCH_BYTES", len(large) - over)
    if over <= 0:
        assert list(encode_batches(records, form))[1] == large
        return
    with pytest.raises(ValueError, match=r"row 1: the batch of 1 records .* after compression"):
        list(encode_batches(records, form))


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_takes_an_offset_of_numpy(integer: type[np.integer[Any]]) -> None:
    times = column_of(LONG, 1, 2)
    records = Records(times, NULLS, NULLS, offset=integer(5))
    assert records == Records(times, NULLS, NULLS, offset=5)
    assert type(records.offset) is int
    with pytest.raises(TypeError):
        Records(times, NULLS, NULLS, offset=5.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offset", "delta", "latest"),
    [(-1, 0, 0), (MAX_FIRST_OFFSET + 1, 0, 0), (0, -1, 0), (0, 0, -2)],
)
def test_refuses_an_empty_batch_that_says_nothing(offset: int, delta: int, latest: int) -> None:
    with pytest.raises(ValueError, match="must be from"):
        empty_batch(BatchAttributes(), offset, delta, latest)
