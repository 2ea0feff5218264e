"""Records of consumer, share and streams groups: Kafka's bytes both ways, and nullable fields."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from dataclasses import replace

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.internal_topics.group_records import CONSUMER_GROUPS, SHARE_GROUPS
from klog.logformat.internal_topics.internal_records import (
    GROUP_SCHEMAS,
    InternalRecord,
    decode_group_record,
    decode_versioned,
    encode_versioned,
)
from klog.logformat.internal_topics.streams_group_records import STREAMS_GROUPS
from klog.logformat.protocol import primitive_types
from klog.logformat.protocol.message_schema import (
    Field,
    Fields,
    Schema,
    decode_message,
    encode_message,
)
from tests.logformat.golden_group_records import EARLIER_ROWS, GIVEN_UP, ROWS, Golden

EVERY_ROW = pytest.mark.parametrize(
    "golden",
    [*ROWS, *EARLIER_ROWS],
    ids=[f"{number}-{golden.kind}" for number, golden in enumerate([*ROWS, *EARLIER_ROWS])],
)


@EVERY_ROW
def test_golden_record_is_decoded(golden: Golden) -> None:
    key, value = bytes.fromhex(golden.key_hex), bytes.fromhex(golden.value_hex)
    record = decode_group_record(key, value)
    name = GROUP_SCHEMAS[golden.kind][0].name.removesuffix("Key")
    assert record == InternalRecord(name, golden.kind, golden.key, 0, golden.value)
    assert record.value is not None
    assert list(record.value) == list(golden.value)
    assert decode_group_record(key, None) == replace(record, value_version=None, value=None)


@EVERY_ROW
def test_golden_record_is_encoded(golden: Golden) -> None:
    key, value = GROUP_SCHEMAS[golden.kind]
    assert encode_versioned(key, golden.kind, golden.key).hex() == golden.key_hex
    assert encode_versioned(value, 0, golden.value).hex() == golden.value_hex


def test_each_kind_has_a_golden_vector() -> None:
    kinds = {*CONSUMER_GROUPS, *SHARE_GROUPS, *STREAMS_GROUPS}
    assert {golden.kind for golden in [*ROWS, *EARLIER_ROWS]} == kinds
    assert {golden.kind for golden in EARLIER_ROWS} == GIVEN_UP


def test_dropped_kinds_have_their_old_names() -> None:
    names = {kind: decode_group_record(struct.pack(">hh", kind, 0), None).name for kind in GIVEN_UP}
    assert names == {9: "ShareGroupPartitionMetadata", 18: "StreamsGroupPartitionMetadata"}


SAME = [
    pytest.param(5, "0000010101010101ffffffff01", "00", "010007 01 00000000 01 00", id="structure"),
    pytest.param(17, "0000000000070000000000000005", "00", "010101 01", id="array"),
    pytest.param(
        22,
        "00000000000700000006 02 02 0230 01",
        "00 010101010100",
        "010001 01 010101010100",
        id="inner",
    ),
]


@pytest.mark.parametrize(("kind", "fields", "without_default", "with_default"), SAME)
def test_default_of_a_nullable_field_is_empty(
    kind: int, fields: str, without_default: str, with_default: str
) -> None:
    """A default that was written is dropped, and it is not null."""
    schema = GROUP_SCHEMAS[kind][1]
    short, long = (bytes.fromhex(fields + tags) for tags in (without_default, with_default))
    value = decode_versioned(schema, long)
    assert value == decode_versioned(schema, short)
    assert "null" not in json.dumps(value)


ENDPOINT = (Field("endpoint", (Field("port", "uint16"),), nullable=True),)


@pytest.mark.parametrize(
    ("data", "endpoint"),
    [("80", None), ("ff", None), ("00 2384", {"port": 9092}), ("7f 2384", {"port": 9092})],
)
def test_negative_byte_is_a_null_structure(data: str, endpoint: Fields | None) -> None:
    reader = primitive_types.Reader(bytes.fromhex(data))
    fields = decode_message(Schema("T", 0, 0, ENDPOINT), 0, reader)
    assert fields == {"endpoint": endpoint}


def test_structure_that_must_not_be_null() -> None:
    schema = Schema("T", 0, 0, tuple(replace(field, nullable=False) for field in ENDPOINT))
    assert encode_message(schema, 0, {"endpoint": {"port": 1}}) == b"\0\1"
    with pytest.raises(ValueError, match="endpoint must not be null"):
        encode_message(schema, 0, {"endpoint": None})


def test_count_larger_than_the_data() -> None:
    key = bytes.fromhex("0007 0001 67 0001 6d")
    with pytest.raises(CorruptRecordError, match="2147483646 elements in 3 bytes"):
        decode_group_record(key, bytes.fromhex("0000 ffffffff07 000000"))


@EVERY_ROW
def test_damaged_golden_record_is_decoded_or_corrupt(golden: Golden) -> None:
    key, value = bytes.fromhex(golden.key_hex), bytes.fromhex(golden.value_hex)
    decoded = set()
    for position in range(len(value)):
        for damaged in (0, 1, 0x7F, 0x80, 0xFF, value[position] ^ 1):
            data = value[:position] + bytes([damaged]) + value[position + 1 :]
            with suppress(CorruptRecordError):
                decoded.add(repr(decode_group_record(key, data)))
    assert len(decoded) > 1
