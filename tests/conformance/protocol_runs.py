"""Run the tables of control records, internal topics and read_committed."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from klog.logformat.array_types import Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.batches.varint import PADDING, decode_varints
from klog.logformat.internal_topics import internal_records as topics
from klog.logformat.producers import control_records
from klog.logformat.producers import transaction_outcomes as tx
from klog.logformat.protocol.message_schema import Fields, Schema
from klog.logformat.protocol.primitive_types import Reader, unsigned_varint


def read_varint(data: bytes, max_bytes: int) -> tuple[int, int]:
    """Decode a zig-zag number: (value, bytes taken)."""
    padded = np.frombuffer(data + bytes(PADDING), np.uint8)
    values, ends = decode_varints(padded, np.zeros(1, np.int64), max_bytes)
    return int(values[0]), int(ends[0])


def unsigned_both_ways(data: bytes) -> tuple[int, bytes]:
    """Decode an unsigned varint, as Java's signed int shows it, and write it again."""
    value = Reader(data).unsigned_varint()
    return struct.unpack(">i", struct.pack(">I", value))[0], unsigned_varint(value)


def header_crc(data: bytes) -> int:
    """Read four bytes as a batch's header has them: big-endian and unsigned."""
    header = np.zeros(1, v2.HEADER).tobytes()
    at = 17
    return int(np.frombuffer(header[:at] + data + header[at + 4 :], v2.HEADER)["crc"][0])


def control_name(key: bytes) -> str:
    """Return the name of the type in a control record's key."""
    return control_records.control_type_name(control_records.decode_control_type(key))


def control_key_again(kind: int) -> int:
    """Write the key of a type and read it."""
    return control_records.decode_control_type(control_records.encode_control_key(kind))


def marker_again(kind: int, coordinator_epoch: int) -> tuple[int, int]:
    """Write a transaction marker and read it."""
    value = control_records.encode_control_value(kind, {"coordinatorEpoch": coordinator_epoch})
    return control_records.decode_end_transaction(control_records.encode_control_key(kind), value)


def both_ways(table: Schema, data: bytes) -> tuple[Fields | None, bytes]:
    """Decode a versioned value and encode it again in the same version."""
    fields = topics.decode_versioned(table, data)
    version = topics.decode_version(data)
    return fields, topics.encode_versioned(table, version, fields or {})


def transaction_state_again(fields: Fields, transaction_version: int) -> tuple[int, Fields | None]:
    """Write a transaction's state and read it: (version of the value, fields)."""
    data = topics.encode_transaction_state(fields, transaction_version)
    return topics.decode_version(data), topics.decode_versioned(topics.TRANSACTION_LOG_VALUE, data)


def transaction_record(key: bytes, value: bytes | None) -> tuple[str, Fields | None]:
    """Decode a record of `__transaction_state`: (name of its kind, value)."""
    record = topics.decode_transaction_record(key, value)
    return record.name, record.value


def scanned(log: bytes) -> list[int]:
    """Return the base offset of each complete batch."""
    offsets: list[int] = scan_batches(log, 0, len(log)).base_offsets.tolist()
    return offsets


def read_uncommitted(log: bytes) -> tuple[list[int], int]:
    """Return the offsets of all records, and a consumer's position after them."""
    batches = scan_batches(log, 0, len(log))
    return _offsets(log, batches, ~batches.is_control)


def read_committed(log: bytes) -> tuple[list[int], int]:
    """Return the offsets of committed records by the log's markers, and a consumer's position."""
    batches = scan_batches(log, 0, len(log))
    hidden = batches.is_control | tx.is_aborted(batches, tx.transaction_markers(log, batches), {})
    return _offsets(log, batches, ~hidden)


def read_committed_by_index(log: bytes, entries: Any) -> tuple[list[int], int]:
    """Read by aborted transactions (producer id, first offset, marker's offset)."""
    batches = scan_batches(log, 0, len(log))
    hidden = batches.is_control | tx.is_aborted_by_index(batches, entries)
    return _offsets(log, batches, ~hidden)


def _offsets(log: bytes, batches: v2.Batches, mask: Mask) -> tuple[list[int], int]:
    records = decode_records(log, batches.where(mask), ())
    return records.offset.tolist(), int(batches.next_offsets[-1])
