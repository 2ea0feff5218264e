"""Control records: Kafka's own bytes, newer versions, and unknown types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers import control_records
from klog.logformat.producers.control_records import (
    ABORT,
    COMMIT,
    ControlRecord,
    decode_control_record,
)
from tests.logformat.golden_vectors import CONTROLS

UUID = "ASNFZ4mrze_-3LqYdlQyEA"
FIELDS: dict[str, dict[str, Any]] = {
    "commit": {"coordinatorEpoch": 9},
    "abort": {"coordinatorEpoch": 9},
    "leader_change": {
        "version": 0,
        "leaderId": 1,
        "voters": [{"voterId": 1}, {"voterId": 2}],
        "grantingVoters": [{"voterId": 1}],
    },
    "snapshot_header": {"version": 0, "lastContainedLogTimestamp": 999},
    "snapshot_footer": {"version": 0},
    "kraft_version": {"version": 0, "kRaftVersion": 1},
    "kraft_voters": {
        "version": 0,
        "voters": [
            {
                "voterId": 1,
                "voterDirectoryId": UUID,
                "endpoints": [{"name": "C", "host": "h", "port": 9093}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
        ],
    },
}


def record_of(data: bytes) -> tuple[bytes, bytes]:
    columns = decode_records(data, scan_batches(data, 0, len(data)), ("key", "value"))
    assert columns.key is not None
    assert columns.value is not None
    return columns.key[0].as_py(), columns.value[0].as_py()


@pytest.mark.parametrize("name", CONTROLS)
def test_golden_records_round_trip(name: str) -> None:
    data, kind = CONTROLS[name]
    key, value = record_of(data)
    assert decode_control_record(key, value) == ControlRecord(kind, FIELDS[name])
    assert control_records.encode_control_key(kind) == key
    assert control_records.encode_control_value(kind, FIELDS[name]) == value


def test_leader_change_of_version_1_has_directory_ids() -> None:
    voter = {"voterId": 1, "voterDirectoryId": UUID}
    fields = {"version": 1, "leaderId": 1, "voters": [voter], "grantingVoters": []}
    key = control_records.encode_control_key(control_records.LEADER_CHANGE)
    value = control_records.encode_control_value(control_records.LEADER_CHANGE, fields)
    assert decode_control_record(key, value).fields == fields


def test_unknown_type_keeps_its_number() -> None:
    record = decode_control_record(bytes.fromhex("00000151"), b"anything")
    assert record == ControlRecord(337, None)
    assert record.name == "UNKNOWN"
    assert decode_control_record(bytes.fromhex("0000ffff"), b"").name == "UNKNOWN"
    for kind, name in ((ABORT, "ABORT"), (COMMIT, "COMMIT")):
        key = control_records.encode_control_key(kind)
        assert decode_control_record(key, bytes(6)).name == name


def test_newer_version_is_read_as_version_0() -> None:
    key, value = bytes.fromhex("0005000163617400"), bytes.fromhex("00050000004fffff")
    assert decode_control_record(key, value) == ControlRecord(COMMIT, {"coordinatorEpoch": 79})


BAD = [
    ("", "", "without a key: 0 bytes"),
    ("000000", "", "without a key: 3 bytes"),
    ("ffff0000", "00000000004f", "a control record of version -1"),
    ("00000001", "", "a value of 0 bytes"),
    ("00000001", "0000000000", "a value of 5 bytes"),
    ("00000001", "ffff0000004f", "a transaction marker of version -1"),
    ("00000003", "ffff000000000000000000", "SnapshotHeader of version -1"),
    ("00000003", "0000", "8 bytes where 0 are left"),
    ("00000002", "00000000000100", "a field that cannot be null is null"),
]


@pytest.mark.parametrize(("key", "value", "reason"), BAD)
def test_malformed_record_is_corrupt(key: str, value: str, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_control_record(bytes.fromhex(key), bytes.fromhex(value))


def test_unknown_types_are_not_encoded() -> None:
    with pytest.raises(ValueError, match="unknown type 7 of a control record"):
        control_records.encode_control_key(7)
    with pytest.raises(ValueError, match="unknown type -1 of a control record"):
        control_records.encode_control_value(-1, {})
    with pytest.raises(ValueError, match="type 2 is not a transaction marker"):
        control_records.decode_end_transaction(control_records.encode_control_key(2), bytes(6))


@given(st.sampled_from([ABORT, COMMIT]), st.integers(-(1 << 31), (1 << 31) - 1))
def test_end_transaction_round_trip(kind: int, epoch: int) -> None:
    key = control_records.encode_control_key(kind)
    value = control_records.encode_control_value(kind, {"coordinatorEpoch": epoch})
    assert control_records.decode_end_transaction(key, value) == (kind, epoch)


@given(st.integers(-2, 9), st.binary(max_size=60))
def test_any_value_is_decoded_or_corrupt(kind: int, value: bytes) -> None:
    key = b"\0\0" + kind.to_bytes(2, "big", signed=True)
    try:
        record = decode_control_record(key, value)
    except CorruptRecordError:
        return
    assert (record.fields is None) == (record.name == "UNKNOWN")
