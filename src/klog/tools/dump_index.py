"""`klog dump` of `.index` and `.timeindex`: print the entries and check them against the log.

An offset index entry is of an append, which may hold several batches (docs/format.md, 8.1). It must
point at a batch, and its offset must be the last one of a batch from there up to the position of
the next entry; kafka-dump-log looks at the first batch only. A time index entry must name the last
offset of a batch whose largest timestamp is the entry's, and timestamps must rise (kafka-dump-log's
checks). An index is read whole, and the log is walked once for each `ENTRIES` of its entries. The
zeros that a broker preallocates end the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klog.connector.segment_chunks import Chunk
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError, KlogError
from klog.logformat.array_types import Longs
from klog.logformat.batches.record_batch import NO_TIMESTAMP
from klog.logformat.indexes.offset_index import check_offset_index, decode_offset_index
from klog.logformat.indexes.time_index import check_time_index, decode_time_index
from klog.tools.dump_lines import Printer
from klog.tools.dump_walk import walk

MAX_BYTES = 256 << 20
"""25 times the default of `segment.index.bytes`; a larger file is an error."""
ENTRIES = 1 << 20
"""How many entries are looked up in one walk of the log."""
NOT_FOUND = -1


@dataclass(frozen=True, slots=True)
class Index:
    """An index to dump: its path as given, base offset, open file, and its log, None if missing."""

    path: str
    base_offset: int
    file: File
    log: File | None


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """What to do with an index: print entries, compare them with the log, or check sanity alone."""

    sanity_only: bool
    verify_only: bool
    max_message_bytes: int | None


def dump_offset_index(printer: Printer, index: Index, options: IndexOptions) -> None:
    """Print the entries of a `.index` and report those that do not fit the log.

    Raises `KlogError` for a file of more than `MAX_BYTES`.
    """
    data = read_whole(index.file)
    entries = decode_offset_index(data, index.base_offset)
    count = _count_used(entries.offsets - index.base_offset, entries.positions)
    if not count:
        printer.message(f"{index.path} is empty.", "empty", file=index.path)
        return
    if options.sanity_only:
        _check_sanity(printer, index, check_offset_index, data)
        return
    _report_no_log(printer, index)
    bounds = _next_larger(entries.positions[:count])
    for part in _parts(count):
        offsets, positions = entries.offsets[part], entries.positions[part]
        if not options.verify_only:
            rows = zip(offsets.tolist(), positions.tolist(), strict=True)
            printer.lines("offsetIndex", ({"offset": o, "position": p} for o, p in rows))
        if index.log is not None:
            lasts, sizes = look_up_positions(index.log, positions)
            wrong = _without_append(index.log, offsets, positions, lasts, bounds[part])
            _report_mismatches(printer, index.path, offsets[wrong], positions[wrong], lasts[wrong])
            if options.max_message_bytes is not None:
                large = sizes > options.max_message_bytes
                _report_large(printer, index.path, positions[large], sizes[large])


def dump_time_index(printer: Printer, index: Index, options: IndexOptions) -> None:
    """Print the entries of a `.timeindex` and report those that do not fit the log.

    Raises `KlogError` for a file of more than `MAX_BYTES`.
    """
    data = read_whole(index.file)
    if options.sanity_only:
        _check_sanity(printer, index, check_time_index, data)
        return
    entries = decode_time_index(data, index.base_offset)
    _report_no_log(printer, index)
    before = NO_TIMESTAMP
    for part in _parts(_count_used(entries.offsets - index.base_offset, entries.timestamps)):
        offsets, timestamps = entries.offsets[part], entries.timestamps[part]
        if not options.verify_only:
            rows = zip(timestamps.tolist(), offsets.tolist(), strict=True)
            printer.lines("timeIndex", ({"timestamp": t, "offset": o} for t, o in rows))
        if index.log is not None:
            lasts, largest, _ = look_up_offsets(index.log, offsets)
            _report_not_found(printer, index.path, offsets, lasts)
            matches = lasts == offsets
            _report_timestamps(printer, index.path, timestamps[matches], largest[matches])
        before = _report_order(printer, index.path, timestamps, before)


def look_up_positions(log: File, positions: Longs) -> tuple[Longs, Longs]:
    """Return last offset and size in bytes of the batch at each position, -1 if there is none."""

    def at(chunk: Chunk, keys: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
        starts = chunk.batches.starts + chunk.position
        number = np.searchsorted(starts, keys).clip(max=len(starts) - 1)
        return number, starts[number] == keys

    def values(chunk: Chunk) -> tuple[Longs, Longs]:
        return chunk.batches.next_offsets - 1, chunk.batches.ends - chunk.batches.starts

    lasts, sizes = _look_up(log, positions, lambda chunk: chunk.end_position - 1, at, values)
    return lasts, sizes


def look_up_offsets(log: File, offsets: Longs) -> tuple[Longs, Longs, Longs]:
    """Return last offset, largest timestamp and position of the first batch to reach each offset.

    All three are -1 if no batch does.
    """

    def at(chunk: Chunk, keys: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
        lasts = chunk.batches.next_offsets - 1
        number = np.searchsorted(lasts, keys).clip(max=len(lasts) - 1)
        return number, lasts[number] >= keys

    def values(chunk: Chunk) -> tuple[Longs, Longs, Longs]:
        largest = chunk.batches.headers["max_timestamp"].astype(np.int64)
        return chunk.batches.next_offsets - 1, largest, chunk.batches.starts + chunk.position

    def reach(chunk: Chunk) -> int:
        return int(chunk.batches.next_offsets[-1]) - 1

    lasts, largest, positions = _look_up(log, offsets, reach, at, values, 3)
    return lasts, largest, positions


def read_whole(file: File) -> bytes:
    """Read an index; raises `KlogError` for a file of more than `MAX_BYTES`."""
    if file.size_bytes > MAX_BYTES:
        raise KlogError(
            f"it has {file.size_bytes} bytes, the limit is {MAX_BYTES}, and no index has as many. "
            "Give a broker's index file"
        )
    return file.read(0, file.size_bytes)


def _look_up(
    log: File,
    keys: Longs,
    reach: Callable[[Chunk], int],
    at: Callable[[Chunk, Longs], tuple[Longs, npt.NDArray[np.bool_]]],
    values: Callable[[Chunk], tuple[Longs, ...]],
    columns: int = 2,
) -> Longs:
    """Walk the log once and return the values of each key's batch, a row for each value.

    Keys need not rise. `reach` is the largest key that a chunk may hold, `at` finds the batches.
    """
    order = np.argsort(keys, kind="stable")
    rising = keys[order]
    result = np.full((columns, len(keys)), NOT_FOUND, np.int64)
    begin = 0
    for chunk in walk(log, log.size_bytes):
        if not isinstance(chunk, Chunk):
            continue
        end = max(int(np.searchsorted(rising, reach(chunk), "right")), begin)
        number, there = at(chunk, rising[begin:end])
        for row, column in zip(result, values(chunk), strict=True):
            row[order[begin:end]] = np.where(there, column[number], NOT_FOUND)
        begin = end
        if begin == len(rising):
            break
    return result


def _count_used(relative: Longs, values: Longs) -> int:
    """Count the used entries: a relative offset of 0 after the first entry ends them.

    If all are zeros there are none, except for a single one, which can be an entry.
    """
    if len(relative) > 1 and not relative[:2].any() and not values[:2].any():
        return 0
    unused = np.flatnonzero(relative[1:] == 0)
    return int(unused[0]) + 1 if len(unused) else len(relative)


def _parts(count: int) -> Iterator[slice]:
    return (slice(begin, min(begin + ENTRIES, count)) for begin in range(0, count, ENTRIES))


def _check_sanity(
    printer: Printer, index: Index, check: Callable[[bytes, int], None], data: bytes
) -> None:
    try:
        check(data, index.base_offset)
    except CorruptRecordError as exc:
        printer.finding("Failed sanity check", exc.reason, index.path)
    else:
        printer.message(f"{index.path} passed sanity check.", "sane", file=index.path)


def _report_no_log(printer: Printer, index: Index) -> None:
    if index.log is None:
        printer.finding("Missing log", "no .log of this name to compare the index with", index.path)


def _next_larger(positions: Longs) -> Longs:
    """Return for each entry the next larger position of an entry, the largest integer if none.

    So a position that does not rise does not make the entry before it wrong.
    """
    distinct = np.append(np.unique(positions), np.iinfo(np.int64).max)
    return distinct[np.searchsorted(distinct, positions, "right")]


def _without_append(
    log: File, offsets: Longs, positions: Longs, lasts: Longs, bounds: Longs
) -> Longs:
    """Return the numbers of the entries without an append: no batch begins or ends where they say.

    `lasts` is the last offset of the batch at each position. It is that of an append of one batch;
    only the entries of other appends are looked up in the log.
    """
    suspects = np.flatnonzero(offsets != lasts)
    if not len(suspects):
        return suspects
    ends, _, starts = look_up_offsets(log, offsets[suspects])
    fits = (lasts[suspects] != NOT_FOUND) & (ends == offsets[suspects])
    fits &= (positions[suspects] <= starts) & (starts < bounds[suspects])
    wrong: Longs = suspects[~fits]
    return wrong


def _report_mismatches(
    printer: Printer, path: str, offsets: Longs, positions: Longs, lasts: Longs
) -> None:
    rows = zip(offsets.tolist(), lasts.tolist(), positions.tolist(), strict=True)
    for offset, last, position in rows:
        text = f"Index offset: {offset}, log offset: {last}"
        if last == NOT_FOUND:
            text += f", no batch begins at position {position}"
        values = {"indexOffset": offset, "logOffset": last, "position": position}
        printer.finding("Mismatches", text, path, **values)


def _report_large(printer: Printer, path: str, positions: Longs, sizes: Longs) -> None:
    for position, size in zip(positions.tolist(), sizes.tolist(), strict=True):
        text = f"a batch of {size} bytes at position {position}"
        printer.finding("Batches over --max-message-size", text, path, position=position, size=size)


def _report_not_found(printer: Printer, path: str, offsets: Longs, lasts: Longs) -> None:
    for at in np.flatnonzero(offsets != lasts).tolist():
        offset, last = int(offsets[at]), int(lasts[at])
        text = f"Indexed offset: {offset}, found log offset: {last}"
        heading = "The following indexed offsets are not found in the log"
        printer.finding(heading, text, path, indexOffset=offset, logOffset=last)


def _report_timestamps(printer: Printer, path: str, timestamps: Longs, largest: Longs) -> None:
    for at in np.flatnonzero(timestamps != largest).tolist():
        index, log = int(timestamps[at]), int(largest[at])
        text = f"Index timestamp: {index}, log timestamp: {log}"
        values = {"indexTimestamp": index, "logTimestamp": log}
        printer.finding("Found timestamp mismatch", text, path, **values)


def _report_order(printer: Printer, path: str, timestamps: Longs, before: int) -> int:
    """Report timestamps that do not rise; return the last one."""
    earlier = np.concatenate((np.array([before], np.int64), timestamps))
    for at in np.flatnonzero(earlier[1:] <= earlier[:-1]).tolist():
        index, previous = int(earlier[at + 1]), int(earlier[at])
        text = f"Index timestamp: {index}, Previously indexed timestamp: {previous}"
        values = {"indexTimestamp": index, "previousTimestamp": previous}
        printer.finding("Found out of order timestamp", text, path, **values)
    return int(earlier[-1])
