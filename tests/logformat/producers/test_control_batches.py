"""Control batches: the bytes that Kafka's classes wrote, round trips, and what is refused."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.producers import control_batches
from klog.logformat.producers.control_batches import AppendInfo, Endpoint, Voter
from klog.logformat.producers.control_records import (
    ABORT,
    COMMIT,
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_HEADER,
    ControlRecord,
    decode_control_record,
)
from klog.logformat.producers.transaction_outcomes import control_type, transaction_markers
from klog.logformat.protocol.message_schema import Fields
from tests.logformat.golden_vectors import CONTROLS

KRAFT = AppendInfo(offset=0, timestamp_ms=1000, leader_epoch=1)
UUID = "ASNFZ4mrze_-3LqYdlQyEA"
VOTER = Voter(1, UUID, (Endpoint("C", "h", 9093),), 0, 1)
ENCODERS: dict[str, Callable[[], bytes]] = {
    "commit": lambda: control_batches.end_transaction(AppendInfo(12, 1000, 2), COMMIT, 4000, 3, 9),
    "abort": lambda: control_batches.end_transaction(AppendInfo(13, 1001, 2), ABORT, 4000, 3, 9),
    "leader_change": lambda: control_batches.leader_change(KRAFT, 1, [1, 2], [1]),
    "snapshot_header": lambda: control_batches.snapshot_header(KRAFT, 999),
    "snapshot_footer": lambda: control_batches.snapshot_footer(AppendInfo(1, 1000, 1)),
    "kraft_version": lambda: control_batches.kraft_version(KRAFT, 1),
    "kraft_voters": lambda: control_batches.kraft_voters(KRAFT, [VOTER]),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_batches_equal_those_of_kafkas_classes(name: str) -> None:
    assert ENCODERS[name]().hex() == CONTROLS[name][0].hex()


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_marker_round_trip(kind: int) -> None:
    data = control_batches.end_transaction(AppendInfo(7, -1, -1), kind, 5, 0, 15)
    assert len(data) == 78
    assert transaction_markers(data, scan_batches(data, 0, len(data))) == [(7, 5, kind)]


def test_many_voters() -> None:
    """Their count takes two bytes from 127 on."""
    data = control_batches.leader_change(KRAFT, 1, range(200), [])
    assert control_type(data, 0, len(data)) == LEADER_CHANGE
    assert bytes.fromhex("0000 00000001 c901 00000000 00 00000001 00") in data


INT16, INT32, INT64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (16, 32, 64))
ENDPOINTS = st.builds(Endpoint, st.text(max_size=9), st.text(max_size=9), st.integers(0, 65535))
DIRECTORIES = st.binary(min_size=16, max_size=16).map(
    lambda data: urlsafe_b64encode(data).decode().rstrip("=")
)
VOTERS = st.lists(
    st.builds(Voter, INT32, DIRECTORIES, st.lists(ENDPOINTS, max_size=3).map(tuple), INT16, INT16),
    max_size=5,
)


def record_of(data: bytes) -> ControlRecord:
    """Return the control record of a batch."""
    columns = decode_records(data, scan_batches(data, 0, len(data)), ("key", "value"))
    assert columns.key is not None
    assert columns.value is not None
    return decode_control_record(columns.key[0].as_py(), columns.value[0].as_py())


@given(VOTERS)
def test_kraft_voters_round_trip(voters: list[Voter]) -> None:
    data = control_batches.kraft_voters(KRAFT, voters)
    assert control_type(data, 0, len(data)) == KRAFT_VOTERS
    fields = record_of(data).fields
    assert fields is not None
    assert [
        Voter(
            voter["voterId"],
            voter["voterDirectoryId"],
            tuple(Endpoint(**endpoint) for endpoint in voter["endpoints"]),
            voter["kRaftVersionFeature"]["minSupportedVersion"],
            voter["kRaftVersionFeature"]["maxSupportedVersion"],
        )
        for voter in fields["voters"]
    ] == voters


@given(INT16, INT64, INT32, st.lists(INT32, max_size=3))
def test_batches_of_controllers_round_trip(
    version: int, timestamp: int, leader: int, voter_ids: list[int]
) -> None:
    record = record_of(control_batches.kraft_version(KRAFT, version))
    assert record == ControlRecord(KRAFT_VERSION, {"version": 0, "kRaftVersion": version})
    record = record_of(control_batches.snapshot_header(KRAFT, timestamp))
    fields: Fields = {"version": 0, "lastContainedLogTimestamp": timestamp}
    assert record == ControlRecord(SNAPSHOT_HEADER, fields)
    voters = [{"voterId": voter_id} for voter_id in voter_ids]
    fields = {"version": 0, "leaderId": leader, "voters": voters, "grantingVoters": voters[:1]}
    record = record_of(control_batches.leader_change(KRAFT, leader, voter_ids, voter_ids[:1]))
    assert record == ControlRecord(LEADER_CHANGE, fields)


@pytest.mark.parametrize(
    ("kind", "producer_id", "epoch", "reason"),
    [
        (LEADER_CHANGE, 4000, 3, "not type 2"),
        (COMMIT, -1, 3, "needs a producer id"),
        (COMMIT, 4000, -1, "needs a producer epoch"),
    ],
)
def test_refused_markers(kind: int, producer_id: int, epoch: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        control_batches.end_transaction(AppendInfo(0, 0, 0), kind, producer_id, epoch, 0)


def test_leader_change_needs_a_leader_epoch() -> None:
    with pytest.raises(ValueError, match="leader epoch"):
        control_batches.leader_change(AppendInfo(0, 0, -1), 1, [1], [1])


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2147483648 does not fit into int32"):
        control_batches.end_transaction(AppendInfo(0, 0, 0), COMMIT, 1, 0, 1 << 31)
    with pytest.raises(ValueError, match="-2147483649 does not fit into int32"):
        control_batches.leader_change(AppendInfo(0, 0, 0), 1, [-(1 << 31) - 1], [])
    with pytest.raises(ValueError, match="65536 does not fit into uint16"):
        control_batches.kraft_voters(
            KRAFT, [replace(VOTER, endpoints=(Endpoint("C", "h", 65536),))]
        )
    with pytest.raises(ValueError, match="'1' is not a uuid"):
        control_batches.kraft_voters(KRAFT, [replace(VOTER, directory_id="1")])
