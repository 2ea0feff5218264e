"""Who committed and who aborted: transaction markers and the data that they decide.

The rule (docs/format.md, 6, 10 and 11, seen 15): a transaction in a partition is the transactional
batches of one producer id up to the next marker of that id. The marker's epoch may be one higher
than that of the data, so only the id counts. The marker decides: COMMIT or ABORT. A marker without
data ends no transaction, and an emptied control batch has no outcome.
"""

from __future__ import annotations

import struct
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Bytes, Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.varint import PADDING, VARLONG_BYTES, decode_varints
from klog.logformat.producers import control_records
from klog.logformat.producers.control_records import ABORT, COMMIT

_COUNT_AT = 57
_count = struct.Struct(">i").unpack_from


class TransactionMarker(NamedTuple):
    """A marker, as the batches before it see it; `kind` is `ABORT` or `COMMIT`."""

    base_offset: int
    producer_id: int
    kind: int


def control_type(data: bytes, start: int, end: int) -> int | None:
    """Return the type of a control batch, None for one that a compaction emptied.

    Types other than `ABORT` and `COMMIT` are those of controllers, or unknown.

    Args:
        data: Bytes that the batch lies in.
        start: The position of its first byte.
        end: The position after its last byte.

    Raises:
        CorruptRecordError: For a malformed control record, with the position `start`.
    """
    if _count(data, start + _COUNT_AT)[0] == 0:
        return None
    record = _records(data, start, end)
    try:
        key_start, key_end, _ = _key_bounds(record)
        return control_records.decode_control_type(record[key_start:key_end].tobytes())
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, start) from exc


def coordinator_epoch(data: bytes, start: int, end: int) -> int:
    """Return the coordinator epoch of a marker.

    Args:
        data: Bytes that its batch lies in.
        start: The position of the first byte of the batch.
        end: The position after its last byte.

    Raises:
        CorruptRecordError: For a malformed value, with the position `start`.
    """
    record = _records(data, start, end)
    try:
        _, key_end, record_end = _key_bounds(record)
        size, at = decode_varints(record, np.array([key_end]))
        value_start, value_end = int(at[0]), int((at + size)[0])
        if value_end < value_start or value_end > record_end:
            raise CorruptRecordError("a transaction marker without its value")
        return control_records.decode_coordinator_epoch(record[value_start:value_end].tobytes())
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, start) from exc


def transaction_markers(data: bytes, batches: v2.Batches) -> list[TransactionMarker]:
    """Return the transaction markers among batches.

    Args:
        data: The bytes that `batches` lie in.
        batches: Any batches.

    Raises:
        CorruptRecordError: For a malformed control record, with the position in `data`.
    """
    numbers = np.flatnonzero(batches.is_control & (batches.headers["producer_id"] >= 0))
    markers = []
    for number in numbers.tolist():
        kind = control_type(data, int(batches.starts[number]), int(batches.ends[number]))
        if kind in (ABORT, COMMIT):
            header = batches.headers[number]
            producer_id = int(header["producer_id"])
            markers.append(TransactionMarker(int(header["base_offset"]), producer_id, int(kind)))
    return markers


def replay_transactions(
    open_transactions: dict[int, int], data: bytes, batches: v2.Batches
) -> dict[int, int]:
    """Return the open transactions after more batches of the log.

    Args:
        open_transactions: Producer id to first offset of those before; not changed.
        data: The bytes that `batches` lie in.
        batches: The next batches.

    Raises:
        CorruptRecordError: For a malformed control record, with the position in `data`.
    """
    still_open = dict(open_transactions)
    marker_offsets = {marker.base_offset for marker in transaction_markers(data, batches)}
    relevant = batches.where((batches.attributes & v2.TRANSACTIONAL) != 0)
    columns = (
        relevant.base_offsets.tolist(),
        relevant.headers["producer_id"].tolist(),
        relevant.is_control.tolist(),
    )
    for offset, producer_id, is_control_batch in zip(*columns, strict=True):
        if not is_control_batch:
            still_open.setdefault(producer_id, offset)
        elif offset in marker_offsets:
            still_open.pop(producer_id, None)
    return still_open


def undecided_producers(batches: v2.Batches, markers: Iterable[TransactionMarker]) -> set[int]:
    """Return the producer ids whose last transactional data no marker follows.

    Args:
        batches: Any batches, in the order of the log.
        markers: Those among them.
    """
    data = batches.where(batches.is_transactional_data)
    last_markers = {marker.producer_id: marker.base_offset for marker in markers}
    offsets, producer_ids = data.base_offsets.tolist(), data.headers["producer_id"].tolist()
    last_data = dict(zip(producer_ids, offsets, strict=True))
    return {
        producer_id
        for producer_id, offset in last_data.items()
        if last_markers.get(producer_id, -1) < offset
    }


