"""Who committed and who aborted: control batches, open transactions, fates.

A transaction in a partition is the transactional batches of one producer id up to that id's next
marker; the marker's epoch may be one higher, so only the id counts. The marker decides: COMMIT or
ABORT. A marker without data closes nothing, an emptied control batch says nothing.
(docs/format.md, 6, 10 and 11, seen 15.)
"""

from __future__ import annotations

import struct
from bisect import bisect
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import control
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.varint import PADDING, VARLONG_BYTES, Bytes, read_varints

Mask = npt.NDArray[np.bool_]

_COUNT_AT = 57
_count = struct.Struct(">i").unpack_from


def is_control(batches: v2.Batches) -> Mask:
    """Tell which batches are control batches."""
    mask: Mask = (batches.attributes & v2.CONTROL) != 0
    return mask


def is_transactional_data(batches: v2.Batches) -> Mask:
    """Tell which batches are data of a transaction."""
    flags = batches.attributes & (v2.CONTROL | v2.TRANSACTIONAL)
    mask: Mask = flags == v2.TRANSACTIONAL
    return mask


def control_type(data: bytes, start: int, end: int) -> int | None:
    """Give the type of the control batch `data[start:end]`, None for one emptied by compaction.

    Types other than `ABORT` and `COMMIT` are the controllers' own, or unknown, and decide nothing.
    """
    if _count(data, start + _COUNT_AT)[0] == 0:
        return None
    record = _records(data, start, end)
    try:
        begin, behind, _ = _key(record)
        return control.read_type(record[begin:behind].tobytes())
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, start) from exc


def coordinator_epoch(data: bytes, start: int, end: int) -> int:
    """Give the coordinator epoch of the marker `data[start:end]`, whose type is known.

    Raises `CorruptRecordError` for a value that no marker can have.
    """
    record = _records(data, start, end)
    try:
        _, behind, stop = _key(record)
        size, at = read_varints(record, np.array([behind]))
        begin, end = int(at[0]), int((at + size)[0])
        if end < begin or end > stop:
            raise CorruptRecordError("a transaction marker without its value")
        return control.read_coordinator_epoch(record[begin:end].tobytes())
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, start) from exc


def _records(data: bytes, start: int, end: int) -> Bytes:
    return np.frombuffer(data[start + v2.HEADER_BYTES : end] + bytes(PADDING), np.uint8)


def _key(record: Bytes) -> tuple[int, int, int]:
    """Find the key of the first record: where it begins and ends, and where the record ends."""
    length, at = read_varints(record, np.zeros(1, np.int64))
    stop = min(int((at + length)[0]), len(record) - PADDING)
    _, at = read_varints(record, at + 1, VARLONG_BYTES)
    _, at = read_varints(record, at)
    key_length, at = read_varints(record, at)
    begin, behind = int(at[0]), int((at + key_length)[0])
    if behind < begin or behind > stop:
        raise CorruptRecordError("a control record without a key")
    return begin, behind, stop


def markers(data: bytes, batches: v2.Batches) -> list[tuple[int, int, int]]:
    """List the transaction markers among `batches`: (base offset, producer id, ABORT or COMMIT)."""
    control = np.flatnonzero(is_control(batches) & (batches.headers["producer_id"] >= 0))
    found = []
    for index in control.tolist():
        kind = control_type(data, int(batches.starts[index]), int(batches.ends[index]))
        if kind in (ABORT, COMMIT):
            header = batches.headers[index]
            found.append((int(header["base_offset"]), int(header["producer_id"]), int(kind)))
    return found


def follow(open_transactions: dict[int, int], data: bytes, batches: v2.Batches) -> dict[int, int]:
    """Carry the open transactions, producer id to first offset, over more batches of the log."""
    now = dict(open_transactions)
    closing = {offset for offset, _, _ in markers(data, batches)}
    relevant = batches.where((batches.attributes & v2.TRANSACTIONAL) != 0)
    control = is_control(relevant).tolist()
    offsets, producers = relevant.base_offsets.tolist(), relevant.headers["producer_id"].tolist()
    for offset, producer, is_marker in zip(offsets, producers, control, strict=True):
        if not is_marker:
            now.setdefault(producer, offset)
        elif offset in closing:
            now.pop(producer, None)
    return now


def undecided(batches: v2.Batches, decided: Iterable[tuple[int, int, int]]) -> set[int]:
    """Give the producer ids whose last transactional data no marker in `decided` follows."""
    data = batches.where(is_transactional_data(batches))
    last_marker = {producer: offset for offset, producer, _ in decided}
    offsets, producers = data.base_offsets.tolist(), data.headers["producer_id"].tolist()
    last_data = dict(zip(producers, offsets, strict=True))
    return {p for p, offset in last_data.items() if last_marker.get(p, -1) < offset}


def aborted(
    batches: v2.Batches, decided: Iterable[tuple[int, int, int]], later: Mapping[int, int]
) -> Mask:
    """Tell which data batches belong to an aborted transaction.

    `decided` are markers in the order of the log, `later` gives for a producer id the kind of its
    first marker behind them. Without any marker a transaction is taken as committed: the caller
    bounds what it reads by the last stable offset.
    """
    mask = np.zeros(len(batches), np.bool_)
    offsets_of: dict[int, list[int]] = {}
    kinds_of: dict[int, list[int]] = {}
    for offset, producer, kind in decided:
        offsets_of.setdefault(producer, []).append(offset)
        kinds_of.setdefault(producer, []).append(kind)
    bases, producers = batches.base_offsets, batches.headers["producer_id"]
    for index in np.flatnonzero(is_transactional_data(batches)).tolist():
        producer = int(producers[index])
        following = bisect(offsets_of.get(producer, []), int(bases[index]))
        kinds = kinds_of.get(producer, [])
        kind = kinds[following] if following < len(kinds) else later.get(producer, COMMIT)
        mask[index] = kind == ABORT
    return mask


def aborted_by_index(batches: v2.Batches, entries: Iterable[tuple[int, int, int]]) -> Mask:
    """Tell which data batches lie in an aborted transaction that a `.txnindex` names.

    `entries` are (producer id, first offset, offset of the marker).
    """
    mask = np.zeros(len(batches), np.bool_)
    producers, bases = batches.headers["producer_id"].astype(np.int64), batches.base_offsets
    data = is_transactional_data(batches)
    for producer, first, last in entries:
        mask |= data & (producers == producer) & (bases >= first) & (bases <= last)
    return mask
