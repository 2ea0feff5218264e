"""Records of Kafka's internal topics: every version, tombstones, newer and unknown versions."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.internal_topics import internal_records as topics
from klog.logformat.internal_topics.internal_records import (
    InternalRecord,
    decode_group_record,
    decode_transaction_record,
    decode_versioned,
    encode_versioned,
)
from klog.logformat.protocol.message_schema import Array, Field, Fields, Schema, Type

SCHEMAS = (
    *(schema for schemas in topics.GROUP_SCHEMAS.values() for schema in schemas),
    topics.SUBSCRIPTION,
    topics.ASSIGNMENT,
    topics.TRANSACTION_LOG_KEY,
    topics.TRANSACTION_LOG_VALUE,
)
VERSIONS = [
    (schema, version) for schema in SCHEMAS for version in range(schema.first, schema.last + 1)
]
GROUP_KEY = bytes.fromhex("000200026731")
OFFSET_KEY = bytes.fromhex("00010002673100017400000002")
OFFSET_V4 = bytes.fromhex("0004000000000000002a00000005026d00000000000003e800")
TRANSACTION_KEY = bytes.fromhex("00000003747831")
TRANSACTION_V1 = bytes.fromhex(
    "00010000000000000fa000010000ea60010202740300000000000000020000000000000003e8000000000000038400"
)


def values(kind: Type, version: int) -> st.SearchStrategy[Any]:
    """Draw values of a type, as a version of a message has them."""
    if isinstance(kind, tuple):
        return messages(kind, version)
    if isinstance(kind, Array):
        return st.lists(values(kind.element, version), max_size=3)
    if kind == "string":
        return st.text(max_size=5)
    if kind == "bytes":
        return st.binary(max_size=5)
    if kind == "uuid":
        return st.sampled_from(["ASNFZ4mrze_-3LqYdlQyEA", "A" * 22])
    if kind == "uint16":
        return st.integers(0, (1 << 16) - 1)
    bits = int(kind.removeprefix("int"))
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def messages(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[Fields]:
    in_version = {
        field.name: st.none() | values(field.type, version)
        if field.nullable
        else values(field.type, version)
        for field in fields
        if field.since <= version < field.until
    }
    return st.fixed_dictionaries(in_version)


def without_defaults(fields: tuple[Field, ...], message: Fields) -> Fields:
    return {
        field.name: _without_defaults(field.type, message[field.name])
        for field in fields
        if field.name in message and (field.tag is None or message[field.name] != field.default)
    }


def _without_defaults(kind: Type, value: Any) -> Any:
    if isinstance(kind, Array):
        return value and [_without_defaults(kind.element, element) for element in value]
    return without_defaults(kind, value) if isinstance(kind, tuple) and value else value


@given(st.data())
def test_every_version_round_trips(data: st.DataObject) -> None:
    schema, version = data.draw(st.sampled_from(VERSIONS))
    fields = data.draw(messages(schema.fields, version))
    encoded = encode_versioned(schema, version, fields)
    decoded = decode_versioned(schema, encoded)
    assert decoded == without_defaults(schema.fields, fields)
    assert decode_versioned(schema, encoded + b"ignored") == decoded
    assert list(decoded) == [field.name for field in schema.fields if field.name in decoded]
    for cut in range(len(encoded)):
        with pytest.raises(CorruptRecordError):
            decode_versioned(schema, encoded[:cut])


@given(st.sampled_from(VERSIONS), st.binary(max_size=80))
def test_any_bytes_are_decoded_or_corrupt(schema_version: tuple[Schema, int], data: bytes) -> None:
    schema, version = schema_version
    for decode in (decode_group_record, decode_transaction_record):
        for key in (data, struct.pack(">h", version) + data):
            try:
                decode(key, data)
                decode(key, struct.pack(">h", version) + data)
            except CorruptRecordError:
                continue
    try:
        assert decode_versioned(schema, struct.pack(">h", version) + data) is not None
    except CorruptRecordError:
        return


def test_tombstone() -> None:
    assert decode_group_record(OFFSET_KEY, None) == InternalRecord(
        "OffsetCommit", 1, {"group": "g1", "topic": "t", "partition": 2}, None, None
    )
    assert decode_transaction_record(TRANSACTION_KEY, None).value is None


@pytest.mark.parametrize("version", [24, 77, -1])
def test_unknown_kind_has_only_its_version(version: int) -> None:
    key = struct.pack(">h", version) + b"?"
    unknown = InternalRecord("", version, None, None, None)
    assert decode_group_record(key, b"\0\1?") == unknown
    assert decode_transaction_record(key, None) == unknown


def test_newer_value_has_only_its_version() -> None:
    record = decode_group_record(OFFSET_KEY, b"\0\5" + OFFSET_V4[2:])
    assert (record.value_version, record.value) == (5, None)
    assert record.key is not None


def test_unknown_tags_are_skipped() -> None:
    tags = ("03", "0008000000000000002a", "6401ff", "650100")
    newer = TRANSACTION_V1[:-1] + bytes.fromhex("".join(tags))
    expected = decode_transaction_record(TRANSACTION_KEY, TRANSACTION_V1).value
    assert expected is not None
    value = decode_transaction_record(TRANSACTION_KEY, newer).value
    assert value == {**expected, "previousProducerId": 42}


def test_written_default_of_a_tag_is_dropped() -> None:
    explicit = TRANSACTION_V1[:-1] + bytes.fromhex("010008ffffffffffffffff")
    assert decode_transaction_record(TRANSACTION_KEY, explicit) == decode_transaction_record(
        TRANSACTION_KEY, TRANSACTION_V1
    )


STATE = decode_transaction_record(TRANSACTION_KEY, TRANSACTION_V1).value or {}


def test_transaction_version_decides_the_value_version() -> None:
    fields = {**STATE, "previousProducerId": 3999}
    old = topics.encode_transaction_state(fields, 0)
    assert topics.decode_version(old) == 0
    assert decode_transaction_record(TRANSACTION_KEY, old).value == STATE
    for version in (1, 2):
        new = topics.encode_transaction_state(fields, version)
        assert topics.decode_version(new) == 1
        assert decode_transaction_record(TRANSACTION_KEY, new).value == fields


MISUSE: list[tuple[Schema, int, Fields, str]] = [
    (topics.GROUP_METADATA_KEY, 1, {"group": "g"}, "versions 2 to 2, not 1"),
    (topics.GROUP_METADATA_KEY, 2, {}, "group is missing"),
    (topics.GROUP_METADATA_KEY, 2, {"group": None}, "group must not be null"),
    (topics.GROUP_METADATA_KEY, 2, {"group": "g", "x": 1, "y": 2}, "has no x, y"),
    (
        topics.OFFSET_COMMIT_KEY,
        1,
        {"group": "", "topic": "", "partition": 1 << 31},
        "does not fit into int32",
    ),
]


@pytest.mark.parametrize(("schema", "version", "fields", "reason"), MISUSE)
def test_refused_messages(schema: Schema, version: int, fields: Fields, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_versioned(schema, version, fields)


def test_empty_transaction_must_have_no_partitions() -> None:
    with pytest.raises(ValueError, match="Empty must have no partitions"):
        topics.encode_transaction_state({**STATE, "transactionStatus": topics.EMPTY}, 2)
