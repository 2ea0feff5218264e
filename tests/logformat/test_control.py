"""Control records: Kafka's own bytes, versions, and types that nobody knows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import control
from klog.logformat.columnar import decode
from klog.logformat.control import ABORT, COMMIT, ControlRecord, read_control
from tests.logformat.golden import CONTROLS

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
    columns = decode(data, v2.scan(data, 0, len(data)), ("key", "value"))
    assert columns.key is not None
    assert columns.value is not None
    return columns.key[0].as_py(), columns.value[0].as_py()


@pytest.mark.parametrize("name", CONTROLS)
def test_golden_records_both_ways(name: str) -> None:
    data, kind = CONTROLS[name]
    key, value = record_of(data)
    assert read_control(key, value) == ControlRecord(kind, FIELDS[name])
    assert control.write_key(kind) == key
    assert control.write_value(kind, FIELDS[name]) == value


def test_a_leader_change_of_version_1_names_directories() -> None:
    voter = {"voterId": 1, "voterDirectoryId": UUID}
    fields = {"version": 1, "leaderId": 1, "voters": [voter], "grantingVoters": []}
    value = control.write_value(control.LEADER_CHANGE, fields)
    assert read_control(control.write_key(control.LEADER_CHANGE), value).fields == fields


def test_a_type_that_is_not_known_is_kept() -> None:
    record = read_control(bytes.fromhex("00000151"), b"anything")
    assert record == ControlRecord(337, None)
    assert record.name == "UNKNOWN"
    assert read_control(bytes.fromhex("0000ffff"), b"").name == "UNKNOWN"
    assert [read_control(control.write_key(kind), value).name for kind, value in (
        (ABORT, bytes(6)), (COMMIT, bytes(6)))] == ["ABORT", "COMMIT"]  # fmt: skip


def test_newer_versions_and_what_follows_are_ignored() -> None:
    key, value = bytes.fromhex("0005000163617400"), bytes.fromhex("00050000004fffff")
    assert read_control(key, value) == ControlRecord(COMMIT, {"coordinatorEpoch": 79})


BAD = [
    ("", "", "without a key: 0 bytes"),
    ("000000", "", "without a key: 3 bytes"),
    ("ffff0000", "00000000004f", "a control record of version -1"),
    ("00000001", "", "a value of 0 bytes"),
    ("00000001", "0000000000", "a value of 5 bytes"),
    ("00000001", "ffff0000004f", "a transaction marker of version -1"),
    ("00000003", "ffff000000000000000000", "SnapshotHeader of version -1"),
    ("00000003", "0000", "8 bytes where 0 are left"),
    ("00000002", "00000000000100", "null where a value must be"),
]


@pytest.mark.parametrize(("key", "value", "said"), BAD)
def test_bytes_that_cannot_be(key: str, value: str, said: str) -> None:
    with pytest.raises(CorruptRecordError, match=said):
        read_control(bytes.fromhex(key), bytes.fromhex(value))


def test_misuse() -> None:
    with pytest.raises(ValueError, match="no control record of type 7"):
        control.write_key(7)
    with pytest.raises(ValueError, match="no control record of type -1"):
        control.write_value(-1, {})
    with pytest.raises(ValueError, match="type 2 is no transaction marker"):
        control.read_end_transaction(control.write_key(2), bytes(6))


@given(st.sampled_from([ABORT, COMMIT]), st.integers(-(1 << 31), (1 << 31) - 1))
def test_markers_come_back(kind: int, epoch: int) -> None:
    value = control.write_value(kind, {"coordinatorEpoch": epoch})
    assert control.read_end_transaction(control.write_key(kind), value) == (kind, epoch)


@given(st.integers(-2, 9), st.binary(max_size=60))
def test_any_bytes_decode_or_raise(kind: int, value: bytes) -> None:
    key = b"\0\0" + kind.to_bytes(2, "big", signed=True)
    try:
        record = read_control(key, value)
    except CorruptRecordError:
        return
    assert (record.fields is None) == (record.name == "UNKNOWN")
