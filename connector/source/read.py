"""Read slices: CRC first, then decompress within limits, then Arrow, a few megabytes at a time.

A slice is read from the very file that was planned. A broker that has cleaned or expired it
meanwhile keeps the old bytes as `.deleted` for a while, and they are read from there; else the
slice is planned again by offset from what the directory holds now. Damage in a broker's file is an
error only if a new plan has the same file: an inode number may belong to another file by now.
Records that no file holds any more are data loss: an error, or a warning where `failOnDataLoss` is
false.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import google_crc32c
import numpy as np
import pyarrow as pa

from klog.connector.log.raw import read_topic_id_of
from klog.connector.log.root import back_off
from klog.connector.log.segment import Chunk, chunks, first_offset, located
from klog.connector.source.fates import Fates
from klog.connector.source.indexed import narrowed
from klog.connector.source.rows import decoded, rows, schema
from klog.connector.source.slices import ChangedError, Slice, expanded
from klog.connector.store.files import File, Store
from klog.connector.store.schemes import store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CorruptRecordError, DataLossError, without_passwords
from klog.logformat import batch as v2
from klog.logformat import transactions
from klog.logformat.columnar import Columns, decode_parts

_log = logging.getLogger(__name__)

Replan: TypeAlias = Callable[[Slice], tuple[int, list[Slice]]]
"""Plans a slice's offsets anew from what its directory holds now: (log start, slices)."""


