"""Entries of message formats v0 and v1: golden vectors, headers made up, checksums, cuts, mixes."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs, has_valid_crc
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import decode_batch_header, scan_batches
from tests.logformat.golden_vectors import LEGACY, V0_LZ4_AS_PRINTED
from tests.logformat.legacy_logs import (
    ALL,
    Entry,
    decode_with_klog,
    logs,
    parts_of,
    rows,
    whole_entries,
)
from tests.support import batch_bytes
from tests.support.batch_bytes import GZIP, LOG_APPEND_TIME, ZSTD, Record, batch
from tests.support.legacy_bytes import Seen, message, plain, sealed, seen, wrapper

THREE = [Record(5, 1000, b"k1", b"v1"), Record(6, 1001, b"k2", b"v2"), Record(7, 999, b"k3", b"v3")]
PLAIN = [Record(5, 1000, b"k1", b"v1"), Record(6, 1001, None, b"v2"), Record(7, 1002, b"k3", None)]
SAID = {
    "v0 lz4": seen(THREE, 0),
    "v1 gzip (CreateTime)": seen(THREE, 1),
    "v1 gzip (LogAppendTime 777)": seen(THREE, 1, 777),
    "v1 snappy": seen(THREE, 1),
    "v1 lz4": seen(THREE, 1),
    "v0 offsets 5..7: k1/v1, null/v2, k3/null": seen(PLAIN, 0),
    "v1 offsets 5..7, ts 1000,1001,1002": seen(PLAIN, 1),
    "v1 LogAppendTime 777, offset 5 k1/v1": seen(PLAIN[:1], 1, 777),
}
"""What `golden.LEGACY` holds (docs/format.md, 4)."""


def scan(data: bytes) -> v2.Batches:
    return scan_batches(data, 0, len(data))


@pytest.mark.parametrize("name", LEGACY)
def test_golden_vectors(name: str) -> None:
    assert decode_with_klog(LEGACY[name]) == SAID[name]


def test_the_encoder_writes_what_kafka_wrote() -> None:
    assert plain(PLAIN, 0) == LEGACY["v0 offsets 5..7: k1/v1, null/v2, k3/null"]
    assert plain(PLAIN, 1) == LEGACY["v1 offsets 5..7, ts 1000,1001,1002"]
    late = plain([Record(5, 777, b"k1", b"v1")], 1, attributes=LOG_APPEND_TIME)
    assert late == LEGACY["v1 LogAppendTime 777, offset 5 k1/v1"]


def test_the_vector_as_it_is_printed_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="CRC-32 is"):
        check_batch_crcs(V0_LZ4_AS_PRINTED, scan(V0_LZ4_AS_PRINTED))


def test_the_header_of_a_message() -> None:
    data = plain([Record(70, 5000, b"k", b"v")], 1, attributes=LOG_APPEND_TIME)
    header = scan(data).headers[0]
    assert {name: int(header[name]) for name in v2.HEADER.names or ()} == {
        "base_offset": 70,
        "length": len(data) - 12,
        "leader_epoch": -1,
        "magic": 1,
        "crc": zlib.crc32(data[16:]),
        "attributes": 8,
        "last_offset_delta": 0,
        "base_timestamp": 5000,
        "max_timestamp": 5000,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "count": 1,
    }


def test_a_message_of_v0_has_no_time_in_its_header() -> None:
    header = scan(message(Record(70, 5000, b"k", b"v"), 0)).headers[0]
    assert (int(header["base_timestamp"]), int(header["max_timestamp"])) == (-1, -1)
    assert (int(header["magic"]), int(header["count"])) == (0, 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrappers_offset_is_its_last(magic: int) -> None:
    batches = scan(
        wrapper(THREE, magic, GZIP) + batch_bytes.plain(8) + plain([Record(9, 0)], magic)
    )
    assert batches.headers["count"].tolist() == [-1, 1, 1]
    assert batches.base_offsets.tolist() == [7, 8, 9]
    assert batches.next_offsets.tolist() == [8, 9, 10]
    assert batches.min_offsets.tolist() == [0, 8, 9]
    assert scan(plain([Record(4, 0)], 1) + wrapper(THREE, 1, GZIP)).min_offsets.tolist() == [
        4,
        5,
    ]


@pytest.mark.parametrize("attributes", [0x10, 0x20, 0x30, 0xF0])
@pytest.mark.parametrize("magic", [0, 1])
def test_bits_that_mean_nothing_make_no_transaction(magic: int, attributes: int) -> None:
    batches = scan(message(Record(0, 0, b"k", b"v"), magic, attributes=attributes))
    assert not batches.is_control.any()
    assert not batches.is_transactional_data.any()
    assert batches.attributes.tolist() == [0]


def test_no_log_append_time_in_v0() -> None:
    data = message(Record(3, 9, b"k", b"v"), 0, attributes=LOG_APPEND_TIME)
    assert decode_with_klog(data) == [Seen(3, -1, -1, b"k", b"v")]


@pytest.mark.parametrize("name", LEGACY)
def test_every_cut_leaves_the_entries_before_it(name: str) -> None:
    data = LEGACY[name]
    ends = np.cumsum([len(entry) for entry in whole_entries(data)]).tolist()
    for size in range(len(data)):
        assert scan(data[:size]).ends.tolist() == [end for end in ends if end <= size]


@pytest.mark.parametrize("name", LEGACY)
def test_a_flipped_bit_from_byte_12_on_is_caught(name: str) -> None:
    (entry, *_) = whole_entries(LEGACY[name])
    assert has_valid_crc(entry)
    for bit in range(8 * 12, 8 * len(entry)):
        changed = bytearray(entry)
        changed[bit // 8] ^= 1 << bit % 8
        if bit // 8 != v2.MAGIC_AT:
            assert not has_valid_crc(bytes(changed)), bit
        assert _is_refused(bytes(changed)), bit


def _is_refused(data: bytes) -> bool:
    """Return whether there is no complete and intact batch."""
    try:
        batches = scan(data)
        check_batch_crcs(data, batches)
    except CorruptRecordError:
        return True
    return not len(batches)


def test_a_bad_crc_names_its_entry() -> None:
    data = plain(PLAIN, 1) + batch_bytes.plain(8) + plain([Record(9, 0)], 0)
    batches = scan(data)
    for start, end in zip(batches.starts.tolist(), batches.ends.tolist(), strict=True):
        changed = data[: end - 1] + bytes([data[end - 1] ^ 1]) + data[end:]
        with pytest.raises(CorruptRecordError, match="CRC-32") as caught:
            check_batch_crcs(changed, batches)
        assert caught.value.position == start


@pytest.mark.parametrize(("magic", "length"), [(0, 13), (0, 0), (0, -1), (1, 21), (1, 14)])
def test_a_length_no_message_can_have(magic: int, length: int) -> None:
    good = batch_bytes.plain(0)
    with pytest.raises(CorruptRecordError, match=f"batch length {length} is below") as caught:
        scan(good + message(Record(1, 0), magic, length=length))
    assert caught.value.position == len(good)


@pytest.mark.parametrize("second", [5, 4, 0, -1])
def test_offsets_that_do_not_rise(second: int) -> None:
    first = wrapper([Record(3, 0), Record(5, 0)], 1, GZIP)
    with pytest.raises(CorruptRecordError) as caught:
        scan(first + message(Record(second, 0), 1))
    assert caught.value.position == len(first)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (struct.pack(">i", 9) + b"key" + bytes(4), "a key reaches past its message"),
        (struct.pack(">i", 1 << 30) + bytes(4), "a key reaches past its message"),
        (struct.pack(">i", 4) + b"keys", "the length of a value reaches past"),
        (struct.pack(">i", 7) + b"keys" + bytes(3), "the length of a value reaches past"),
        (struct.pack(">ii", -1, 1), "a value reaches past its message"),
        (struct.pack(">ii", -1, (1 << 31) - 1), "a value reaches past its message"),
    ],
)
def test_lengths_that_leave_their_message(magic: int, fields: bytes, reason: str) -> None:
    good = batch_bytes.plain(0)
    data = good + message(Record(1, 0), magic, fields=fields) + batch_bytes.plain(2)
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_with_klog(data)
    assert caught.value.position == len(good)


@pytest.mark.parametrize("magic", [0, 1])
def test_lengths_as_kafka_reads_them(magic: int) -> None:
    # `Utils.sizeDelimited`: any negative length is null; nothing looks after the value.
    fields = struct.pack(">ii", -7, -(1 << 31)) + b"more"
    assert [
        (record.key, record.value)
        for record in decode_with_klog(message(Record(1, 0), magic, fields=fields))
    ] == [(None, None)]


def test_headers_are_null() -> None:
    data = plain(PLAIN, 0) + wrapper([Record(9, 0)], 1, GZIP)
    columns = decode_records(data, scan(data), ALL)
    assert columns.headers is not None
    assert columns.headers.to_pylist() == [None] * 4


def test_only_what_was_asked_for() -> None:
    data = plain(PLAIN, 1)
    columns = decode_records(data, scan(data), ("value",))
    assert columns.value is not None
    assert columns.value.to_pylist() == [b"v1", b"v2", None]
    assert (columns.key, columns.timestamp_ms, columns.timestamp_type, columns.headers) == (
        None, None, None, None,
    )  # fmt: skip


def test_header_of_needs_only_the_first_bytes() -> None:
    for entry, enough in ((message(Record(9, 77), 0), 26), (message(Record(9, 77), 1), 26),
                          (batch([Record(9, 77)]), 61)):  # fmt: skip
        whole = scan(entry).headers[0]
        assert decode_batch_header(entry[:enough]) == whole
        assert decode_batch_header(entry[: enough - 1]) is None
    assert decode_batch_header(message(Record(9, 77), 1, length=21)) is None
    assert decode_batch_header(batch([Record(9, 77)], magic=3)) is None


@settings(max_examples=150)
@given(logs(), st.integers(1, 400), st.integers(1, 7))
def test_any_mix_of_formats_round_trips(
    log: list[Entry], part_bytes: int, part_records: int
) -> None:
    data = b"".join(entry for entry, _ in log)
    expected = [row for _, rows in log for row in rows]
    assert decode_with_klog(data) == expected
    parts = parts_of(data, scan(data), part_bytes, part_records)
    assert max(map(len, parts)) <= part_records
    assert [row for part in parts for row in part] == expected


@settings(max_examples=100)
@given(logs(), st.data())
def test_a_cut_anywhere_leaves_exactly_the_entries_before_it(
    log: list[Entry], data: st.DataObject
) -> None:
    whole = b"".join(entry for entry, _ in log)
    ends = np.cumsum([len(entry) for entry in whole_entries(whole)]).tolist()
    size = data.draw(st.integers(0, len(whole)))
    assert scan(whole[:size]).ends.tolist() == [end for end in ends if end <= size]


@settings(max_examples=200)
@given(logs(), st.data())
def test_a_flipped_bit_under_a_crc_is_caught(log: list[Entry], data: st.DataObject) -> None:
    whole = b"".join(entry for entry, _ in log)
    batches = scan(whole)
    number = data.draw(st.integers(0, len(batches) - 1))
    start, end = int(batches.starts[number]), int(batches.ends[number])
    covered = 21 if whole[start + 16] == 2 else 17
    bit = data.draw(st.integers(8 * (start + covered), 8 * end - 1))
    changed = bytearray(whole)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptRecordError) as caught:
        check_batch_crcs(bytes(changed), batches)
    assert caught.value.position == start


@settings(max_examples=300)
@given(logs(), st.data())
def test_any_bytes_in_an_entry_decode_or_are_refused(log: list[Entry], data: st.DataObject) -> None:
    entries = whole_entries(b"".join(entry for entry, _ in log))
    number = data.draw(st.integers(0, len(entries) - 1))
    entry = entries[number]
    at = data.draw(st.integers(0, len(entry) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=4))
    changed = (entry[:at] + junk + entry[at + len(junk) :])[: len(entry)]
    entries[number] = (batch_bytes.sealed if changed[16] == 2 else sealed)(changed)
    _decode_or_refuse(b"".join(entries))


@settings(max_examples=300)
@given(st.integers(0, 1), st.integers(0, 255), st.binary(max_size=60))
def test_any_message_decodes_or_is_refused(magic: int, attributes: int, fields: bytes) -> None:
    _decode_or_refuse(message(Record(3, 4), magic, attributes=attributes, fields=fields))


@settings(max_examples=300)
@given(st.integers(0, 1), st.integers(0, ZSTD - 1), st.integers(0, 3), st.binary(max_size=80))
def test_any_bytes_in_a_wrapper_decode_or_are_refused(
    magic: int, codec: int, offset: int, inner: bytes
) -> None:
    _decode_or_refuse(wrapper([], magic, codec, offset=offset, inner=inner))


@settings(max_examples=200)
@given(st.binary(max_size=120), st.integers(0, 1))
def test_any_bytes_with_an_older_magic(data: bytes, magic: int) -> None:
    _decode_or_refuse(data[:16] + bytes([magic]) + data[17:])


def _decode_or_refuse(data: bytes) -> None:
    """Decode to sound arrays whose offsets rise, or raise what is documented."""
    try:
        batches = scan(data)
        check_batch_crcs(data, batches)
        columns = decode_records(data, batches, ALL)
    except CorruptRecordError:
        return
    for array in (columns.key, columns.value, columns.headers):
        assert array is not None
        array.validate(full=True)
    assert len(rows(columns)) == len(columns.offset)
