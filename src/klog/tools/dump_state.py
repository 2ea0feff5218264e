"""`klog dump` of the small files: producer snapshots, checkpoints, `partition.metadata` and others.

Snapshots read as kafka-dump-log prints them; it does not know the others. Each is read whole; a
file above a size that no broker writes is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from klog.errors import CorruptRecordError
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.broker_files.checkpoint_files import (
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
)
from klog.logformat.broker_files.java_properties import decode_properties
from klog.logformat.broker_files.metadata_files import (
    decode_clean_shutdown,
    decode_meta_properties,
    decode_partition_metadata,
)
from klog.logformat.producers.producer_snapshot import ProducerEntry, decode_snapshot
from klog.logformat.protocol.message_schema import Fields
from klog.tools.dump_lines import Printer

Rows: TypeAlias = list[Fields]


def dump_snapshot(printer: Printer, path: str, data: bytes) -> None:
    """Print the entry of each producer in a producer snapshot."""
    try:
        entries = decode_snapshot(data)
    except CorruptRecordError as exc:
        printer.finding("Damaged snapshot", exc.reason, path)
        return
    printer.lines("producer", map(_producer, entries))


def _producer(entry: ProducerEntry) -> Fields:
    first = entry.transaction_first_offset
    row: Fields = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": first if first >= 0 else None,
        "lastTimestamp": entry.timestamp_ms,
    }
    if entry.last_offset >= 0:
        row |= {
            "firstSequence": increment_sequence(entry.last_sequence, -entry.offset_delta),
            "lastSequence": entry.last_sequence,
            "lastOffset": entry.last_offset,
            "offsetDelta": entry.offset_delta,
            "timestamp": entry.timestamp_ms,
        }
    return row


def dump_text(printer: Printer, path: str, name: str, data: bytes) -> None:
    """Print a checkpoint, or another file of a fixed name, a line for each entry."""
    try:
        rows = TEXT_FILES[name](data)
    except CorruptRecordError as exc:
        printer.finding("Malformed file", exc.reason, path)
        return
    printer.lines("entry", rows)


def _offsets(data: bytes) -> Rows:
    offsets = decode_offset_checkpoint(data)
    return [
        {"topic": name.topic, "partition": name.partition, "offset": offset}
        for name, offset in offsets.items()
    ]


def _leader_epochs(data: bytes) -> Rows:
    entries = decode_epoch_checkpoint(data).entries
    return [{"epoch": entry.epoch, "startOffset": entry.start_offset} for entry in entries]


def _partition_metadata(data: bytes) -> Rows:
    return [{"topic_id": decode_partition_metadata(data)}]


def _clean_shutdown(data: bytes) -> Rows:
    # Older brokers (2.8) leave an empty file: only its existence counts.
    return [{"brokerEpoch": decode_clean_shutdown(data)}] if data else []


def _properties(data: bytes) -> Rows:
    decode_meta_properties(data)
    return [dict(decode_properties(data))]


TEXT_FILES: dict[str, Callable[[bytes], Rows]] = {
    "leader-epoch-checkpoint": _leader_epochs,
    "recovery-point-offset-checkpoint": _offsets,
    "log-start-offset-checkpoint": _offsets,
    "replication-offset-checkpoint": _offsets,
    "cleaner-offset-checkpoint": _offsets,
    "partition.metadata": _partition_metadata,
    "meta.properties": _properties,
    ".kafka_cleanshutdown": _clean_shutdown,
}
"""The decoder of each file with a fixed name."""
