"""`klog dump` of a `.log`: a line a batch, and with deep iteration a line a record.

The checks are those of kafka-dump-log (each batch's CRC, offsets without gaps, bytes after the last
batch) and that the records can be read at all. Gaps are notices, not findings: compaction leaves
them, and so do skipped markers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from typing import NamedTuple

import numpy as np

from klog.connector.segment_chunks import Chunk
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import has_valid_crc
from klog.logformat.batches.decode_records import decode_parts, decode_records
from klog.logformat.batches.legacy_wrappers import decode_messages
from klog.logformat.batches.sequence_numbers import increment_sequence
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.protocol.message_schema import Fields
from klog.tools.dump_lines import Printer
from klog.tools.dump_records import Batch, Row, Show, format_records, record_rows
from klog.tools.dump_walk import Fault, Rest, walk

COLUMNS = ("timestamp_ms", "key", "value", "headers")
_SNAPSHOT = re.compile(r"(?P<offset>[0-9]{20})-(?P<epoch>[0-9]{10})")
_OFFSET = re.compile(r"[0-9]{1,20}")
_BOOTSTRAP = "bootstrap"


class _Header(NamedTuple):
    """The header of one batch, in the order of `HEADER`."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int


@dataclass(frozen=True, slots=True)
class Log:
    """A log to dump: its `path`, the `stem` of its name before the dot, the open `file`."""

    path: str
    stem: str
    file: File


def dump_log(printer: Printer, log: Log, show: Show | None, max_bytes: int | None) -> None:
    """Print the batches of a log up to `max_bytes`, and with `show` their records."""
    _print_start(printer, log.stem)
    last_offset: int | None = None
    end = log.file.size_bytes if max_bytes is None else min(max_bytes, log.file.size_bytes)
    for part in walk(log.file, end):
        if isinstance(part, Fault):
            _report(printer, log.path, part.position, part.reason)
        elif isinstance(part, Rest):
            if max_bytes is None:
                _report_rest(printer, log, part)
        elif show is None:
            printer.lines("batch", _checked_lines(printer, log.path, part))
        else:
            last_offset = _dump_deep(printer, log.path, part, show, last_offset)


def is_offset(stem: str) -> bool:
    """Return whether the stem of a file's name is an offset: a number of at most 20 digits."""
    return _OFFSET.fullmatch(stem) is not None


def _print_start(printer: Printer, stem: str) -> None:
    snapshot = _SNAPSHOT.fullmatch(stem)
    if snapshot:
        offset, epoch = int(snapshot["offset"]), int(snapshot["epoch"])
        text = f"Snapshot end offset: {offset}, epoch: {epoch}"
        printer.message(text, "start", endOffset=offset, epoch=epoch)
    elif stem == _BOOTSTRAP:
        printer.message("KRaft bootstrap snapshot", "start")
    elif is_offset(stem):
        printer.message(f"Log starting offset: {int(stem)}", "start", startOffset=int(stem))


def _report(printer: Printer, path: str, position: int, reason: str) -> None:
    printer.finding("Corrupt batches", f"position {position}: {reason}", path, position=position)


def _report_rest(printer: Printer, log: Log, rest: Rest) -> None:
    name = log.path.rsplit("/", 1)[-1]
    text = f"Found {rest.size_bytes} invalid bytes at the end of {name}"
    printer.message(text, "rest", position=rest.position, size=rest.size_bytes)
    text = f"{rest.size_bytes} from position {rest.position} on"
    printer.finding("Invalid bytes at the end", text, log.path, position=rest.position)


def _checked_lines(printer: Printer, path: str, chunk: Chunk) -> Iterator[Fields]:
    """Yield the line of each batch, and report damaged batches."""
    for fields in _batch_lines(chunk):
        if not fields["isvalid"]:
            _report(printer, path, fields["position"], "its CRC does not fit")
        if fields["compresscodec"] not in CODEC_NAMES:
            _report(printer, path, fields["position"], "its compression codec does not exist")
        yield fields


def _dump_deep(
    printer: Printer, path: str, chunk: Chunk, show: Show, last_offset: int | None
) -> int | None:
    """Print batches with their records; return the offset of the last record."""

    def report(offset: int, reason: str) -> None:
        text = f"offset {offset}: {reason}"
        printer.finding("Records that cannot be decoded", text, path, offset=offset)

    lines = _checked_lines(printer, path, chunk)
    headers = chunk.batches.headers.tolist()
    printed, fields = -1, Fields()
    checks: Iterator[str] = repeat("")
    for number, rows in _decoded(chunk):
        if number > printed:
            printed, fields = number, next(lines)
            checks = _checks(chunk, number, fields)
            printer.line("batch", fields)
        if isinstance(rows, CorruptRecordError):
            text = f"its records cannot be read: {rows.reason}"
            _report(printer, path, fields["position"], text)
            continue
        batch = _record_batch(_Header(*headers[number]), fields)
        printer.records(format_records(rows, islice(checks, len(rows)), batch, show, report))
        last_offset = _report_gaps(printer, path, rows, last_offset)
    return last_offset


def _report_gaps(
    printer: Printer, path: str, rows: list[Row], last_offset: int | None
) -> int | None:
    for offset, *_ in rows:
        if last_offset is not None and offset != last_offset + 1:
            text = f"{last_offset} is followed by {offset}"
            gap = "Non-consecutive offsets"
            printer.notice(gap, text, path, first=last_offset, second=offset)
        last_offset = offset
    return last_offset


