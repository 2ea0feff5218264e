"""`klog dump` of a `.log`: a line a batch, and with deep iteration a line a record.

Checked is what kafka-dump-log checks (each batch's CRC, offsets without gaps, bytes behind the last
batch) and that the records can be read at all. Gaps are told and are no finding: compaction leaves
them, and so do markers that are left out.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klog.cli.dump_lines import Printer
from klog.cli.dump_records import Batch, Show, next_sequence, shown_records
from klog.cli.dump_walk import Fault, Rest, last_offsets, walk
from klog.connector.log.segment import Chunk
from klog.connector.store.files import File
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.columnar import Columns, decode, decode_parts
from klog.logformat.schema import Fields

COLUMNS = ("timestamp_ms", "key", "value", "headers")
DELETE_HORIZON = 0x40
_SNAPSHOT = re.compile(r"(?P<offset>[0-9]{20})-(?P<epoch>[0-9]{10})")
_BOOTSTRAP = "bootstrap"


@dataclass(frozen=True, slots=True)
class Log:
    """A log to dump: `path` as it was given, `stem` its name before the dot, its open `file`."""

    path: str
    stem: str
    file: File


def dump_log(printer: Printer, log: Log, show: Show | None, max_bytes: int | None) -> None:
    """Print the batches of a log up to `max_bytes`, and with `show` their records."""
    _say_start(printer, log.stem)
    last_offset: int | None = None
    end = log.file.size_bytes if max_bytes is None else min(max_bytes, log.file.size_bytes)
    for part in walk(log.file, end):
        if isinstance(part, Fault):
            _tell(printer, log.path, part.position, part.reason)
        elif isinstance(part, Rest):
            if max_bytes is None:
                _tell_rest(printer, log, part)
        elif show is None:
            printer.lines("batch", _checked(printer, log.path, part))
        else:
            last_offset = _dump_deep(printer, log.path, part, show, last_offset)


def _say_start(printer: Printer, stem: str) -> None:
    snapshot = _SNAPSHOT.fullmatch(stem)
    if snapshot:
        offset, epoch = int(snapshot["offset"]), int(snapshot["epoch"])
        text = f"Snapshot end offset: {offset}, epoch: {epoch}"
        printer.say(text, "start", endOffset=offset, epoch=epoch)
    elif stem == _BOOTSTRAP:
        printer.say("KRaft bootstrap snapshot", "start")
    elif stem.isdecimal():
        printer.say(f"Log starting offset: {int(stem)}", "start", startOffset=int(stem))


def _tell(printer: Printer, path: str, position: int, reason: str) -> None:
    printer.finding("Corrupt batches", f"position {position}: {reason}", path, position=position)


def _tell_rest(printer: Printer, log: Log, rest: Rest) -> None:
    name = log.path.rsplit("/", 1)[-1]
    text = f"Found {rest.size_bytes} invalid bytes at the end of {name}"
    printer.say(text, "rest", position=rest.position, size=rest.size_bytes)
    text = f"{rest.size_bytes} from position {rest.position} on"
    printer.finding("Invalid bytes at the end", text, log.path, position=rest.position)


def _checked(printer: Printer, path: str, chunk: Chunk) -> Iterator[Fields]:
    """Give the line of each batch, and tell of those that are damaged."""
    for number in range(len(chunk.batches)):
        fields = _batch_line(chunk, number)
        if not fields["isvalid"]:
            _tell(printer, path, fields["position"], "its CRC does not fit")
        if fields["compresscodec"] not in NAMES:
            _tell(printer, path, fields["position"], "its compression codec does not exist")
        yield fields


def _dump_deep(
    printer: Printer, path: str, chunk: Chunk, show: Show, last_offset: int | None
) -> int | None:
    """Print batches with their records; give the offset of the last one."""
    lines = _checked(printer, path, chunk)
    printed, fields = -1, Fields()
    for number, records in _decoded(chunk):
        if number > printed:
            printed, fields = number, next(lines)
            printer.line("batch", fields)
        position = int(chunk.batches.starts[number]) + chunk.position
        if isinstance(records, CorruptRecordError):
            _tell(printer, path, position, f"its records cannot be read: {records.reason}")
            continue

        def wrong(offset: int, reason: str) -> None:
            text = f"offset {offset}: {reason}"
            printer.finding("Records that cannot be decoded", text, path, offset=offset)

        batch = _record_batch(chunk, number, fields)
        printer.records(shown_records(records, batch, show, wrong))
        last_offset = _tell_gaps(printer, path, records, last_offset)
    return last_offset


def _tell_gaps(
    printer: Printer, path: str, records: Columns, last_offset: int | None
) -> int | None:
    offsets = records.offset
    if not len(offsets):
        return last_offset
    before = np.empty_like(offsets)
    before[1:] = offsets[:-1]
    before[0] = int(offsets[0]) - 1 if last_offset is None else last_offset
    for at in np.flatnonzero(offsets != before + 1).tolist():
        first, second = int(before[at]), int(offsets[at])
        text = f"{first} is followed by {second}"
        printer.notice("Non-consecutive offsets", text, path, first=first, second=second)
    return int(offsets[-1])


def _decoded(chunk: Chunk) -> Iterator[tuple[int, Columns | CorruptRecordError]]:
    """Decode the batches in order: each one's number with its records, in parts, or what is wrong.

    Runs of uncompressed batches are decoded together and parted again; a compressed batch may be
    far larger than its bytes, so that each is decoded alone.
    """
    headers = chunk.batches.headers
    single = (chunk.batches.attributes & v2.CODEC_MASK != 0) | (headers["magic"] != 2)
    single |= headers["count"] < 0
    begin = 0
    while begin < len(single):
        run = int(np.argmax(single[begin:])) if single[begin:].any() else len(single) - begin
        together = _together(chunk, begin, begin + run) if run > 1 else None
        if together is not None:
            yield from together
            begin += run
        else:
            for number in range(begin, begin + max(run, 1)):
                yield from _alone(chunk, number)
            begin += max(run, 1)


def _together(chunk: Chunk, begin: int, end: int) -> Iterator[tuple[int, Columns]] | None:
    """Decode a run of batches at once; None if one of them is damaged."""
    batches = chunk.batches.part(begin, end)
    try:
        records = decode(chunk.data, batches, COLUMNS)
    except CorruptRecordError:
        return None
    stops = np.cumsum(batches.headers["count"].astype(np.int64)).tolist()
    starts = [0, *stops[:-1]]
    return (
        (begin + i, records.part(start, stop))
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True))
    )


def _alone(chunk: Chunk, number: int) -> Iterator[tuple[int, Columns | CorruptRecordError]]:
    batches = chunk.batches.part(number, number + 1)
    count = int(batches.headers["count"][0])
    if count < 0 and int(batches.headers["magic"][0]) >= 2:
        yield number, CorruptRecordError(f"a batch of {count} records")
        return
    try:
        for part in decode_parts(chunk.data, batches, COLUMNS):
            yield number, part
    except CorruptRecordError as exc:
        yield number, exc


def _record_batch(chunk: Chunk, number: int, fields: Fields) -> Batch:
    header = chunk.batches.headers[number]
    legacy = int(header["magic"]) < 2
    plain = int(header["attributes"]) & v2.CODEC_MASK == 0
    valid = "true" if fields["isvalid"] else "false"
    return Batch(
        magic=int(header["magic"]),
        base_offset=int(header["base_offset"]),
        base_sequence=int(header["base_sequence"]),
        timestamp_type=fields["timestampType"],
        is_control=not legacy and bool(int(header["attributes"]) & v2.CONTROL),
        check=f" isValid: {valid} crc: {fields['crc']}}}" if legacy and plain else "",
    )


def _batch_line(chunk: Chunk, number: int) -> Fields:
    header = chunk.batches.headers[number]
    start, end = int(chunk.batches.starts[number]), int(chunk.batches.ends[number])
    magic, attributes = int(header["magic"]), int(header["attributes"])
    codec = attributes & v2.CODEC_MASK
    fields: Fields = {"offset": int(last_offsets(chunk.batches.part(number, number + 1))[0])}
    kind = "LogAppendTime" if attributes & v2.LOG_APPEND_TIME else "CreateTime"
    if magic > 1:
        fields = _producer_fields(header, attributes)
    bytes_ = chunk.data[start:end]
    crc, valid = _checksum(bytes_, magic)
    return {
        **fields,
        "position": start + chunk.position,
        "timestampType": kind if magic else "NoTimestampType",
        "maxTimestamp": int(header["max_timestamp"]) if magic else -1,
        "size": end - start,
        "magic": magic,
        "compresscodec": NAMES[codec] if codec < len(NAMES) else f"unknown({codec})",
        "crc": crc,
        "isvalid": valid,
    }


def _producer_fields(header: np.void, attributes: int) -> Fields:
    base, delta = int(header["base_offset"]), int(header["last_offset_delta"])
    sequence = int(header["base_sequence"])
    horizon = int(header["base_timestamp"]) if attributes & DELETE_HORIZON else None
    return {
        "baseOffset": base,
        "lastOffset": base + delta,
        "count": int(header["count"]),
        "baseSequence": sequence,
        "lastSequence": next_sequence(sequence, delta),
        "producerId": int(header["producer_id"]),
        "producerEpoch": int(header["producer_epoch"]),
        "partitionLeaderEpoch": int(header["leader_epoch"]),
        "isTransactional": bool(attributes & v2.TRANSACTIONAL),
        "isControl": bool(attributes & v2.CONTROL),
        "deleteHorizonMs": horizon,
    }


def _checksum(batch: bytes, magic: int) -> tuple[int, bool]:
    """Give the stored checksum and whether it fits; a legacy message's is a CRC-32 of its own."""
    if magic > 1:
        return int(struct.unpack_from(">I", batch, 17)[0]), v2.is_intact(batch)
    stored = int(struct.unpack_from(">I", batch, v2.FRAME_BYTES)[0])
    return stored, stored == zlib.crc32(batch[v2.MAGIC_AT :])