class TransactionOutcomes:
    """The outcomes of a log's transactions, by the markers of the log or of a part of it."""

    def __init__(self, markers: Iterable[TransactionMarker]) -> None:
        """Take the markers.

        Args:
            markers: In the order of the log.
        """
        self._offsets: dict[int, list[int]] = {}
        self._kinds: dict[int, list[int]] = {}
        for marker in markers:
            self._offsets.setdefault(marker.producer_id, []).append(marker.base_offset)
            self._kinds.setdefault(marker.producer_id, []).append(marker.kind)

    def is_aborted(self, batches: v2.Batches, later_markers: Mapping[int, int]) -> Mask:
        """Return which batches are data of an aborted transaction.

        A transaction without a marker counts as committed: the caller reads only up to the last
        stable offset.

        Args:
            batches: Any batches of the log.
            later_markers: Producer id to the type of its first marker after those known here.
        """
        mask = np.zeros(len(batches), np.bool_)
        base_offsets, producer_ids = batches.base_offsets, batches.headers["producer_id"]
        for number in np.flatnonzero(batches.is_transactional_data).tolist():
            producer_id = int(producer_ids[number])
            next_marker = bisect(self._offsets.get(producer_id, []), int(base_offsets[number]))
            kinds = self._kinds.get(producer_id, [])
            if next_marker < len(kinds):
                mask[number] = kinds[next_marker] == ABORT
            else:
                mask[number] = later_markers.get(producer_id, COMMIT) == ABORT
        return mask


def is_aborted(
    batches: v2.Batches, markers: Iterable[TransactionMarker], later_markers: Mapping[int, int]
) -> Mask:
    """Return which batches are data of an aborted transaction; see `TransactionOutcomes`.

    Args:
        batches: Any batches of the log.
        markers: In the order of the log.
        later_markers: Producer id to the type of its first marker after `markers`.
    """
    return TransactionOutcomes(markers).is_aborted(batches, later_markers)


def aborted_rows(entries: Sequence[Sequence[int]]) -> Longs:
    """Return aborted transactions as an array, to pass to `is_aborted_by_index` many times.

    Args:
        entries: (Producer id, first offset, offset of the marker).
    """
    return np.array(entries, np.int64).reshape(-1, 3)


def is_aborted_by_index(batches: v2.Batches, entries: Sequence[Sequence[int]] | Longs) -> Mask:
    """Return which batches are data of an aborted transaction that an index or a commit names.

    Args:
        batches: Any batches.
        entries: (Producer id, first offset, offset of the marker), as `aborted_rows` or not.
    """
    rows = entries if isinstance(entries, np.ndarray) else aborted_rows(entries)
    mask = batches.is_transactional_data
    if not len(rows) or not mask.any():
        return np.zeros(len(batches), np.bool_)
    data = batches.where(mask)
    producer_ids, offsets = data.headers["producer_id"].astype(np.int64), data.base_offsets
    rows = rows[(rows[:, 1] <= offsets.max()) & (rows[:, 2] >= offsets.min())]
    if not len(rows):
        return np.zeros(len(batches), np.bool_)
    # Ranks stand for numbers, so that producer id and offset make one number to search for.
    _, producer_ranks = np.unique(np.append(rows[:, 0], producer_ids), return_inverse=True)
    values, offset_ranks = np.unique(
        np.concatenate([rows[:, 1], rows[:, 2], offsets]), return_inverse=True
    )
    count, width = len(rows), len(values)
    first_keys = producer_ranks[:count] * width + offset_ranks[:count]
    marker_keys = producer_ranks[:count] * width + offset_ranks[count : 2 * count]
    order = np.argsort(first_keys, kind="stable")
    max_marker_keys = np.maximum.accumulate(marker_keys[order])
    keys = producer_ranks[count:] * width + offset_ranks[2 * count :]
    rows_before = np.searchsorted(first_keys[order], keys, "right") - 1
    mask[mask] = (rows_before >= 0) & (max_marker_keys[np.maximum(rows_before, 0)] >= keys)
    return mask


def _records(data: bytes, start: int, end: int) -> Bytes:
    return np.frombuffer(data[start + v2.HEADER_BYTES : end] + bytes(PADDING), np.uint8)


def _key_bounds(record: Bytes) -> tuple[int, int, int]:
    """Return where the key of the first record starts and ends, and where the record ends."""
    length, at = decode_varints(record, np.zeros(1, np.int64))
    record_end = min(int((at + length)[0]), len(record) - PADDING)
    _, at = decode_varints(record, at + 1, VARLONG_BYTES)
    _, at = decode_varints(record, at)
    key_length, at = decode_varints(record, at)
    key_start, key_end = int(at[0]), int((at + key_length)[0])
    if key_end < key_start or key_end > record_end:
        raise CorruptRecordError("a control record without a key")
    return key_start, key_end, record_end
