"""Control batches: transaction markers, and what the controllers write into their own log.

    key     int16 version 0 | int16 type
    value   ABORT, COMMIT      int16 version 0 | int32 coordinator epoch
            LEADER_CHANGE      int16 version 0 | int32 leader | voters | granting voters | tags
            SNAPSHOT_HEADER    int16 version 0 | int64 last contained timestamp | tags
            SNAPSHOT_FOOTER    int16 version 0 | tags
            KRAFT_VERSION      int16 version 0 | int16 version of KRaft | tags

The rule: one record, never compressed, CreateTime; a marker carries the producer of its transaction
and no sequence (format notes 3; Kafka's `MemoryRecords.withEndTransactionMarker` and its kin).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from klog.logformat.control import ABORT, COMMIT
from klog.logformat.encode import Form, encode_one
from klog.logformat.records import Records

LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION = 2, 3, 4, 5

_NO_TAGS = b"\0"


@dataclass(frozen=True, slots=True)
class At:
    """Where and when a control batch is written."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


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
    return _control(at, form, kind, _packed(">hi", 0, coordinator_epoch))


def leader_change(
    at: At, leader_id: int, voters: Sequence[int], granting_voters: Sequence[int]
) -> bytes:
    """Make a LEADER_CHANGE batch; raises `ValueError` without a leader epoch."""
    if at.leader_epoch < 0:
        raise ValueError("a change of leader needs a leader epoch")
    value = _packed(">hi", 0, leader_id) + _voters(voters) + _voters(granting_voters) + _NO_TAGS
    return _control(at, _kraft(at), LEADER_CHANGE, value)


def snapshot_header(at: At, last_contained_timestamp_ms: int) -> bytes:
    """Make a SNAPSHOT_HEADER batch."""
    value = _packed(">hq", 0, last_contained_timestamp_ms) + _NO_TAGS
    return _control(at, _kraft(at), SNAPSHOT_HEADER, value)


def snapshot_footer(at: At) -> bytes:
    """Make a SNAPSHOT_FOOTER batch."""
    return _control(at, _kraft(at), SNAPSHOT_FOOTER, _packed(">h", 0) + _NO_TAGS)


def kraft_version(at: At, version: int) -> bytes:
    """Make a KRAFT_VERSION batch."""
    return _control(at, _kraft(at), KRAFT_VERSION, _packed(">hh", 0, version) + _NO_TAGS)


def _kraft(at: At) -> Form:
    return Form(leader_epoch=at.leader_epoch, control=True)


def _control(at: At, form: Form, kind: int, value: bytes) -> bytes:
    record = Records(
        timestamp_ms=pa.array([at.timestamp_ms], pa.int64()),
        key=pa.array([_packed(">hh", 0, kind)], pa.binary()),
        value=pa.array([value], pa.binary()),
        offset=at.offset,
    )
    return encode_one(record, form)


def _voters(ids: Sequence[int]) -> bytes:
    """Write a compact array of voters: the count and one as unsigned varint, ids with tags."""
    count, size = len(ids) + 1, b""
    while count >= 0x80:
        size += bytes([count & 0x7F | 0x80])
        count >>= 7
    return size + bytes([count]) + b"".join(_packed(">i", one) + _NO_TAGS for one in ids)


def _packed(layout: str, *numbers: int) -> bytes:
    try:
        return struct.pack(layout, *numbers)
    except struct.error as exc:
        raise ValueError(f"a control record cannot say {numbers[-1]}: {exc}") from exc
