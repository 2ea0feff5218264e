"""Encode control batches: transaction markers, and what controllers write into their own log.

The rule: one record, never compressed, CreateTime. A marker has the producer of its transaction and
no sequence. (docs/format.md, 6; Kafka's `MemoryRecords.withEndTransactionMarker` and others.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.encode_batches import encode_batch
from klog.logformat.batches.records_to_write import Records
from klog.logformat.producers.control_records import (
    ABORT,
    COMMIT,
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    encode_control_key,
    encode_control_value,
)
from klog.logformat.protocol.message_schema import Fields


@dataclass(frozen=True, slots=True)
class AppendInfo:
    """Offset, time and leader epoch of an append."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener of a controller."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller that votes.

    Attributes:
        voter_id: Its node id.
        directory_id: A uuid as Kafka prints it.
        endpoints: Its listeners.
        min_kraft_version: The first KRaft version that it supports.
        max_kraft_version: The last one.
    """

    voter_id: int
    directory_id: str
    endpoints: tuple[Endpoint, ...]
    min_kraft_version: int
    max_kraft_version: int


def end_transaction(
    append: AppendInfo, kind: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> bytes:
    """Return the marker that ends a producer's transaction, 78 bytes.

    Args:
        append: Offset, time and leader epoch of the marker.
        kind: `ABORT` or `COMMIT`.
        producer_id: The producer of the transaction.
        producer_epoch: The producer's epoch.
        coordinator_epoch: Of the transaction coordinator.

    Raises:
        ValueError: For another kind, or without a producer id and epoch.
    """
    if kind not in (ABORT, COMMIT):
        raise ValueError(f"a transaction marker is ABORT (0) or COMMIT (1), not type {kind}")
    attributes = BatchAttributes(
        leader_epoch=append.leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    return _control_batch(append, attributes, kind, {"coordinatorEpoch": coordinator_epoch})


def leader_change(
    append: AppendInfo, leader_id: int, voters: Sequence[int], granting_voters: Sequence[int]
) -> bytes:
    """Return a LEADER_CHANGE batch.

    Args:
        append: Offset, time and leader epoch of the batch; the epoch is at least 0.
        leader_id: The node id of the new leader.
        voters: The node ids of all voters.
        granting_voters: The node ids of those that voted for it.

    Raises:
        ValueError: Without a leader epoch.
    """
    if append.leader_epoch < 0:
        raise ValueError("a LEADER_CHANGE batch needs a leader epoch")
    fields = {
        "version": 0,
        "leaderId": leader_id,
        "voters": [{"voterId": voter_id} for voter_id in voters],
        "grantingVoters": [{"voterId": voter_id} for voter_id in granting_voters],
    }
    return _control_batch(append, _kraft_attributes(append), LEADER_CHANGE, fields)


def snapshot_header(append: AppendInfo, last_contained_timestamp_ms: int) -> bytes:
    """Return a SNAPSHOT_HEADER batch.

    Args:
        append: Offset, time and leader epoch of the batch.
        last_contained_timestamp_ms: The largest timestamp of the log that the snapshot replaces.
    """
    fields = {"version": 0, "lastContainedLogTimestamp": last_contained_timestamp_ms}
    return _control_batch(append, _kraft_attributes(append), SNAPSHOT_HEADER, fields)


def snapshot_footer(append: AppendInfo) -> bytes:
    """Return a SNAPSHOT_FOOTER batch.

    Args:
        append: Offset, time and leader epoch of the batch.
    """
    return _control_batch(append, _kraft_attributes(append), SNAPSHOT_FOOTER, {"version": 0})


def kraft_version(append: AppendInfo, version: int) -> bytes:
    """Return a KRAFT_VERSION batch.

    Args:
        append: Offset, time and leader epoch of the batch.
        version: The KRaft version.
    """
    return _control_batch(
        append, _kraft_attributes(append), KRAFT_VERSION, {"version": 0, "kRaftVersion": version}
    )


def kraft_voters(append: AppendInfo, voters: Sequence[Voter]) -> bytes:
    """Return a KRAFT_VOTERS batch.

    Args:
        append: Offset, time and leader epoch of the batch.
        voters: All voters.

    Raises:
        ValueError: For a value that its field cannot hold.
    """
    fields = {"version": 0, "voters": [_voter_fields(voter) for voter in voters]}
    return _control_batch(append, _kraft_attributes(append), KRAFT_VOTERS, fields)


def _voter_fields(voter: Voter) -> Fields:
    return {
        "voterId": voter.voter_id,
        "voterDirectoryId": voter.directory_id,
        "endpoints": [
            {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}
            for endpoint in voter.endpoints
        ],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter.min_kraft_version,
            "maxSupportedVersion": voter.max_kraft_version,
        },
    }


def _kraft_attributes(append: AppendInfo) -> BatchAttributes:
    return BatchAttributes(leader_epoch=append.leader_epoch, is_control=True)


def _control_batch(
    append: AppendInfo, attributes: BatchAttributes, kind: int, fields: Fields
) -> bytes:
    record = Records(
        timestamp_ms=pa.array([append.timestamp_ms], pa.int64()),
        key=pa.array([encode_control_key(kind)], pa.binary()),
        value=pa.array([encode_control_value(kind, fields)], pa.binary()),
        offset=append.offset,
    )
    return encode_batch(record, attributes)
