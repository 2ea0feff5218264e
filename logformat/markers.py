"""Control batches: transaction markers, and what the controllers write into their own log.

The rule: one record, never compressed, CreateTime; a marker carries the producer of its transaction
and no sequence (docs/format.md, 6; Kafka's `MemoryRecords.withEndTransactionMarker` and its kin).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.logformat.control import (
    ABORT,
    COMMIT,
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    write_key,
    write_value,
)
from klog.logformat.encode import encode_one
from klog.logformat.form import Form
from klog.logformat.records import Records
from klog.logformat.schema import Fields


@dataclass(frozen=True, slots=True)
class At:
    """Where and when a control batch is written."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a controller listens: the name of the listener, its host and port."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller that votes: its id and directory, and the KRaft versions that it can take.

    `directory_id` is a uuid as Kafka prints it.
    """

    voter_id: int
    directory_id: str
    endpoints: tuple[Endpoint, ...]
    min_kraft_version: int
    max_kraft_version: int


def end_transaction(
    at: At, kind: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> bytes:
    """Make the marker that ends a producer's transaction, `COMMIT` or `ABORT`; 78 bytes.

    Raises `ValueError` for another kind, or without a producer id and epoch.
    """
    if kind not in (ABORT, COMMIT):
        raise ValueError(f"type {kind} is no transaction marker: ABORT is 0, COMMIT is 1")
    form = Form(
        leader_epoch=at.leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    return _control(at, form, kind, {"coordinatorEpoch": coordinator_epoch})


def leader_change(
    at: At, leader_id: int, voters: Sequence[int], granting_voters: Sequence[int]
) -> bytes:
    """Make a LEADER_CHANGE batch; raises `ValueError` without a leader epoch."""
    if at.leader_epoch < 0:
        raise ValueError("a change of leader needs a leader epoch")
    fields = {
        "version": 0,
        "leaderId": leader_id,
        "voters": [{"voterId": one} for one in voters],
        "grantingVoters": [{"voterId": one} for one in granting_voters],
    }
    return _control(at, _kraft(at), LEADER_CHANGE, fields)


def snapshot_header(at: At, last_contained_timestamp_ms: int) -> bytes:
    """Make a SNAPSHOT_HEADER batch."""
    fields = {"version": 0, "lastContainedLogTimestamp": last_contained_timestamp_ms}
    return _control(at, _kraft(at), SNAPSHOT_HEADER, fields)


def snapshot_footer(at: At) -> bytes:
    """Make a SNAPSHOT_FOOTER batch."""
    return _control(at, _kraft(at), SNAPSHOT_FOOTER, {"version": 0})


def kraft_version(at: At, version: int) -> bytes:
    """Make a KRAFT_VERSION batch."""
    return _control(at, _kraft(at), KRAFT_VERSION, {"version": 0, "kRaftVersion": version})


def kraft_voters(at: At, voters: Sequence[Voter]) -> bytes:
    """Make a KRAFT_VOTERS batch; raises `ValueError` for what its fields cannot hold."""
    fields = {"version": 0, "voters": [_voter_fields(one) for one in voters]}
    return _control(at, _kraft(at), KRAFT_VOTERS, fields)


def _voter_fields(voter: Voter) -> Fields:
    return {
        "voterId": voter.voter_id,
        "voterDirectoryId": voter.directory_id,
        "endpoints": [
            {"name": one.name, "host": one.host, "port": one.port} for one in voter.endpoints
        ],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter.min_kraft_version,
            "maxSupportedVersion": voter.max_kraft_version,
        },
    }


def _kraft(at: At) -> Form:
    return Form(leader_epoch=at.leader_epoch, control=True)


def _control(at: At, form: Form, kind: int, fields: Fields) -> bytes:
    record = Records(
        timestamp_ms=pa.array([at.timestamp_ms], pa.int64()),
        key=pa.array([write_key(kind)], pa.binary()),
        value=pa.array([write_value(kind, fields)], pa.binary()),
        offset=at.offset,
    )
    return encode_one(record, form)
