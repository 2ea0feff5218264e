"""Records of consumer, share and streams groups: Kafka's bytes both ways, and what may be null."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from dataclasses import replace

import pytest

from klog.errors import CorruptRecordError
from klog.logformat import wire
from klog.logformat.group_records import CONSUMER_GROUPS, SHARE_GROUPS
from klog.logformat.internal_topics import (
    GROUP_SCHEMAS,
    InternalRecord,
    read_group_record,
    read_versioned,
    write_versioned,
)
from klog.logformat.schema import Field, Fields, Schema, read, write
from klog.logformat.streams_groups import STREAMS_GROUPS
from tests.logformat.group_goldens import EARLIER_ROWS, GIVEN_UP, ROWS, Golden

EVERY_ROW = pytest.mark.parametrize(
    "golden",
    [*ROWS, *EARLIER_ROWS],
    ids=[f"{number}-{one.kind}" for number, one in enumerate([*ROWS, *EARLIER_ROWS])],
)


@EVERY_ROW
def test_what_kafka_wrote_is_read(golden: Golden) -> None:
    key, value = bytes.fromhex(golden.key_hex), bytes.fromhex(golden.value_hex)
    found = read_group_record(key, value)
    name = GROUP_SCHEMAS[golden.kind][0].name.removesuffix("Key")
    assert found == InternalRecord(name, golden.kind, golden.key, 0, golden.value)
    assert found.value is not None
    assert list(found.value) == list(golden.value)
    assert read_group_record(key, None) == replace(found, value_version=None, value=None)


@EVERY_ROW
def test_what_is_written_is_what_kafka_wrote(golden: Golden) -> None:
    key, value = GROUP_SCHEMAS[golden.kind]
    assert write_versioned(key, golden.kind, golden.key).hex() == golden.key_hex
    assert write_versioned(value, 0, golden.value).hex() == golden.value_hex


def test_each_kind_has_a_golden_vector() -> None:
    kinds = {*CONSUMER_GROUPS, *SHARE_GROUPS, *STREAMS_GROUPS}
    assert {one.kind for one in [*ROWS, *EARLIER_ROWS]} == kinds
    assert {one.kind for one in EARLIER_ROWS} == GIVEN_UP


def test_kinds_that_kafka_gave_up_have_the_names_they_had() -> None:
    names = {kind: read_group_record(struct.pack(">hh", kind, 0), None).name for kind in GIVEN_UP}
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


@pytest.mark.parametrize(("kind", "fields", "left_out", "there"), SAME)
def test_defaults_of_what_may_be_null_are_empty(
    kind: int, fields: str, left_out: str, there: str
) -> None:
    """A default that is there is as if it were left out, and it is not null."""
    table = GROUP_SCHEMAS[kind][1]
    short, long = (bytes.fromhex(fields + tags) for tags in (left_out, there))
    found = read_versioned(table, long)
    assert found == read_versioned(table, short)
    assert "null" not in json.dumps(found)


ENDPOINT = (Field("endpoint", (Field("port", "uint16"),), nullable=True),)


@pytest.mark.parametrize(
    ("data", "endpoint"),
    [("80", None), ("ff", None), ("00 2384", {"port": 9092}), ("7f 2384", {"port": 9092})],
)
def test_a_byte_below_zero_is_a_null_structure(data: str, endpoint: Fields | None) -> None:
    found = read(Schema("T", 0, 0, ENDPOINT), 0, wire.Reader(bytes.fromhex(data)))
    assert found == {"endpoint": endpoint}


def test_a_structure_that_must_be_there() -> None:
    table = Schema("T", 0, 0, tuple(replace(one, nullable=False) for one in ENDPOINT))
    assert write(table, 0, {"endpoint": {"port": 1}}) == b"\0\1"
    with pytest.raises(ValueError, match="endpoint must not be null"):
        write(table, 0, {"endpoint": None})


def test_a_count_that_the_bytes_cannot_hold() -> None:
    key = bytes.fromhex("0007 0001 67 0001 6d")
    with pytest.raises(CorruptRecordError, match="2147483646 elements in 3 bytes"):
        read_group_record(key, bytes.fromhex("0000 ffffffff07 000000"))


@EVERY_ROW
def test_kafkas_bytes_with_a_damaged_one_are_read_or_refused(golden: Golden) -> None:
    key, value = bytes.fromhex(golden.key_hex), bytes.fromhex(golden.value_hex)
    read_as = set()
    for at in range(len(value)):
        for damaged in (0, 1, 0x7F, 0x80, 0xFF, value[at] ^ 1):
            data = value[:at] + bytes([damaged]) + value[at + 1 :]
            with suppress(CorruptRecordError):
                read_as.add(repr(read_group_record(key, data)))
    assert len(read_as) > 1
