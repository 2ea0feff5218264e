"""Records of Kafka's own topics: Kafka's bytes, every version, tombstones and what is newer."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat import internal_topics as topics
from klog.logformat.internal_topics import (
    InternalRecord,
    read_group_record,
    read_transaction_record,
    read_versioned,
    write_versioned,
)
from klog.logformat.schema import Array, Field, Fields, Schema, Type

SCHEMAS = (
    *(table for tables in topics.GROUP_SCHEMAS.values() for table in tables),
    topics.SUBSCRIPTION,
    topics.ASSIGNMENT,
    topics.TRANSACTION_LOG_KEY,
    topics.TRANSACTION_LOG_VALUE,
)
VERSIONS = [(table, v) for table in SCHEMAS for v in range(table.first, table.last + 1)]
GROUP_KEY = bytes.fromhex("000200026731")
OFFSET_KEY = bytes.fromhex("00010002673100017400000002")
OFFSET_V4 = bytes.fromhex("0004000000000000002a00000005026d00000000000003e800")
TRANSACTION_KEY = bytes.fromhex("00000003747831")
TRANSACTION_V1 = bytes.fromhex(
    "00010000000000000fa000010000ea60010202740300000000000000020000000000000003e8000000000000038400"
)


def values(kind: Type, version: int) -> st.SearchStrategy[Any]:
    """Give values of a type, as a table of fields has them in a version."""
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
    there = {
        one.name: st.none() | values(one.type, version)
        if one.nullable
        else values(one.type, version)
        for one in fields
        if one.since <= version < one.until
    }
    return st.fixed_dictionaries(there)


def without_defaults(fields: tuple[Field, ...], given: Fields) -> Fields:
    return {
        one.name: _without_defaults(one.type, given[one.name])
        for one in fields
        if one.name in given and (one.tag is None or given[one.name] != one.default)
    }


def _without_defaults(kind: Type, value: Any) -> Any:
    if isinstance(kind, Array):
        return value and [_without_defaults(kind.element, one) for one in value]
    return without_defaults(kind, value) if isinstance(kind, tuple) and value else value


@given(st.data())
def test_every_version_comes_back(data: st.DataObject) -> None:
    table, version = data.draw(st.sampled_from(VERSIONS))
    fields = data.draw(messages(table.fields, version))
    written = write_versioned(table, version, fields)
    found = read_versioned(table, written)
    assert found == without_defaults(table.fields, fields)
    assert read_versioned(table, written + b"what follows is ignored") == found
    assert list(found) == [one.name for one in table.fields if one.name in found]
    for cut in range(len(written)):
        with pytest.raises(CorruptRecordError):
            read_versioned(table, written[:cut])


@given(st.sampled_from(VERSIONS), st.binary(max_size=80))
def test_any_bytes_decode_or_raise(which: tuple[Schema, int], data: bytes) -> None:
    table, version = which
    for read in (read_group_record, read_transaction_record):
        for key in (data, struct.pack(">h", version) + data):
            try:
                read(key, data)
                read(key, struct.pack(">h", version) + data)
            except CorruptRecordError:
                continue
    try:
        assert read_versioned(table, struct.pack(">h", version) + data) is not None
    except CorruptRecordError:
        return


def test_a_tombstone() -> None:
    assert read_group_record(OFFSET_KEY, None) == InternalRecord(
        "OffsetCommit", 1, {"group": "g1", "topic": "t", "partition": 2}, None, None
    )
    assert read_transaction_record(TRANSACTION_KEY, None).value is None


@pytest.mark.parametrize("version", [24, 77, -1])
def test_kinds_that_are_not_known_are_told(version: int) -> None:
    key = struct.pack(">h", version) + b"?"
    found = read_group_record(key, b"\0\1?")
    assert found == InternalRecord("", version, None, None, None)
    assert read_transaction_record(key, None) == InternalRecord("", version, None, None, None)


def test_a_newer_value_is_told() -> None:
    found = read_group_record(OFFSET_KEY, b"\0\5" + OFFSET_V4[2:])
    assert (found.value_version, found.value) == (5, None)
    assert found.key is not None


def test_tags_that_are_not_known_are_stepped_over() -> None:
    tags = ("03", "0008000000000000002a", "6401ff", "650100")
    future = TRANSACTION_V1[:-1] + bytes.fromhex("".join(tags))
    expected = read_transaction_record(TRANSACTION_KEY, TRANSACTION_V1).value
    assert expected is not None
    found = read_transaction_record(TRANSACTION_KEY, future).value
    assert found == {**expected, "previousProducerId": 42}


def test_a_tag_that_holds_its_default_is_as_if_it_were_not_there() -> None:
    explicit = TRANSACTION_V1[:-1] + bytes.fromhex("010008ffffffffffffffff")
    assert read_transaction_record(TRANSACTION_KEY, explicit) == read_transaction_record(
        TRANSACTION_KEY, TRANSACTION_V1
    )


STATE = read_transaction_record(TRANSACTION_KEY, TRANSACTION_V1).value or {}


def test_the_transaction_version_chooses_the_value() -> None:
    fields = {**STATE, "previousProducerId": 3999}
    old = topics.write_transaction_state(fields, 0)
    assert topics.version_of(old) == 0
    assert read_transaction_record(TRANSACTION_KEY, old).value == STATE
    for version in (1, 2):
        new = topics.write_transaction_state(fields, version)
        assert topics.version_of(new) == 1
        assert read_transaction_record(TRANSACTION_KEY, new).value == fields


MISUSE: list[tuple[Schema, int, Fields, str]] = [
    (topics.GROUP_METADATA_KEY, 1, {"group": "g"}, "versions 2 to 2: 1"),
    (topics.GROUP_METADATA_KEY, 2, {}, "group is missing"),
    (topics.GROUP_METADATA_KEY, 2, {"group": None}, "group must not be null"),
    (topics.GROUP_METADATA_KEY, 2, {"group": "g", "x": 1, "y": 2}, "has no x, y"),
    (topics.OFFSET_COMMIT_KEY, 1, {"group": "", "topic": "", "partition": 1 << 31}, "no int32"),
]


@pytest.mark.parametrize(("table", "version", "fields", "said"), MISUSE)
def test_misuse(table: Schema, version: int, fields: Fields, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        write_versioned(table, version, fields)


def test_an_empty_transaction_has_no_partitions() -> None:
    with pytest.raises(ValueError, match="Empty has no partitions"):
        topics.write_transaction_state({**STATE, "transactionStatus": topics.EMPTY}, 2)
