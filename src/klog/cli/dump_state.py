"""`klog dump` of the small files: producer snapshots, checkpoints, `partition.metadata` and kin.

Snapshots read as kafka-dump-log prints them; it does not know the others. Each is read whole, which
is refused above a size that none of them reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from klog.cli.dump_lines import Printer
from klog.cli.dump_records import MAX_SEQUENCE
from klog.errors import CorruptRecordError
from klog.logformat.checkpoint import read_offset_checkpoint, read_topic_id
from klog.logformat.schema import Fields
from klog.logformat.snapshot import read_entries

MAX_FILE_BYTES = 256 << 20

Rows: TypeAlias = list[Fields]


def dump_snapshot(printer: Printer, path: str, data: bytes) -> None:
    """Print what a producer snapshot says of each producer."""
    entries = read_entries(data)
    if entries is None:
        printer.finding("Damaged snapshot", "its version, length or CRC does not fit", path)
        return
    printer.lines("producer", _producers(entries))


def _producers(entries: npt.NDArray[np.void]) -> Iterator[Fields]:
    for entry in entries:
        producer, epoch, last, offset, delta, timestamp, coordinator, first = entry.tolist()
        row: Fields = {
            "producerId": producer,
            "producerEpoch": epoch,
            "coordinatorEpoch": coordinator,
            "currentTxnFirstOffset": first if first >= 0 else None,
            "lastTimestamp": timestamp,
        }
        if offset >= 0:
            row |= {
                "firstSequence": _sequence_before(last, delta),
                "lastSequence": last,
                "lastOffset": offset,
                "offsetDelta": delta,
                "timestamp": timestamp,
            }
        yield row


def dump_text(printer: Printer, path: str, name: str, data: bytes) -> None:
    """Print a checkpoint, `partition.metadata` or `meta.properties`, a line for each thing."""
    try:
        rows = TEXT_FILES[name](data)
    except CorruptRecordError as exc:
        printer.finding("Malformed file", exc.reason, path)
        return
    printer.lines("entry", rows)


def _sequence_before(sequence: int, steps: int) -> int:
    """Step back from a sequence number; 0 follows 2147483647."""
    return (sequence - steps) & MAX_SEQUENCE if sequence >= 0 else sequence


def _offsets(data: bytes) -> Rows:
    found = read_offset_checkpoint(data)
    if found is None:
        raise CorruptRecordError(
            "not an offset checkpoint of version 0; a broker takes it as empty"
        )
    return [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in found.items()
    ]


def _leader_epochs(data: bytes) -> Rows:
    try:
        lines = data.decode("ascii").splitlines()
        if not lines:
            return []
        if int(lines[0]) != 0 or int(lines[1]) != len(lines) - 2:
            raise ValueError(lines[0])
        fields = [line.split() for line in lines[2:]]
        return [{"epoch": int(epoch), "startOffset": int(offset)} for epoch, offset in fields]
    except (ValueError, IndexError) as exc:
        raise CorruptRecordError("not a leader epoch checkpoint of version 0") from exc


def _partition_metadata(data: bytes) -> Rows:
    topic_id = read_topic_id(data)
    if topic_id is None:
        raise CorruptRecordError("it names no topic id")
    return [{"topic_id": topic_id}]


def _properties(data: bytes) -> Rows:
    lines = data.decode(errors="replace").splitlines()
    pairs = [line.partition("=") for line in lines if line.strip() and line.strip()[0] not in "#!"]
    found: Fields = {name.strip(): value.strip() for name, equals, value in pairs if equals}
    if "version" not in found:
        raise CorruptRecordError("it has no version")
    return [found]


TEXT_FILES: dict[str, Callable[[bytes], Rows]] = {
    "leader-epoch-checkpoint": _leader_epochs,
    "recovery-point-offset-checkpoint": _offsets,
    "log-start-offset-checkpoint": _offsets,
    "replication-offset-checkpoint": _offsets,
    "cleaner-offset-checkpoint": _offsets,
    "partition.metadata": _partition_metadata,
    "meta.properties": _properties,
}
"""The decoder of each file that is known by its whole name."""