MAX_ROWS = 1 << 20
"""Rows of one Arrow batch: as many topic names stay within Arrow's 32-bit offsets."""
READ_AGAIN = "read again from earliest, or set failOnDataLoss=false to go on with what is left"
"""What a batch's user does where records were deleted while they were read."""
TRIES = 8
"""A slice may change so often in a row without a record read from it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How slices are read: which columns, from what stores, and what if bytes have gone.

    `after_loss` is what an error tells the user to do where records were deleted meanwhile.
    """

    columns: Sequence[str]
    replan: Replan
    fail_on_data_loss: bool = True
    storage: Storage = NOTHING_GIVEN
    after_loss: str = READ_AGAIN

    def read(self, task: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Give the records of a task's slices and runs in order.

        Raises `CorruptFileError` and `DataLossError`.
        """
        wanted = schema(self.columns)
        names = decoded(self.columns)
        for piece in expanded(task):
            for columns in self._survive(piece, names):
                for begin in range(0, len(columns.offset), MAX_ROWS):
                    some = columns.part(begin, begin + MAX_ROWS)
                    yield rows(piece["topic"], piece["partition"], some, wanted)

    def _survive(self, piece: Slice, names: set[str]) -> Iterator[Columns]:
        """Read a slice; where its file has changed, read on from a new plan."""
        left, tries = [piece], 0
        while left:
            given = left[0]["start_offset"]
            try:
                for columns, reached in _read_slice(left[0], names, self.storage):
                    yield columns
                    given, tries = reached, 0
                del left[0]
            except (ChangedError, FileNotFoundError, CorruptRecordError) as exc:
                tries += 1
                if isinstance(exc, CorruptRecordError) and self._is_planned_again(left[0]):
                    raise
                if tries == TRIES:
                    raise _unsettled(left[0], exc) from exc
                said = without_passwords(f"{piece['path']} changed while it was read ({exc})")
                _log.info("%s; planning anew", said)
                if tries > 1:
                    back_off(tries)
                rest = {"start_offset": max(given, left[0]["start_offset"])}
                rest["end_offset"] = piece["end_offset"]
                log_start, again = self.replan(left[0] | rest)
                self._check_loss(left[0] | rest, log_start)
                _check_missing(left[0], again, exc)
                left = again

    def _is_planned_again(self, piece: Slice) -> bool:
        """Return whether a new plan of a slice has the same file."""
        if piece["file_bytes"] >= 0:
            return True
        file = ("path", "identity", "stamp")
        _, again = self.replan(piece)
        return any(all(one[name] == piece[name] for name in file) for one in again)

    def _check_loss(self, left: Slice, log_start: int) -> None:
        behind = min(log_start, left["end_offset"])
        if behind <= left["start_offset"]:
            return
        name = f"{left['topic']}-{left['partition']}"
        lost = f"{name}: offsets {left['start_offset']} to {behind - 1}"
        if self.fail_on_data_loss:
            raise DataLossError(
                f"{lost} were deleted while they were read ({left['path']}); {self.after_loss}"
            )
        _log.warning("%s were deleted while they were read; failOnDataLoss=false, going on", lost)


def _read_slice(piece: Slice, names: set[str], storage: Storage) -> Iterator[tuple[Columns, int]]:
    """Give decoded columns and the offset reached, chunk by chunk."""
    store, _ = store_for(piece["root"], storage)
    file = _open(store, piece)
    shift, piece = piece["offset_shift"], as_in_file(piece)
    behind, crc = piece["base_offset"], 0
    try:
        if piece["file_bytes"] >= 0:
            piece = narrowed(store, piece)
        fates = Fates(piece, store, file)
        for chunk in _chunks(file, piece):
            if piece["crc32c"] >= 0:
                crc = google_crc32c.extend(crc, chunk.data[: int(chunk.batches.ends[-1])])
                _check_crc(piece, chunk, crc)
            within = _within(chunk.batches, piece)
            with located(chunk.position):
                v2.check_crcs(chunk.data, within)
            wanted = _wanted(within, chunk, fates)
            if not len(wanted):
                continue
            parts = decode_parts(chunk.data, wanted, names, first_offset=behind)
            while (columns := _next(parts, chunk.position)) is not None:
                behind = int(columns.offset[-1]) + 1
                yield _shifted(_bounded(columns, piece), shift), behind + shift
    except CorruptRecordError as exc:
        if piece["file_bytes"] >= 0 and (piece["begin"] or piece["end"] < piece["file_bytes"]):
            raise ChangedError(f"cut by its index, {exc}") from exc
        raise exc.in_file(piece["path"], _name(piece)) from exc
    finally:
        file.close()


def as_in_file(piece: Slice) -> Slice:
    """Give a slice whose offsets wanted are as the file says them, too."""
    shift = piece["offset_shift"]
    if not shift:
        return piece
    wanted = {name: piece[name] - shift for name in ("start_offset", "end_offset")}
    return piece | wanted


def _shifted(columns: Columns, shift: int) -> Columns:
    return replace(columns, offset=columns.offset + shift) if shift else columns


def _check_missing(piece: Slice, again: list[Slice], exc: Exception) -> None:
    """Refuse to look again for a file that is missing and that the newest commit still names."""
    is_committed = piece["file_bytes"] >= 0 and isinstance(exc, FileNotFoundError)
    if is_committed and any(one["path"] == piece["path"] for one in again):
        reason = "the file is missing or was replaced, and the topic's log still names it"
        raise CorruptRecordError(reason).in_file(piece["path"], _name(piece)) from exc


def _check_crc(piece: Slice, chunk: Chunk, crc: int) -> None:
    """Compare a whole file's CRC with its commit's, once its last batch is read."""
    if chunk.end == piece["end"] and crc != piece["crc32c"]:
        raise CorruptRecordError(
            f"its CRC-32C is {crc:08x}, its commit says {piece['crc32c']:08x}: it is not the file "
            "that was committed"
        )


def _name(piece: Slice) -> str:
    return f"{piece['topic']}-{piece['partition']}"


def _unsettled(piece: Slice, exc: Exception) -> CorruptRecordError:
    reason = f"the bytes are not those that were planned, {TRIES} times over ({exc})"
    return CorruptRecordError(reason, piece["begin"]).in_file(piece["path"], _name(piece))


def _open(store: Store, piece: Slice) -> File:
    """Open the file that was planned, a broker's under its name or behind `.deleted`."""
    path = piece["path"]
    if piece["file_bytes"] >= 0:
        return _open_committed(store, piece)
    if read_topic_id_of(store, path.rpartition("/")[0]) != piece["topic_id"]:
        raise ChangedError("the topic was deleted")
    for candidate in (path, f"{path}.deleted"):
        try:
            file = store.open(candidate)
        except FileNotFoundError:
            continue
        same = file.identity == piece["identity"] and piece["stamp"] in ("", file.stamp)
        if same and file.size_bytes >= piece["end"]:
            return file
        file.close()
    raise ChangedError(f"{path} is another file now")


def _open_committed(store: Store, piece: Slice) -> File:
    size_bytes = piece["file_bytes"] + piece["torn_bytes"]
    file = store.open(piece["path"], size_bytes)
    if file.size_bytes == size_bytes:
        return file
    file.close()
    reason = f"it has {file.size_bytes} bytes, its commit says {size_bytes}"
    raise CorruptRecordError(reason, min(file.size_bytes, size_bytes)).in_file(
        piece["path"], _name(piece)
    )


def _chunks(file: File, piece: Slice) -> Iterator[Chunk]:
    """Read a slice's whole batches; what does not begin or end as planned has changed."""
    position, expected = piece["begin"], piece["first_offset"]
    for chunk in chunks(file, position, piece["end"], piece["base_offset"]):
        if expected >= 0 and (first := _first_offset(chunk)) != expected:
            raise ChangedError(f"offset {first} where {expected} was planned")
        is_cut = piece["file_bytes"] >= 0 and position == piece["begin"] > 0
        if is_cut and int(chunk.batches.base_offsets[0]) >= piece["start_offset"]:
            raise ChangedError("its index leads behind the offset wanted")
        expected, position = -1, chunk.end
        last = int(chunk.batches.next_offsets[-1])
        if last > piece["limit_offset"]:
            raise CorruptRecordError(
                f"offset {last - 1} lies behind the segment's last, {piece['limit_offset'] - 1}",
                chunk.position + int(chunk.batches.starts[-1]),
            )
        yield chunk
        if last >= piece["end_offset"]:
            return
    if piece["end"] < piece["file_bytes"]:
        raise ChangedError("its index leads before the end of what is wanted")
    if position < piece["end"]:
        raise CorruptRecordError("the file ends in the middle of a batch", position)


def _first_offset(chunk: Chunk) -> int:
    """Give the first offset of a chunk, as the plan did: a wrapper is opened for it."""
    one = chunk.batches.part(0, 1)
    if not one.is_legacy[0]:
        return int(one.base_offsets[0])
    with located(chunk.position):
        return first_offset(chunk.data[int(one.starts[0]) : int(one.ends[0])])


def _within(batches: v2.Batches, piece: Slice) -> v2.Batches:
    """Keep the batches that reach into the slice's offsets; others need not even be intact."""
    inside = batches.next_offsets > piece["start_offset"]
    inside &= batches.lowest_offsets < piece["end_offset"]
    return batches if inside.all() else batches.where(inside)


def _wanted(within: v2.Batches, chunk: Chunk, fates: Fates) -> v2.Batches:
    """Keep the data batches that are not of an aborted transaction."""
    keep = ~transactions.is_control(within) & (within.headers["count"] != 0)
    keep &= ~fates.aborted(within, chunk)
    return within if keep.all() else within.where(keep)


def _next(parts: Iterator[Columns], position: int) -> Columns | None:
    """Take the next part; what is wrong with it is told by its position in the file."""
    with located(position):
        return next(parts, None)


def _bounded(columns: Columns, piece: Slice) -> Columns:
    """Cut off the records of the first and last batch that lie outside the range."""
    offsets = columns.offset
    begin = int(np.searchsorted(offsets, piece["start_offset"], "left"))
    end = int(np.searchsorted(offsets, piece["end_offset"], "left"))
    if begin == 0 and end == len(offsets):
        return columns
    return columns.part(begin, end)
