"""Who committed and who aborted: control batches, open transactions, fates.

A transaction in a partition is the transactional batches of one producer id up to that id's next
marker; the marker's epoch may be one higher, so only the id counts. The marker decides: COMMIT or
ABORT. A marker without data closes nothing, an emptied control batch says nothing.
(docs/format.md, 6, 10 and 11, seen 15.)
"""

from __future__ import annotations

import struct
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import control
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.index import Longs, Mask
from klog.logformat.varint import PADDING, VARLONG_BYTES, Bytes, read_varints

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


class Decisions:
    """The markers of a log, or of a part of it, by which its transactions are decided."""

    def __init__(self, decided: Iterable[tuple[int, int, int]]) -> None:
        """Take markers as `markers` gives them, in the order of the log."""
        self._offsets: dict[int, list[int]] = {}
        self._kinds: dict[int, list[int]] = {}
        for offset, producer, kind in decided:
            self._offsets.setdefault(producer, []).append(offset)
            self._kinds.setdefault(producer, []).append(kind)

    def aborted(self, batches: v2.Batches, later: Mapping[int, int]) -> Mask:
        """Tell which data batches belong to an aborted transaction.

        `later` gives for a producer id the kind of its first marker behind those known here.
        Without any marker a transaction is taken as committed: the caller bounds what it reads by
        the last stable offset.
        """
        mask = np.zeros(len(batches), np.bool_)
        bases, producers = batches.base_offsets, batches.headers["producer_id"]
        for index in np.flatnonzero(is_transactional_data(batches)).tolist():
            producer = int(producers[index])
            following = bisect(self._offsets.get(producer, []), int(bases[index]))
            kinds = self._kinds.get(producer, [])
            kind = kinds[following] if following < len(kinds) else later.get(producer, COMMIT)
            mask[index] = kind == ABORT
        return mask


def aborted(
    batches: v2.Batches, decided: Iterable[tuple[int, int, int]], later: Mapping[int, int]
) -> Mask:
    """Tell which data batches belong to an aborted transaction; see `Decisions`."""
    return Decisions(decided).aborted(batches, later)


def rows_of(entries: Sequence[Sequence[int]]) -> Longs:
    """Give aborted transactions as `aborted_by_index` takes them, once for many batches."""
    return np.array(entries, np.int64).reshape(-1, 3)


def aborted_by_index(batches: v2.Batches, entries: Sequence[Sequence[int]] | Longs) -> Mask:
    """Tell which data batches lie in an aborted transaction that a `.txnindex` or a commit names.

    `entries` are (producer id, first offset, offset of the marker), or the same as `rows_of` it.
    """
    rows = entries if isinstance(entries, np.ndarray) else rows_of(entries)
    mask = is_transactional_data(batches)
    if not len(rows) or not mask.any():
        return np.zeros(len(batches), np.bool_)
    data = batches.where(mask)
    ids, offsets = data.headers["producer_id"].astype(np.int64), data.base_offsets
    rows = rows[(rows[:, 1] <= offsets.max()) & (rows[:, 2] >= offsets.min())]
    if not len(rows):
        return np.zeros(len(batches), np.bool_)
    # Ranks instead of numbers, so that producer and offset are one key to be searched for.
    _, of_ids = np.unique(np.append(rows[:, 0], ids), return_inverse=True)
    values, ranks = np.unique(
        np.concatenate([rows[:, 1], rows[:, 2], offsets]), return_inverse=True
    )
    count, width = len(rows), len(values)
    firsts = of_ids[:count] * width + ranks[:count]
    order = np.argsort(firsts, kind="stable")
    lasts = np.maximum.accumulate((of_ids[:count] * width + ranks[count : 2 * count])[order])
    keys = of_ids[count:] * width + ranks[2 * count :]
    before = np.searchsorted(firsts[order], keys, "right") - 1
    mask[mask] = (before >= 0) & (lasts[np.maximum(before, 0)] >= keys)
    return mask
