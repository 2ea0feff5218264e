"""`klog dump` of a `.txnindex`: its entries, held to the markers of the log beside them.

kafka-dump-log prints a transaction index and checks nothing. Here an entry has to have an ABORT
marker of its producer at its last offset, its first offset may not be behind the transaction's
first data, and its last stable offset may not be behind the earliest transaction that was open at
the marker; and an ABORT marker that ends a transaction with data in this segment has to have an
entry, else the aborted records are shown as committed (format notes 4.5, `kafka-seen.md` 4 and 27).
Transactions that were open at the segment's start are known where its producer snapshot lies beside
it; a compaction may have taken their data since, so they need no entry. What a compaction takes
away makes no entry wrong.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from klog.cli.dump_index import Index, Jobs
from klog.cli.dump_lines import Printer
from klog.cli.dump_walk import walk
from klog.connector.log.segment import Chunk
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat import transactions as tx
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.schema import Fields

ABORTED_ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producerId", ">i8"),
        ("firstOffset", ">i8"),
        ("lastOffset", ">i8"),
        ("lastStableOffset", ">i8"),
    ]
)
MAX_ENTRIES = 1 << 20
"""More aborted transactions than that in one segment are printed and not compared."""


def dump_transaction_index(
    printer: Printer, index: Index, opened: dict[int, int], jobs: Jobs
) -> None:
    """Print the entries and tell of what does not fit the log.

    `opened` are the transactions open at the segment's start, producer id to first offset, as far
    as they are known.
    """
    rows = _rows(index)
    fault = transaction_index_fault(rows, index)
    if fault is not None:
        printer.finding("Failed sanity check", fault, index.path)
    elif jobs.sanity_only:
        printer.say(f"{index.path} passed sanity check.", "sane", file=index.path)
    if jobs.sanity_only:
        return
    if not jobs.verify_only:
        printer.lines("abortedTransaction", rows)
    if index.log is None:
        printer.finding("Missing log", "no .log of this name to compare the index with", index.path)
    else:
        _Comparison(printer, index.path, rows, opened).run(index)


def transaction_index_fault(rows: list[Fields], index: Index) -> str | None:
    """Say what no broker writes, None if nothing."""
    if index.file.size_bytes % ABORTED_ENTRY.itemsize:
        return f"its size {index.file.size_bytes} is no multiple of {ABORTED_ENTRY.itemsize}"
    if any(row["version"] != 0 for row in rows):
        return "an entry is of another version than 0"
    lasts = [row["lastOffset"] for row in rows]
    if any(last < index.base_offset for last in lasts):
        return f"a last offset is below its base offset {index.base_offset}"
    if any(second <= first for first, second in pairwise(lasts)):
        return "last offsets do not rise"
    return None


def _rows(index: Index) -> list[Fields]:
    size = ABORTED_ENTRY.itemsize
    data = index.file.read(0, min(index.file.size_bytes, MAX_ENTRIES * size))
    entries: npt.NDArray[np.void] = np.frombuffer(data, ABORTED_ENTRY, len(data) // size)
    names = ABORTED_ENTRY.names or ()
    return [dict(zip(names, row, strict=True)) for row in entries.tolist()]


class _Comparison:
    """The transactions of a log as they open and close, against the entries of its index."""

    def __init__(
        self, printer: Printer, path: str, rows: list[Fields], opened: dict[int, int]
    ) -> None:
        self._printer = printer
        self._path = path
        self._left = {row["lastOffset"]: row for row in rows}
        self._opened = dict(opened)
        self._with_data: set[int] = set()

    def run(self, index: Index) -> None:
        """Walk the log and tell of what differs."""
        assert index.log is not None
        for part in walk(index.log, index.log.size_bytes):
            if isinstance(part, Chunk):
                self._follow(part)
        for row in self._left.values():
            self._tell(row["lastOffset"], f"producer {row['producerId']} has no ABORT marker there")

    def _follow(self, chunk: Chunk) -> None:
        relevant = chunk.batches.where((chunk.batches.attributes & v2.TRANSACTIONAL) != 0)
        control = tx.is_control(relevant).tolist()
        spans = zip(relevant.starts.tolist(), relevant.ends.tolist(), strict=True)
        for number, (start, end) in enumerate(spans):
            header = relevant.headers[number]
            offset, producer = int(header["base_offset"]), int(header["producer_id"])
            if control[number]:
                self._close(offset, producer, self._kind(chunk.data, start, end, offset))
            elif header["count"] > 0:
                self._opened.setdefault(producer, offset)
                self._with_data.add(producer)

    def _kind(self, data: bytes, start: int, end: int, offset: int) -> int | None:
        try:
            return tx.control_type(data, start, end)
        except CorruptRecordError as exc:
            self._tell(offset, exc.reason)
            return None

    def _close(self, offset: int, producer: int, kind: int | None) -> None:
        if kind not in (ABORT, COMMIT):
            return
        first = self._opened.pop(producer, None)
        has_data = producer in self._with_data
        self._with_data.discard(producer)
        row = self._left.get(offset) if kind == ABORT else None
        if row is not None and row["producerId"] == producer:
            del self._left[offset]
            self._compare(row, first)
        elif kind == ABORT and has_data:
            self._tell(offset, f"ABORT of producer {producer} with data from {first} has no entry")

    def _compare(self, row: Fields, first: int | None) -> None:
        offset = row["lastOffset"]
        if first is not None and row["firstOffset"] > first:
            self._tell(offset, f"first offset {row['firstOffset']}, the data begin at {first}")
        stable = min(self._opened.values(), default=offset + 1)
        if row["lastStableOffset"] > stable:
            text = f"last stable offset {row['lastStableOffset']}, it was {stable}"
            self._tell(offset, text)

    def _tell(self, offset: int, text: str) -> None:
        heading = "Transactions that do not fit their log"
        self._printer.finding(heading, f"marker {offset}: {text}", self._path, lastOffset=offset)