def _decoded(chunk: Chunk) -> Iterator[tuple[int, list[Row] | CorruptRecordError]]:
    """Yield the number of each batch, in order, with its records in parts, or the error.

    Runs of uncompressed batches are decoded together and split again. A compressed batch may be far
    larger than its bytes, so each is decoded alone.
    """
    headers = chunk.batches.headers
    single = (chunk.batches.attributes & v2.CODEC_MASK != 0) | (headers["magic"] < v2.MAGIC)
    single |= headers["count"] < 0
    begin = 0
    while begin < len(single):
        run = int(np.argmax(single[begin:])) if single[begin:].any() else len(single) - begin
        run_rows = _decode_run(chunk, begin, begin + run) if run > 1 else None
        if run_rows is not None:
            yield from run_rows
            begin += run
        else:
            for number in range(begin, begin + max(run, 1)):
                yield from _decode_single(chunk, number)
            begin += max(run, 1)


def _decode_run(chunk: Chunk, begin: int, end: int) -> Iterator[tuple[int, list[Row]]] | None:
    """Decode a run of batches at once; None if one of them is damaged."""
    batches = chunk.batches.slice(begin, end)
    try:
        rows = record_rows(decode_records(chunk.data, batches, COLUMNS))
    except CorruptRecordError:
        return None
    stops = np.cumsum(batches.headers["count"].astype(np.int64)).tolist()
    spans = zip([0, *stops[:-1]], stops, strict=True)
    return ((begin + i, rows[start:stop]) for i, (start, stop) in enumerate(spans))


def _decode_single(
    chunk: Chunk, number: int
) -> Iterator[tuple[int, list[Row] | CorruptRecordError]]:
    batches = chunk.batches.slice(number, number + 1)
    count = int(batches.headers["count"][0])
    if count < 0 and int(batches.headers["magic"][0]) >= 2:
        yield number, CorruptRecordError(f"a batch of {count} records")
        return
    try:
        for part in decode_parts(chunk.data, batches, COLUMNS):
            yield number, record_rows(part)
    except CorruptRecordError as exc:
        yield number, exc


def _checks(chunk: Chunk, number: int, fields: Fields) -> Iterator[str]:
    """Yield the text of each message's own checksum in v0 or v1; records of v2 have none.

    Checksums of messages in a wrapper have been checked by the time the wrapper is open.
    """
    batches = chunk.batches.slice(number, number + 1)
    if fields["magic"] >= v2.MAGIC:
        yield from repeat("")
    elif not batches.attributes[0] & v2.CODEC_MASK:
        valid = "true" if fields["isvalid"] else "false"
        yield f" isValid: {valid} crc: {fields['crc']}}}"
    else:
        for messages in decode_messages(chunk.data, batches, len(chunk.data)):
            yield from (f" isValid: true crc: {crc}}}" for crc in messages.checksums.tolist())


def _record_batch(header: _Header, fields: Fields) -> Batch:
    return Batch(
        magic=header.magic,
        base_offset=header.base_offset,
        base_sequence=header.base_sequence,
        timestamp_type=fields["timestampType"],
        is_control=header.magic >= v2.MAGIC and bool(header.attributes & v2.CONTROL),
    )


def _batch_lines(chunk: Chunk) -> Iterator[Fields]:
    batches = chunk.batches
    rows = zip(
        batches.starts.tolist(),
        batches.ends.tolist(),
        (batches.next_offsets - 1).tolist(),
        batches.headers.tolist(),
        strict=True,
    )
    for start, end, last_offset, row in rows:
        header = _Header(*row)
        codec = header.attributes & v2.CODEC_MASK
        kind = "LogAppendTime" if header.attributes & v2.LOG_APPEND_TIME else "CreateTime"
        crc, valid = _checksum(chunk.data[start:end], header.magic)
        yield {
            **(_producer_fields(header) if header.magic > 1 else {"offset": last_offset}),
            "position": start + chunk.position,
            "timestampType": kind if header.magic else "NoTimestampType",
            "maxTimestamp": header.max_timestamp if header.magic else -1,
            "size": end - start,
            "magic": header.magic,
            "compresscodec": CODEC_NAMES[codec]
            if codec < len(CODEC_NAMES)
            else f"unknown({codec})",
            "crc": crc,
            "isvalid": valid,
        }


def _producer_fields(header: _Header) -> Fields:
    attributes = header.attributes
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.base_offset + header.last_offset_delta,
        "count": header.records,
        "baseSequence": header.base_sequence,
        "lastSequence": increment_sequence(header.base_sequence, header.last_offset_delta),
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": bool(attributes & v2.TRANSACTIONAL),
        "isControl": bool(attributes & v2.CONTROL),
        "deleteHorizonMs": header.base_timestamp if attributes & v2.DELETE_HORIZON else None,
    }


def _checksum(batch: bytes, magic: int) -> tuple[int, bool]:
    """Return the stored checksum, which each legacy message has for itself, and whether it fits."""
    at = v2.MAGIC_AT + 1 if magic >= v2.MAGIC else v2.FRAME_BYTES
    stored = int(struct.unpack_from(">I", batch, at)[0])
    return stored, has_valid_crc(batch)
