"""Arrow columns to batches: golden vectors, the plain encoder as the judge, and cuts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import peers
from klog.logformat.batches import encode_batches as encoding
from klog.logformat.batches import encode_records
from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.batch_limits import MAX_BATCH_RECORDS
from klog.logformat.batches.encode_batches import (
    batch_size_bytes,
    empty_batch,
    encode_batch,
    encode_batches,
)
from klog.logformat.batches.encode_records import (
    JOINED_BYTES,
)
from klog.logformat.batches.record_headers import HEADERS_TYPE
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.codecs.codec_names import CODEC_NAMES
from tests.logformat.golden_vectors import BATCHES
from tests.logformat.reference_decoder import decode_with_klog
from tests.logformat.written_rows import one_batch, to_columns
from tests.support.batch_bytes import CODECS, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Record
from tests.support.batch_bytes import batch as plain_batch

MAX = (1 << 31) - 1
BYTES, LONG = pa.binary(), pa.int64()
NULLS = pa.array([None, None], BYTES)
PRODUCER: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 3}

TIMESTAMPS = st.one_of(
    st.integers(1000, 1200), st.integers(-1, 1 << 42), st.sampled_from([-1, (1 << 63) - 2])
)
VALUES = st.one_of(st.none(), st.just(b""), st.binary(max_size=40), st.binary(max_size=300))
HEADERS = st.lists(
    st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=9)), max_size=2
).map(tuple)


@st.composite
def rows(draw: st.DrawFn) -> list[Record]:
    """Make records without gaps; long runs of like ones make several batches of a small size."""
    first = draw(st.integers(0, 1 << 40))
    headers = HEADERS if draw(st.booleans()) else st.just(())
    fields = st.tuples(TIMESTAMPS, VALUES, VALUES, headers)
    records = draw(st.lists(fields, max_size=12)) * draw(st.sampled_from([1, 1, 20]))
    return [Record(first + i, *one_row) for i, one_row in enumerate(records)]


def chunked(column: Any, cuts: Sequence[int]) -> pa.ChunkedArray:
    """Cut a column into chunks, some of them empty."""
    bounds = [0, *sorted(cut % (len(column) + 1) for cut in cuts), len(column)]
    parts = [column[a:b] for a, b in pairwise(bounds)]
    return pa.chunked_array(parts, column.type)


GOLDEN = {
    "plain": lambda: one_batch(BatchAttributes(leader_epoch=0), Record(0, 1000, b"k1", b"v1")),
    "nulls_and_headers": lambda: one_batch(
        BatchAttributes(leader_epoch=5),
        Record(100, 1000, b"k1", b"v1"),
        Record(101, 1500, None, b"v2", (("h1", b"x"), ("h2", None))),
        Record(102, 900, b"k3", None),
        Record(103, 1600, b"", b""),
    ),
    "log_append_time": lambda: one_batch(
        BatchAttributes(leader_epoch=3, append_time_ms=5555),
        Record(7, 1000, b"a", b"b"),
        Record(8, 2000, b"c", b"d"),
    ),
    "idempotent": lambda: one_batch(
        BatchAttributes(leader_epoch=2, **PRODUCER, base_sequence=17),
        Record(10, 1000, b"a", b"b"),
        Record(11, 1001, b"c", b"d"),
    ),
    "transactional": lambda: one_batch(
        BatchAttributes(leader_epoch=2, **PRODUCER, base_sequence=0, is_transactional=True),
        Record(10, 1000, b"a", b"b"),
    ),
    "no_timestamp": lambda: one_batch(BatchAttributes(), Record(0, -1, b"a", b"b")),
    "delete_horizon": lambda: one_batch(
        BatchAttributes(leader_epoch=4, delete_horizon_ms=86401000),
        Record(20, 1000, b"k1", None),
        Record(21, 2000, b"k2", b"v"),
    ),
    "emptied": lambda: empty_batch(
        BatchAttributes(leader_epoch=2, **PRODUCER, base_sequence=17), 10, 4, 1234
    ),
    "emptied_control": lambda: empty_batch(
        BatchAttributes(leader_epoch=2, **PRODUCER, is_transactional=True, is_control=True),
        15,
        0,
        1234,
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_writes_what_kafkas_classes_wrote(name: str) -> None:
    assert GOLDEN[name]().hex() == BATCHES[name].data.hex()


@given(
    rows(),
    st.sampled_from([0, 100, 1000, 5000, 1 << 20]),
    st.sampled_from([200, 1 << 20]),
    st.sampled_from([0, 300, 1 << 19]),
)
def test_equals_the_plain_encoder(
    given_rows: list[Record], batch_bytes: int, group_bytes: int, joined_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "GROUP_BYTES", group_bytes)
        patch.setattr(encoding, "_FIRST_ROWS", 2)
        patch.setattr(encode_records, "JOINED_BYTES", joined_bytes)
        encoded = list(
            encode_batches(
                to_columns(given_rows), BatchAttributes(batch_bytes=batch_bytes, leader_epoch=0)
            )
        )
    assert b"".join(encoded) == b"".join(cut(given_rows, batch_bytes))


def cut(records: list[Record], batch_bytes: int) -> list[bytes]:
    """Take records until the next would make the batch too large, in the plainest way."""
    batches = []
    while records:
        count = 1
        while count < len(records) and len(plain_batch(records[: count + 1])) <= batch_bytes:
            count += 1
        batches.append(plain_batch(records[:count]))
        records = records[count:]
    return batches


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("value_bytes", [200, 20_000, 300_000])
def test_a_batch_does_not_depend_on_what_follows(codec: int, value_bytes: int) -> None:
    values = (bytes(value_bytes), b"x" * 50, b"y")
    records = [Record(offset, 0, None, value) for offset, value in enumerate(values)]
    form = BatchAttributes(batch_bytes=100, codec=codec)
    (alone,) = encode_batches(to_columns(records[:1]), form)
    assert next(encode_batches(to_columns(records), form)) == alone


@pytest.mark.parametrize("codec", CODECS)
@given(records=rows(), cuts=st.lists(st.integers(0, 300), max_size=3), skip=st.integers(0, 3))
def test_round_trip_of_slices_and_chunks(
    codec: int, records: list[Record], cuts: list[int], skip: int
) -> None:
    whole = to_columns(records)
    part = Records(
        timestamp_ms=chunked(whole.timestamp_ms, cuts)[skip:],
        key=whole.key[skip:],
        value=chunked(whole.value[skip:], cuts),
        headers=whole.headers and chunked(whole.headers[skip:], cuts[:1]),
        offset=int(whole.offset) + skip,
    )
    encoded = b"".join(encode_batches(part, BatchAttributes(batch_bytes=2000, codec=codec)))
    assert (decode_with_klog(encoded) if encoded else []) == records[skip:]


@given(rows(), st.data())
def test_offsets_with_gaps(records: list[Record], data: st.DataObject) -> None:
    """A gap that no batch can span ends the batch."""
    steps = st.sampled_from([0, 0, 1, 70, 20000, MAX - 5, MAX, 1 << 40])
    offset, gapped = 0, []
    for row in records[:40]:
        offset += data.draw(steps)
        gapped.append(Record(offset, row.timestamp, row.key, row.value, row.headers))
        offset += 1
    encoded = b"".join(
        encode_batches(to_columns(gapped, gaps=True), BatchAttributes(batch_bytes=3000))
    )
    assert (decode_with_klog(encoded) if encoded else []) == gapped


def test_each_batch_is_ready_before_the_next_is_begun() -> None:
    count = 300_000
    offsets = np.arange(count)
    offsets[-1] = 0
    records = Records(
        pa.array(np.full(count, 1000)),
        pa.nulls(count, BYTES),
        pa.nulls(count, BYTES),
        None,
        offsets,
    )
    batches = encode_batches(records, BatchAttributes(batch_bytes=1 << 17))
    first = next(batches)
    assert scan_batches(first, 0, len(first)).headers["count"][0] > 10_000
    with pytest.raises(ValueError, match="row 299999: the offset is not above"):
        list(batches)


def test_a_null_list_hides_headers_that_lie_under_it() -> None:
    lists = pa.array([[{"key": "a", "value": b"1"}], [{"key": "b", "value": None}]], HEADERS_TYPE)
    hidden = pa.ListArray.from_arrays(
        lists.offsets, lists.values, HEADERS_TYPE, mask=pa.array([True, False])
    )
    plain = to_columns([Record(0, 1), Record(1, 2)])
    data = encode_batch(
        Records(plain.timestamp_ms, plain.key, plain.value, hidden), BatchAttributes()
    )
    assert decode_with_klog(data) == [Record(0, 1), Record(1, 2, headers=(("b", None),))]


def test_a_column_of_headers_may_be_empty_of_them() -> None:
    plain = to_columns([Record(0, 1), Record(1, 2)])
    for none in (pa.nulls(2, HEADERS_TYPE), pa.array([[], None], HEADERS_TYPE)):
        data = encode_batch(
            Records(plain.timestamp_ms, plain.key, plain.value, none), BatchAttributes()
        )
        assert data == encode_batch(plain, BatchAttributes())


def test_bytes_under_a_null_are_not_written() -> None:
    buffers = pa.array([b"abc", b"de"], pa.binary()).buffers()
    mask = pa.py_buffer(b"\x02")
    keys = pa.Array.from_buffers(pa.binary(), 2, [mask, *buffers[1:]])
    plain = to_columns([Record(0, 1), Record(1, 2)])
    data = encode_batch(Records(plain.timestamp_ms, keys, plain.value), BatchAttributes())
    assert decode_with_klog(data) == [Record(0, 1), Record(1, 2, b"de")]


def test_headers_may_have_names_that_are_never_null() -> None:
    """A schema that says so, as Arrow tables from elsewhere do, is no other type."""
    entry = pa.struct(
        [pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]
    )
    headers = pa.array([[{"key": "a", "value": b"1"}]], pa.list_(entry))
    plain = to_columns([Record(0, 1)])
    data = encode_batch(
        Records(plain.timestamp_ms, plain.key, plain.value, headers), BatchAttributes()
    )
    assert decode_with_klog(data) == [Record(0, 1, headers=(("a", b"1"),))]


def test_deltas_wrap_as_javas_longs_do() -> None:
    records = [Record(0, -1), Record(1, (1 << 63) - 1), Record(2, 0)]
    assert decode_with_klog(one_batch(BatchAttributes(), *records)) == records


def test_no_records_are_no_batch() -> None:
    assert list(encode_batches(to_columns([]), BatchAttributes())) == []
    assert batch_size_bytes(to_columns([]), BatchAttributes()) == 0


@given(rows())
def test_the_size_is_known_before(records: list[Record]) -> None:
    whole = to_columns(records)
    assert batch_size_bytes(whole, BatchAttributes()) == (
        len(encode_batch(whole, BatchAttributes())) if records else 0
    )


def test_sequences_go_on_from_batch_to_batch_and_wrap() -> None:
    records = [Record(i, 1000, b"k", b"v") for i in range(5)]
    form = BatchAttributes(batch_bytes=61 + 18, **PRODUCER, base_sequence=MAX - 3)
    batches = b"".join(encode_batches(to_columns(records), form))
    headers = scan_batches(batches, 0, len(batches)).headers
    assert headers["count"].tolist() == [2, 2, 1]
    assert headers["base_sequence"].tolist() == [MAX - 3, MAX - 1, 0]


@pytest.mark.parametrize(
    ("sequence", "by", "expected"),
    [(5, 5, 10), (MAX, 1, 0), (MAX - 5, 10, 4), (5, -5, 0), (0, -1, MAX)],
)
def test_advance(sequence: int, by: int, expected: int) -> None:
    assert increment_sequence(sequence, by) == expected


def test_a_batch_has_no_more_records_than_a_reader_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_BATCH_RECORDS", 3)
    records = [Record(i, 1000) for i in range(7)]
    data = b"".join(encode_batches(to_columns(records), BatchAttributes()))
    assert scan_batches(data, 0, len(data)).headers["count"].tolist() == [3, 3, 1]
    with pytest.raises(ValueError, match="7 records of 49 bytes are too many for one batch"):
        encode_batch(to_columns(records), BatchAttributes())
    assert MAX_BATCH_RECORDS > 1 << 20


def test_a_rewritten_batch_keeps_its_offsets() -> None:
    data = one_batch(BatchAttributes(), Record(101, 5), Record(103, 6), base=100, delta=9)
    (header,) = scan_batches(data, 0, len(data)).headers
    assert (header["base_offset"], header["last_offset_delta"], header["count"]) == (100, 9, 2)
    assert decode_with_klog(data) == [Record(101, 5), Record(103, 6)]


@pytest.mark.parametrize(
    ("base", "delta", "words"),
    [
        (102, None, "base offset 102 for records from offset 101"),
        (-1, None, "base offset -1"),
        (100, 2, "offset 103 is not within 2 of base offset 100"),
        (100, 1 << 31, "not within"),
    ],
)
def test_one_batch_holds_its_offsets(base: int, delta: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        one_batch(BatchAttributes(), Record(101, 5), Record(103, 6), base=base, delta=delta)


def test_one_batch_needs_records_and_a_span_it_can_say() -> None:
    with pytest.raises(ValueError, match="a batch needs records"):
        encode_batch(to_columns([]), BatchAttributes())
    with pytest.raises(ValueError, match="not within"):
        one_batch(BatchAttributes(), Record(0, 5), Record(1 << 31, 6))


def test_an_empty_batch_keeps_flags_and_drops_the_codec() -> None:
    form = BatchAttributes(
        codec=4, append_time_ms=9, **PRODUCER, base_sequence=1, is_transactional=True
    )
    data = empty_batch(form, 10, 4, 9)
    assert scan_batches(data, 0, 61).attributes[0] == LOG_APPEND_TIME | TRANSACTIONAL
    assert BatchAttributes(is_control=True).attribute_bits == CONTROL


def test_peak_memory_follows_the_batch_not_the_input() -> None:
    """Beyond input and output: the records of a few batches, and the numbers about a group's."""
    few, many = (peak_bytes(count) for count in (40_000, 160_000))
    assert many < few * 1.1
    assert many < 2 * encoding.GROUP_BYTES


