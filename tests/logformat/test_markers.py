"""Control batches: those that Kafka's classes wrote, and what is refused."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.logformat import batch as v2
from klog.logformat import markers
from klog.logformat.columnar import decode
from klog.logformat.control import (
    ABORT,
    COMMIT,
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_HEADER,
    ControlRecord,
    read_control,
)
from klog.logformat.markers import At, Endpoint, Voter
from klog.logformat.schema import Fields
from klog.logformat.transactions import control_type
from klog.logformat.transactions import markers as found_markers
from tests.logformat.golden import CONTROLS

KRAFT = At(offset=0, timestamp_ms=1000, leader_epoch=1)
UUID = "ASNFZ4mrze_-3LqYdlQyEA"
VOTER = Voter(1, UUID, (Endpoint("C", "h", 9093),), 0, 1)
WRITTEN: dict[str, Callable[[], bytes]] = {
    "commit": lambda: markers.end_transaction(At(12, 1000, 2), COMMIT, 4000, 3, 9),
    "abort": lambda: markers.end_transaction(At(13, 1001, 2), ABORT, 4000, 3, 9),
    "leader_change": lambda: markers.leader_change(KRAFT, 1, [1, 2], [1]),
    "snapshot_header": lambda: markers.snapshot_header(KRAFT, 999),
    "snapshot_footer": lambda: markers.snapshot_footer(At(1, 1000, 1)),
    "kraft_version": lambda: markers.kraft_version(KRAFT, 1),
    "kraft_voters": lambda: markers.kraft_voters(KRAFT, [VOTER]),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_writes_what_kafkas_classes_wrote(name: str) -> None:
    assert WRITTEN[name]().hex() == CONTROLS[name][0].hex()


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_is_read_back(kind: int) -> None:
    made = markers.end_transaction(At(7, -1, -1), kind, 5, 0, 15)
    assert len(made) == 78
    assert found_markers(made, v2.scan(made, 0, len(made))) == [(7, 5, kind)]


def test_many_voters() -> None:
    """Their count takes two bytes from 127 on."""
    made = markers.leader_change(KRAFT, 1, range(200), [])
    assert control_type(made, 0, len(made)) == LEADER_CHANGE
    assert bytes.fromhex("0000 00000001 c901 00000000 00 00000001 00") in made


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
    """Give the control record of a batch as a reader decodes it."""
    columns = decode(data, v2.scan(data, 0, len(data)), ("key", "value"))
    assert columns.key is not None
    assert columns.value is not None
    return read_control(columns.key[0].as_py(), columns.value[0].as_py())


@given(VOTERS)
def test_any_voters_are_read_back(voters: list[Voter]) -> None:
    made = markers.kraft_voters(KRAFT, voters)
    assert control_type(made, 0, len(made)) == KRAFT_VOTERS
    found = record_of(made).fields
    assert found is not None
    assert [
        Voter(
            one["voterId"],
            one["voterDirectoryId"],
            tuple(Endpoint(**each) for each in one["endpoints"]),
            one["kRaftVersionFeature"]["minSupportedVersion"],
            one["kRaftVersionFeature"]["maxSupportedVersion"],
        )
        for one in found["voters"]
    ] == voters


@given(INT16, INT64, INT32, st.lists(INT32, max_size=3))
def test_what_controllers_write_is_read_back(
    version: int, timestamp: int, leader: int, voters: list[int]
) -> None:
    said = record_of(markers.kraft_version(KRAFT, version))
    assert said == ControlRecord(KRAFT_VERSION, {"version": 0, "kRaftVersion": version})
    said = record_of(markers.snapshot_header(KRAFT, timestamp))
    fields: Fields = {"version": 0, "lastContainedLogTimestamp": timestamp}
    assert said == ControlRecord(SNAPSHOT_HEADER, fields)
    named = [{"voterId": one} for one in voters]
    fields = {"version": 0, "leaderId": leader, "voters": named, "grantingVoters": named[:1]}
    said = record_of(markers.leader_change(KRAFT, leader, voters, voters[:1]))
    assert said == ControlRecord(LEADER_CHANGE, fields)


@pytest.mark.parametrize(
    ("kind", "producer", "epoch", "words"),
    [
        (LEADER_CHANGE, 4000, 3, "type 2 is no transaction marker"),
        (COMMIT, -1, 3, "needs a producer id"),
        (COMMIT, 4000, -1, "needs a producer epoch"),
    ],
)
def test_refuses_a_marker_of_no_transaction(
    kind: int, producer: int, epoch: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        markers.end_transaction(At(0, 0, 0), kind, producer, epoch, 0)


def test_a_change_of_leader_needs_a_leader_epoch() -> None:
    with pytest.raises(ValueError, match="leader epoch"):
        markers.leader_change(At(0, 0, -1), 1, [1], [1])


def test_refuses_numbers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="2147483648 is no int32"):
        markers.end_transaction(At(0, 0, 0), COMMIT, 1, 0, 1 << 31)
    with pytest.raises(ValueError, match="-2147483649 is no int32"):
        markers.leader_change(At(0, 0, 0), 1, [-(1 << 31) - 1], [])
    with pytest.raises(ValueError, match="65536 is no uint16"):
        markers.kraft_voters(KRAFT, [replace(VOTER, endpoints=(Endpoint("C", "h", 65536),))])
    with pytest.raises(ValueError, match="'1' is no uuid"):
        markers.kraft_voters(KRAFT, [replace(VOTER, directory_id="1")])
