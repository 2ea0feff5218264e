"""Records to columns: golden vectors, and a slow reader as the judge."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import decode_records as decoding
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.golden_vectors import BATCHES, COMPRESSED, DIRECTORY, THREE, Golden
from tests.logformat.reference_decoder import ALL, by_hand, decode_with_klog, to_records
from tests.support.batch_bytes import (
    CODECS,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    Record,
    batch,
    compress,
    plain,
    sealed,
)
from tests.support.batch_bytes import record as encoded

WITH_RECORDS = {name: golden for name, golden in BATCHES.items() if golden.records}
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
TIMESTAMPS = st.integers(-(1 << 40), 1 << 42)
VALUES = st.one_of(st.none(), st.just(b""), st.binary(max_size=40), st.binary(max_size=300))
HEADERS = st.lists(
    st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=9)), max_size=2
).map(tuple)

# Least sizes of the varints of a record: canonical, and not.
WIDTHS = [(1, 1, 1), (1, 1, 1), (2, 3, 2), (5, 10, 5), (3, 1, 4)]


@st.composite
def batches_of_records(draw: st.DrawFn) -> list[bytes]:
    """Make batches whose offsets rise, with gaps inside and between them; some are empty."""
    encoded, offset = [], draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(1, 5))):
        first, records = offset, []
        for _ in range(draw(st.integers(0, 7))):
            offset += draw(st.sampled_from([0, 0, 0, 1, 70, 20000]))
            records.append(
                Record(offset, draw(TIMESTAMPS), draw(VALUES), draw(VALUES), draw(HEADERS))
            )
            offset += 1
        gap = draw(st.sampled_from([0, 0, 1, 300]))
        encoded.append(
            batch(
                records,
                base_offset=first,
                base_timestamp=draw(TIMESTAMPS),
                last_offset_delta=max(offset - 1 - first, 0) + gap,
                attributes=draw(st.sampled_from([0, 0, LOG_APPEND_TIME, 0x40])),
                wide=draw(
                    st.sampled_from([(1, 1, 1), (1, 1, 1), (2, 3, 2), (5, 10, 5), (3, 1, 4)])
                ),
            )
        )
        offset = max(offset, first + 1) + gap + draw(st.integers(0, 3))
    return encoded


@pytest.mark.parametrize("golden", WITH_RECORDS.values(), ids=WITH_RECORDS)
def test_golden_records(golden: Golden) -> None:
    assert decode_with_klog(golden.data) == by_hand(golden.data) == golden.records


@pytest.mark.parametrize("golden", WITH_RECORDS.values(), ids=WITH_RECORDS)
def test_the_encoder_writes_the_golden_bytes(golden: Golden) -> None:
    # LogAppendTime and the delete horizon are not told by the records alone.
    header = scan_batches(golden.data, 0, len(golden.data)).headers[0]
    base_timestamp = int(header["base_timestamp"])
    given_records = golden.records
    if golden.attributes & LOG_APPEND_TIME:
        given_records = [
            Record(7, 1000, b"a", b"b"),
            Record(8, 2000, b"c", b"d"),
        ]
    written = batch(
        given_records,
        base_timestamp=base_timestamp,
        max_timestamp=int(header["max_timestamp"]),
        attributes=golden.attributes,
        leader_epoch=golden.leader_epoch,
        producer_id=golden.producer_id,
        producer_epoch=int(header["producer_epoch"]),
        base_sequence=int(header["base_sequence"]),
    )
    assert written == golden.data


def test_golden_directory_records() -> None:
    data = b"".join(DIRECTORY)
    batches = scan_batches(data, 0, len(data))
    data_batches = batches.where((batches.attributes & v2.CONTROL) == 0)
    assert to_records(decode_records(data, data_batches, ALL)) == [
        Record(0, 1000, b"a", b"1"),
        Record(1, 1001, b"b", b"2"),
        Record(2, 1002, b"c", b"3"),
        Record(3, 1003, b"d", b"4"),
        Record(4, 1004, b"e", b"5"),
        Record(6, 1006, b"f", b"6"),
        Record(8, 1008, b"g", b"7"),
        Record(10, 1010, b"h", None),
    ]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_golden_compressed(codec: int) -> None:
    assert decode_with_klog(COMPRESSED[codec]) == THREE


def test_timestamp_types() -> None:
    data = plain(0, [b"a", b"b"]) + batch([Record(2, 5), Record(3, 6)], attributes=LOG_APPEND_TIME)
    columns = decode_records(
        data, scan_batches(data, 0, len(data)), ("timestamp_type", "timestamp_ms")
    )
    assert columns.timestamp_type is not None
    assert columns.timestamp_ms is not None
    assert columns.timestamp_type.tolist() == [0, 0, 1, 1]
    assert columns.timestamp_ms.tolist() == [1000, 1001, 6, 6]


@pytest.mark.parametrize("name", ALL)
def test_only_what_is_asked_for_is_decoded(name: str) -> None:
    data = b"".join(golden.data for golden in [BATCHES["nulls_and_headers"]])
    batches = scan_batches(data, 0, len(data))
    column_only, everything = (
        decode_records(data, batches, (name,)),
        decode_records(data, batches, ALL),
    )
    assert column_only.offset.tolist() == [100, 101, 102, 103]
    for column in ALL:
        values = getattr(column_only, column)
        assert (values is not None) == (column == name)
    assert list(getattr(column_only, name)) == list(getattr(everything, name))


def test_a_part_of_columns() -> None:
    data = BATCHES["nulls_and_headers"].data
    columns = decode_records(data, scan_batches(data, 0, len(data)), ALL)
    assert to_records(columns.slice(1, 3)) == BATCHES["nulls_and_headers"].records[1:3]
    few = decode_records(data, scan_batches(data, 0, len(data)), ("key",)).slice(2, 4)
    assert few.offset.tolist() == [102, 103]
    assert few.value is None


@settings(max_examples=150)
@given(batches_of_records())
def test_any_records_are_what_the_slow_reader_says(batches: list[bytes]) -> None:
    data = b"".join(batches)
    assert decode_with_klog(data) == by_hand(data)


@settings(max_examples=60)
@given(batches_of_records(), st.lists(st.sampled_from(CODECS), min_size=5, max_size=5))
def test_any_codec_gives_the_same_records(batches: list[bytes], codecs: list[int]) -> None:
    data = b"".join(batches)
    packed = []
    for batch_bytes, codec in zip(batches, codecs, strict=False):
        payload = compress(codec, batch_bytes[HEADER_BYTES:])
        head = batch_bytes[:8] + (49 + len(payload)).to_bytes(4, "big") + batch_bytes[12:22]
        packed.append(
            sealed(head + bytes([batch_bytes[22] | codec]) + batch_bytes[23:HEADER_BYTES] + payload)
        )
    assert decode_with_klog(b"".join(packed)) == by_hand(data)


def test_long_values_at_every_change_of_size() -> None:
    sizes = [
        *range(40, 70),
        *range(8170, 8200),
        (1 << 20) - 1,
        1 << 20,
        (1 << 20) + 1,
        (1 << 21) - 9,
        (1 << 21) + 77,
        0,
        1,
    ]
    records = [Record(i, i, b"k" * (i % 3), b"v" * size) for i, size in enumerate(sizes)]
    data = batch(records) + batch(
        [Record(1000 + i, 0, record.value, b"k") for i, record in enumerate(records)]
    )
    assert decode_with_klog(data) == by_hand(data)


def test_tiny_and_huge_batches_side_by_side() -> None:
    seed = 20260801
    rng = random.Random(seed)
    data, offset = [], 0
    for number in range(120):
        count = rng.choice([1, 1, 2, 3, 700]) if number % 30 else 3000
        long = rng.random() < 0.1
        values = [rng.randbytes(rng.choice([0, 5, 90, 9000 if long else 30])) for _ in range(count)]
        codec = rng.choice([NONE, NONE, LZ4])
        records = [Record(offset + i, rng.randrange(10**6), None, v) for i, v in enumerate(values)]
        data.append((batch(records, attributes=codec), batch(records)))
        offset += count
    expected = by_hand(b"".join(batch_bytes for _, batch_bytes in data))
    assert decode_with_klog(b"".join(batch_bytes for batch_bytes, _ in data)) == expected, seed


@pytest.mark.parametrize("padding", [0, 1, 15, 16, 17, 300])
def test_what_lies_around_the_batches_does_not_matter(padding: int) -> None:
    first, second = plain(0, [b"a", b"b" * 200]), plain(2, [None, b""])
    data = b"\xff" * padding + first + second + b"\xff" * padding
    batches = scan_batches(data, padding, padding + len(first + second))
    assert to_records(decode_records(data, batches, ALL)) == by_hand(first + second)
    assert to_records(decode_records(data, batches.slice(1, 2), ALL)) == by_hand(second)
    assert to_records(decode_records(data, batches.slice(0, 1), ALL)) == by_hand(first)


def test_batches_may_be_left_out() -> None:
    batches_made = [plain(3 * i, [b"x" * i, None, b"y"]) for i in range(9)]
    data = b"".join(batches_made)
    batches = scan_batches(data, 0, len(data))
    for mask in (batches.base_offsets % 2 == 0, batches.base_offsets > 9, batches.base_offsets < 3):
        kept = [
            batch_bytes
            for batch_bytes, keep in zip(batches_made, mask.tolist(), strict=True)
            if keep
        ]
        assert to_records(decode_records(data, batches.where(mask), ALL)) == by_hand(b"".join(kept))


@pytest.mark.parametrize("name", ["emptied", "emptied_control"])
def test_a_batch_without_records_gives_none(name: str) -> None:
    data = BATCHES[name].data
    assert decode_with_klog(data) == []
    before, after = plain(0), plain(50)
    assert decode_with_klog(before + data + after) == by_hand(before + after)


def test_no_batches_give_no_records() -> None:
    data = b""
    assert len(decode_records(data, scan_batches(data, 0, 0), ALL).offset) == 0


def test_bytes_in_a_batch_of_no_records_are_not_looked_at() -> None:
    # docs/format.md, 2: what follows a count of 0 is not looked at.
    data = batch(base_offset=4, payload=b"\xff\xff\xff")
    assert decode_with_klog(data) == []


@pytest.mark.parametrize("attributes", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("payload", [b"", b"\xff\xff\xff"])
def test_a_batch_of_no_records_is_not_decompressed(payload: bytes, attributes: int) -> None:
    empty = batch(base_offset=4, payload=payload, attributes=attributes)
    assert decode_with_klog(empty) == []
    before, after = plain(0), plain(50)
    assert decode_with_klog(before + empty + after) == by_hand(before + after)


def test_more_than_one_piece_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(batch([Record(i, 0, None, bytes(5 << 20))], attributes=4) for i in range(4))
    batches = scan_batches(data, 0, len(data))
    monkeypatch.setattr(decoding, "MAX_DECODED_BYTES", 16 << 20)
    with pytest.raises(CorruptRecordError, match="read them in parts"):
        decode_records(data, batches, ALL)
    assert len(decode_records(data, batches.slice(0, 3), ALL).offset) == 3
    assert len(decode_records(data, batches, ("timestamp_ms",)).offset) == 4
    assert sum(len(part.offset) for part in decoding.decode_parts(data, batches, ALL)) == 4


def test_the_encoder_and_the_slow_reader_agree() -> None:
    records = [Record(5, 9, b"", None, (("a", None),)), Record(9, -9, None, b"x" * 9000)]
    assert by_hand(batch(records)) == records
    assert encoded(records[0], 5, 9).hex() == "12000000000102026101"


def test_arrow_arrays_are_sound() -> None:
    data = b"".join(golden.data for golden in [BATCHES["nulls_and_headers"]]) + plain(104, [None])
    columns = decode_records(data, scan_batches(data, 0, len(data)), ALL)
    for array in (columns.key, columns.value, columns.headers):
        assert isinstance(array, pa.Array)
        array.validate(full=True)


def test_a_lone_large_value_is_not_copied() -> None:
    data = batch([Record(0, 1, b"k", b"v" * 300)]) + bytes(16)
    columns = decode_records(data, scan_batches(data, 0, len(data)), ("key", "value"))
    assert columns.value is not None
    assert columns.key is not None
    begin = pa.py_buffer(data).address
    assert columns.value.buffers()[2].address == begin
    assert (columns.key.to_pylist(), columns.value.to_pylist()) == ([b"k"], [b"v" * 300])
    assert not begin <= columns.key.buffers()[2].address < begin + len(data)


@pytest.mark.parametrize("part_bytes", [100, 1 << 20])
@pytest.mark.parametrize("codec", CODECS)
def test_lone_values_outlive_the_memory_that_they_were_decompressed_in(
    codec: int, part_bytes: int
) -> None:
    rows = [Record(offset, 1, None, bytes([offset]) * 400) for offset in range(4)]
    data = b"".join(batch([row], attributes=codec) for row in rows)
    batches = scan_batches(data, 0, len(data))
    parts = [
        part
        for number in range(len(rows))
        for part in decoding.decode_parts(
            data, batches.slice(number, number + 1), ("value",), part_bytes
        )
    ]
    values = [value for part in parts if part.value is not None for value in part.value.to_pylist()]
    assert values == [row.value for row in rows]
