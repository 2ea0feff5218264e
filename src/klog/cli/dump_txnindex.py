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

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from klog.cli.dump_index import Index, Jobs
from klog.cli.dump_lines import Printer
from klog.cli.dump_walk import walk
from klog.connector.log.segment import Chunk
from klog.connector.store.files import File
from klog.errors import CorruptRecordError, KlogError
from klog.logformat import batch as v2
from klog.logformat import transactions as tx
from klog.logformat.control import ABORT, COMMIT
from klog.logformat.names import MAX_OFFSET

ABORTED_ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producerId", ">i8"),
        ("firstOffset", ">i8"),
        ("lastOffset", ">i8"),
        ("lastStableOffset", ">i8"),
    ]
)
_NAMES = ABORTED_ENTRY.names or ()
MAX_BYTES = 256 << 20
"""Nearly eight million aborted transactions in one segment: larger files are not read."""
PRINTED = 1 << 16
"""How many entries are printed at a time."""

Entries: TypeAlias = npt.NDArray[np.void]


def dump_transaction_index(
    printer: Printer, index: Index, opened: dict[int, int], jobs: Jobs
) -> None:
    """Print the entries and tell of what does not fit the log.

    `opened` are the transactions open at the segment's start, producer id to first offset, as far
    as they are known. Raises `KlogError` for a file of more than `MAX_BYTES`.
    """
    entries = _entries(index)
    fault = transaction_index_fault(entries, index)
    if fault is not None:
        printer.finding("Failed sanity check", fault, index.path)
    elif jobs.sanity_only:
        printer.say(f"{index.path} passed sanity check.", "sane", file=index.path)
    if jobs.sanity_only:
        return
    if not jobs.verify_only:
        for begin in range(0, len(entries), PRINTED):
            rows = entries[begin : begin + PRINTED].tolist()
            printer.lines(
                "abortedTransaction", (dict(zip(_NAMES, row, strict=True)) for row in rows)
            )
    if index.log is None:
        printer.finding("Missing log", "no .log of this name to compare the index with", index.path)
    else:
        _Comparison(printer, index.path, entries, opened).run(index.log)


def transaction_index_fault(entries: Entries, index: Index) -> str | None:
    """Say what no broker writes, None if nothing."""
    lasts = entries["lastOffset"].astype(np.int64)
    if index.file.size_bytes % ABORTED_ENTRY.itemsize:
        return f"its size {index.file.size_bytes} is no multiple of {ABORTED_ENTRY.itemsize}"
    if (entries["version"] != 0).any():
        return "an entry is of another version than 0"
    if (lasts < index.base_offset).any():
        return f"a last offset is below its base offset {index.base_offset}"
    if (lasts[1:] <= lasts[:-1]).any():
        return "last offsets do not rise"
    return None


def _entries(index: Index) -> Entries:
    if index.file.size_bytes > MAX_BYTES:
        raise KlogError(f"{index.file.size_bytes} bytes, the limit is {MAX_BYTES}")
    data = index.file.read(0, index.file.size_bytes)
    return np.frombuffer(data, ABORTED_ENTRY, len(data) // ABORTED_ENTRY.itemsize)


class _Comparison:
    """The transactions of a log as they open and close, against the entries of its index.

    Entries are taken in the order of their markers, as the log is walked.
    """

    def __init__(
        self, printer: Printer, path: str, entries: Entries, opened: dict[int, int]
    ) -> None:
        self._printer = printer
        self._path = path
        self._entries = entries[np.argsort(entries["lastOffset"], kind="stable")]
        self._next = 0
        self._opened = dict(opened)
        self._with_data: set[int] = set()

    def run(self, log: File) -> None:
        """Walk the log and tell of what differs."""
        for part in walk(log, log.size_bytes):
            if isinstance(part, Chunk):
                self._follow(part)
        self._take_before(MAX_OFFSET + 1)

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
        self._take_before(offset)
        found = self._take(offset, producer) if kind == ABORT else None
        if found is not None:
            self._compare(found, first)
        elif kind == ABORT and has_data:
            self._tell(offset, f"ABORT of producer {producer} with data from {first} has no entry")

    def _take_before(self, offset: int) -> None:
        """Step over the entries of markers below an offset: there was none for them."""
        while self._next < len(self._entries):
            entry = self._entries[self._next]
            if int(entry["lastOffset"]) >= offset:
                return
            text = f"producer {entry['producerId']} has no ABORT marker there"
            self._tell(int(entry["lastOffset"]), text)
            self._next += 1

    def _take(self, offset: int, producer: int) -> np.void | None:
        """Take the next entry if it is that of a marker."""
        if self._next == len(self._entries):
            return None
        entry: np.void = self._entries[self._next]
        if (int(entry["lastOffset"]), int(entry["producerId"])) != (offset, producer):
            return None
        self._next += 1
        return entry

    def _compare(self, entry: np.void, first: int | None) -> None:
        offset = int(entry["lastOffset"])
        if first is not None and int(entry["firstOffset"]) > first:
            self._tell(offset, f"first offset {entry['firstOffset']}, the data begin at {first}")
        stable = min(self._opened.values(), default=offset + 1)
        if int(entry["lastStableOffset"]) > stable:
            self._tell(offset, f"last stable offset {entry['lastStableOffset']}, it was {stable}")

    def _tell(self, offset: int, text: str) -> None:
        heading = "Transactions that do not fit their log"
        self._printer.finding(heading, f"marker {offset}: {text}", self._path, lastOffset=offset)
