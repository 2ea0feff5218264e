"""`klog dump` of a `.txnindex`: print its entries and check them against the markers of the log.

kafka-dump-log prints a transaction index and checks nothing. klog requires an ABORT marker of the
entry's producer at its last offset. The entry's first offset must not come after the transaction's
first data, and its last stable offset must not come after the earliest transaction that was open at
the marker. An ABORT marker that ends a transaction with data in this segment must have an entry,
else readers take the aborted records as committed (docs/format.md, 8.3, seen 4 and 27).
Transactions that were open at the segment's start are known if its producer snapshot lies in the
same directory; compaction may have removed their data since, so they need no entry. Data that
compaction removed makes no entry wrong.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from klog.connector.segment_chunks import Chunk
from klog.connector.store.readable_store import File
from klog.errors import CorruptRecordError
from klog.logformat.batches import record_batch as v2
from klog.logformat.broker_files.file_names import MAX_OFFSET
from klog.logformat.indexes.abstract_index import check_size
from klog.logformat.indexes.transaction_index import ENTRY, VERSION, check_aborted
from klog.logformat.producers import transaction_outcomes as tx
from klog.logformat.producers.control_records import ABORT, COMMIT
from klog.tools.dump_index import Index, IndexOptions, read_whole
from klog.tools.dump_lines import Printer
from klog.tools.dump_walk import walk

_NAMES = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
PRINTED = 1 << 16
"""How many entries are printed at a time."""

Entries: TypeAlias = npt.NDArray[np.void]


def dump_transaction_index(
    printer: Printer, index: Index, open_transactions: dict[int, int], options: IndexOptions
) -> None:
    """Print the entries and report those that do not fit the log.

    `open_transactions` are those at the segment's start, producer id to first offset, as far as
    they are known. Raises `KlogError` for a file that is too large to be read.
    """
    data = read_whole(index.file)
    entries = np.frombuffer(data, ENTRY, len(data) // ENTRY.itemsize)
    fault = _fault(data, entries, index.base_offset)
    if fault is not None:
        printer.finding("Failed sanity check", fault, index.path)
    elif options.sanity_only:
        printer.message(f"{index.path} passed sanity check.", "sane", file=index.path)
    if options.sanity_only:
        return
    if not options.verify_only:
        for begin in range(0, len(entries), PRINTED):
            rows = entries[begin : begin + PRINTED].tolist()
            printer.lines(
                "abortedTransaction", (dict(zip(_NAMES, row, strict=True)) for row in rows)
            )
    if index.log is None:
        printer.finding("Missing log", "no .log of this name to compare the index with", index.path)
    else:
        _Comparison(printer, index.path, entries, open_transactions).run(index.log)


def _fault(data: bytes, entries: Entries, base_offset: int) -> str | None:
    """Return what is wrong with the entries themselves; None if nothing."""
    if (entries["version"] != VERSION).any():
        return f"an entry is of another version than {VERSION}"
    try:
        check_size(len(data), ENTRY.itemsize)
        check_aborted(data, base_offset)
    except CorruptRecordError as exc:
        return exc.reason
    lasts = entries["last_offset"].astype(np.int64)
    return "last offsets do not rise" if (lasts[1:] <= lasts[:-1]).any() else None


class _Comparison:
    """Compares the transactions of a log with the entries of its index.

    It walks the log and takes the entries in the order of their markers.
    """

    def __init__(
        self, printer: Printer, path: str, entries: Entries, open_transactions: dict[int, int]
    ) -> None:
        self._printer = printer
        self._path = path
        self._entries = entries[np.argsort(entries["last_offset"], kind="stable")]
        self._next = 0
        self._open_transactions = dict(open_transactions)
        self._with_data: set[int] = set()

    def run(self, log: File) -> None:
        """Walk the log and report differences."""
        for part in walk(log, log.size_bytes):
            if isinstance(part, Chunk):
                self._follow(part)
        self._take_before(MAX_OFFSET + 1)

    def _follow(self, chunk: Chunk) -> None:
        relevant = chunk.batches.where((chunk.batches.attributes & v2.TRANSACTIONAL) != 0)
        control = relevant.is_control.tolist()
        spans = zip(relevant.starts.tolist(), relevant.ends.tolist(), strict=True)
        for number, (start, end) in enumerate(spans):
            header = relevant.headers[number]
            offset, producer = int(header["base_offset"]), int(header["producer_id"])
            if control[number]:
                self._close(offset, producer, self._kind(chunk.data, start, end, offset))
            elif header["count"] > 0:
                self._open_transactions.setdefault(producer, offset)
                self._with_data.add(producer)

    def _kind(self, data: bytes, start: int, end: int, offset: int) -> int | None:
        try:
            return tx.control_type(data, start, end)
        except CorruptRecordError as exc:
            self._report(offset, exc.reason)
            return None

    def _close(self, offset: int, producer: int, kind: int | None) -> None:
        if kind not in (ABORT, COMMIT):
            return
        first = self._open_transactions.pop(producer, None)
        has_data = producer in self._with_data
        self._with_data.discard(producer)
        self._take_before(offset)
        entry = self._take(offset, producer) if kind == ABORT else None
        if entry is not None:
            self._compare(entry, first)
        elif kind == ABORT and has_data:
            self._report(
                offset, f"ABORT of producer {producer} with data from {first} has no entry"
            )

    def _take_before(self, offset: int) -> None:
        """Report the entries of markers below an offset: the log has no such marker."""
        while self._next < len(self._entries):
            entry = self._entries[self._next]
            if int(entry["last_offset"]) >= offset:
                return
            text = f"producer {entry['producer_id']} has no ABORT marker there"
            self._report(int(entry["last_offset"]), text)
            self._next += 1

    def _take(self, offset: int, producer: int) -> np.void | None:
        """Take the next entry if it belongs to the marker at `offset`."""
        if self._next == len(self._entries):
            return None
        entry: np.void = self._entries[self._next]
        if (int(entry["last_offset"]), int(entry["producer_id"])) != (offset, producer):
            return None
        self._next += 1
        return entry

    def _compare(self, entry: np.void, first: int | None) -> None:
        offset = int(entry["last_offset"])
        if first is not None and int(entry["first_offset"]) > first:
            self._report(offset, f"first offset {entry['first_offset']}, the data begin at {first}")
        stable = min(self._open_transactions.values(), default=offset + 1)
        if int(entry["last_stable_offset"]) > stable:
            self._report(
                offset, f"last stable offset {entry['last_stable_offset']}, it was {stable}"
            )

    def _report(self, offset: int, text: str) -> None:
        heading = "Transactions that do not fit their log"
        self._printer.finding(heading, f"marker {offset}: {text}", self._path, lastOffset=offset)