def peak_bytes(count: int) -> int:
    values = pa.array([b"v" * 100], BYTES).take(pa.array(np.zeros(count, np.int32)))
    records = Records(pa.array(np.arange(count)), pa.nulls(count, BYTES), values)
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        for _ in encode_batches(records, BatchAttributes(batch_bytes=1 << 18)):
            pass
        assert 1 << 18 < pool.max_memory() <= JOINED_BYTES * 1.1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


@pytest.mark.parametrize("codec", CODEC_NAMES)
@pytest.mark.parametrize("reads", [peers.aiokafka_records, peers.kafka_python_records])
def test_other_clients_read_it(reads: Any, codec: str) -> None:
    if reads is peers.kafka_python_records and not peers.kafka_python_reads(codec):
        assert codec == "snappy"
        return
    records = [
        Record(i, 1000 + i % 7, None if i % 5 == 0 else b"k%d" % i, b"v" * (i % 300), headers)
        for i, headers in enumerate([(), (("h", b"1"), ("n", b""))] * 300)
    ]
    form = BatchAttributes(batch_bytes=20_000, codec=CODEC_NAMES.index(codec))
    data = b"".join(encode_batches(to_columns(records), form))
    seen = [
        Record(
            record.offset,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            bytes(record.value),
            tuple((name, bytes(value)) for name, value in record.headers),
        )
        for record in reads(data)
    ]
    assert seen == records


def test_offsets_of_numpy_are_taken_as_they_are() -> None:
    offsets: npt.NDArray[Any] = np.array([3, 9], np.int64)
    given_offsets: Any
    for given_offsets in (offsets, offsets.astype(np.int32)):
        records = Records(pa.array([1, 2], LONG), NULLS, NULLS, offset=given_offsets)
        assert [
            row.offset for row in decode_with_klog(encode_batch(records, BatchAttributes()))
        ] == [3, 9]
