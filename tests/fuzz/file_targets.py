"""Targets that decode files next to the logs, and the messages of control and internal records.

A decoded value must be the same after it is encoded and decoded again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from klog.errors import CorruptRecordError, UnsupportedFormatError
from klog.logformat.broker_files import (
    checkpoint_files,
    file_names,
    java_properties,
    metadata_files,
)
from klog.logformat.indexes import offset_index as offsets
from klog.logformat.indexes import time_index as times
from klog.logformat.indexes import transaction_index as aborted
from klog.logformat.internal_topics import internal_records as internal
from klog.logformat.producers import control_records
from klog.logformat.producers import producer_snapshot as snapshot
from klog.logformat.protocol import primitive_types
from klog.logformat.protocol.message_schema import Schema
from tests.fuzz.seal import sealed_snapshot
from tests.support.broker_loader.index_updates import collect_aborted, truncate_aborted
from tests.support.broker_loader.producer_state_manager import ProducerStateManager

_LOG_BYTES = 1 << 20
_BASE, _END = 100, 1 << 40
_TABLES = (
    *(value for _, value in internal.GROUP_SCHEMAS.values()),
    internal.TRANSACTION_LOG_VALUE,
    internal.SUBSCRIPTION,
    internal.ASSIGNMENT,
)
_READS: tuple[Callable[[primitive_types.Reader], object], ...] = (
    lambda reader: reader.raw(reader.unsigned_varint()),
    lambda reader: reader.integer("int8"),
    lambda reader: reader.integer("int64"),
    lambda reader: reader.string(compact=True),
    lambda reader: reader.string(compact=False),
    lambda reader: reader.sized_bytes(compact=True),
    lambda reader: reader.sized_bytes(compact=False),
    lambda reader: reader.count(compact=True),
    lambda reader: reader.count(compact=False),
    lambda reader: reader.tags(),
    lambda reader: reader.uuid(),
)

Value = TypeVar("Value")


def offset_index(data: bytes) -> None:
    """Look up in an offset index."""
    index = offsets.parse_offset_index(data, _BASE, _LOG_BYTES)
    if index is not None:
        assert 0 <= index.position_before(_BASE + 5) < _LOG_BYTES
        assert data.startswith(offsets.encode_offset_index(index))
    with suppress(CorruptRecordError):
        offsets.check_offset_index(data, _BASE)
    opened = offsets.decode_offset_index(data, _BASE)
    assert len(opened) == len(data) // offsets.ENTRY.itemsize


def time_index(data: bytes) -> None:
    """Look up in a time index."""
    index = times.parse_time_index(data, _BASE)
    if index is not None:
        assert -1 <= index.entry_before(1000) < len(index.timestamps)
        assert data.startswith(times.encode_time_index(index))
    with suppress(CorruptRecordError):
        times.check_time_index(data, _BASE)
    opened = times.decode_time_index(data, _BASE)
    assert len(opened) == len(data) // times.ENTRY.itemsize


def transaction_index(data: bytes) -> None:
    """Read a transaction index."""
    index = aborted.parse_aborted(data, _BASE, _END)
    if index is not None:
        assert (index.first_offsets < index.last_offsets).all()
        assert aborted.encode_aborted(index) == data
    with suppress(CorruptRecordError, UnsupportedFormatError):
        aborted.check_aborted(data, _BASE)
        opened = aborted.decode_aborted(data)
        truncate_aborted(opened, _BASE)
        collected, _ = collect_aborted(opened, _BASE, _END)
        assert len(collected) <= len(opened) == len(data) // aborted.ENTRY.itemsize


def producer_snapshot(data: bytes) -> None:
    """Read a snapshot unchanged, and with a correct checksum."""
    snapshot.parse_open_transactions(data)
    data = sealed_snapshot(data)
    open_transactions = snapshot.parse_open_transactions(data)
    if open_transactions is not None:
        assert all(first >= 0 for first in open_transactions.values())
    entries = snapshot.decode_snapshot(data)
    assert snapshot.encode_snapshot(entries) == data
    saved = ProducerStateManager.from_snapshot(entries, _END).snapshot()
    assert ProducerStateManager.from_snapshot(saved, _END).snapshot() == saved


def text(data: bytes) -> None:
    """Read checkpoint files, and names of files and directories."""
    checkpoint_files.parse_offset_checkpoint(data)
    topic_id = metadata_files.parse_topic_id(data)
    assert topic_id is None or len(topic_id) == 22
    name = data.decode("utf-8", "surrogateescape")
    file_names.parse_partition_directory(name)
    file_names.parse_segment_file(name)
    file_names.parse_transitional_file(name)
    file_names.parse_snapshot_file(name)
    file_names.is_topic(name)


def state_files(data: bytes) -> None:
    """Read each small file of a directory, write what it says, and read it again."""
    _again(
        data,
        checkpoint_files.decode_offset_checkpoint,
        checkpoint_files.encode_offset_checkpoint,
    )
    _again(
        data,
        checkpoint_files.decode_epoch_checkpoint,
        lambda checkpoint: checkpoint_files.encode_epoch_checkpoint(checkpoint.entries),
    )
    _again(data, metadata_files.decode_partition_metadata, metadata_files.encode_partition_metadata)
    _again(data, metadata_files.decode_clean_shutdown, metadata_files.encode_clean_shutdown)
    _again(data, metadata_files.decode_meta_properties, metadata_files.encode_meta_properties)
    _again(data, java_properties.decode_properties, java_properties.encode_properties)


def _again(data: bytes, decode: Callable[[bytes], Value], encode: Callable[[Value], bytes]) -> None:
    with suppress(CorruptRecordError):
        value = decode(data)
        written = encode(value)
        try:
            assert decode(written) == value
        except CorruptRecordError as exc:
            raise AssertionError(f"{written!r} was written, and is refused") from exc


def control_record(data: bytes) -> None:
    """Read a control record, write it and read it again; byte 0 is the length of its key."""
    if not data:
        return
    key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
    record = control_records.decode_control_record(key, value)
    assert record.type == control_records.decode_control_type(key)
    if record.fields is not None:
        written = control_records.encode_control_value(record.type, record.fields)
        assert (
            control_records.decode_control_record(
                control_records.encode_control_key(record.type), written
            )
            == record
        )


def internal_record(data: bytes) -> None:
    """Read a record of an internal topic; byte 0 is the length of its key, 0 that of a value alone.

    Where its kind is known, what was read must be the same when it was written.
    """
    if not data:
        return
    if not data[0]:
        for table in _TABLES:
            with suppress(CorruptRecordError):
                _versioned(table, data[1:])
        return
    key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
    for read in (internal.decode_group_record, internal.decode_transaction_record):
        with suppress(CorruptRecordError):
            tombstone = read(key, None)
            assert (tombstone.value, tombstone.value_version) == (None, None)
            record = read(key, value)
            assert (record.name, record.key) == (tombstone.name, tombstone.key)


def _versioned(table: Schema, data: bytes) -> None:
    message = internal.decode_versioned(table, data)
    if message is not None:
        written = internal.encode_versioned(table, internal.decode_version(data), message)
        assert internal.decode_versioned(table, written) == message


def primitives(data: bytes) -> None:
    """Read values of the kinds that the input's bytes name, one after the other."""
    reader = primitive_types.Reader(data)
    while reader.remaining:
        before = reader.position
        _READS[reader.raw(1)[0] % len(_READS)](reader)
        assert before < reader.position <= len(data)
        assert reader.remaining == len(data) - reader.position
