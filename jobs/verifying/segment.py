"""Verify one segment: its files against its entry, and all that its bytes say among themselves.

The rule: an entry alone is enough, so that a task on another machine can do it, and what its
partition has to know comes back with the findings. A log is read a few megabytes at a time. What
goes wrong is a finding, whatever it is: a damaged file does not end the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.connector.log.beside import MOST_INDEX_BYTES
from klog.connector.log.entries import Entry, file_bytes
from klog.connector.log.paths import segment_path
from klog.connector.log.segment import Chunk
from klog.connector.store.files import File, Store
from klog.errors import FileTooLargeError, KlogError
from klog.jobs.verifying import records
from klog.jobs.verifying.aborted import Decided, Transactions
from klog.jobs.verifying.findings import Finding, Findings
from klog.jobs.verifying.headers import Headers
from klog.jobs.verifying.indexes import Indexes
from klog.jobs.verifying.sequences import Runs, joined, merged, runs_of
from klog.jobs.verifying.walk import Fault, Piece, walk
from klog.logformat.index import Mask
from klog.logformat.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.time_index import ENTRY as TIME_ENTRY

_INDEXES = (
    ("index", "index_bytes", OFFSET_ENTRY.itemsize),
    ("timeindex", "time_index_bytes", TIME_ENTRY.itemsize),
)
_DAMAGE = ("size", "frame", "crc", "magic", "header", "offset", "epoch")
"""What shows that a file is not what was written: its own checksum would only say so again."""
_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What was found in a segment, and what its partition has to know of it.

    `batches`, `records` and `size_bytes` are what could be read. `ends_known` says that the last
    batch of the entry was there and could be read. `decided` is empty in the fast form.
    """

    findings: tuple[Finding, ...]
    batches: int
    records: int
    size_bytes: int
    runs: Runs
    ends_known: bool
    decided: Decided


def verify_segment(
    store: Store, root: str, topic: str, entry: Entry, *, fast: bool = False
) -> SegmentFacts:
    """Verify one segment. `root` is the root's path as the store spells it; `fast` reads headers.

    A file that is not there is a finding `missing`: the caller looks whether the commit log still
    names it.
    """
    findings = Findings(topic, entry["partition"], entry["file"])
    path = f"{root}/{entry['file']}"
    if not Headers(entry, findings).can_be:
        what = f"offsetShift {entry['offset_shift']} gives the file offsets that no log has"
        findings.add("entry", what)
        lost = Decided(is_lost=True)
        return SegmentFacts(findings.told(), 0, 0, 0, joined([]), ends_known=False, decided=lost)
    indexes = _indexes(store, path, entry, findings)
    looked = _Look(entry, findings, indexes, fast=fast)
    try:
        file = store.open(path)
        try:
            looked.at(file)
        finally:
            file.close()
    except FileNotFoundError:
        findings.add("missing", "the file is not there, and the commit log names it")
        looked.lose()
    except (KlogError, OSError) as exc:
        findings.add("unreadable", f"the file cannot be read: {exc}")
        looked.lose()
    return looked.facts()


class _Look:
    """A look at one segment's log."""

    def __init__(self, entry: Entry, findings: Findings, indexes: Indexes, *, fast: bool) -> None:
        self.headers = Headers(entry, findings)
        self._entry, self._findings, self._indexes = entry, findings, indexes
        self._fast = fast
        self._runs: list[Runs] = []
        self._transactions = Transactions(entry, findings)
        self._crc32c = 0
        self._read_bytes = 0
        self._whole = True
        self._least, self._most = records.NO_TIMES

    def at(self, file: File) -> None:
        """Read the log from its start to its end."""
        size, of_file = self._entry["size_bytes"], file_bytes(self._entry)
        if file.size_bytes != of_file:
            what = f"the file has {file.size_bytes} bytes and the commit sizeBytes {size}"
            if of_file > size:
                what += f" and tornBytes {of_file - size}"
            self._findings.add("size", what)
            self._whole = False
        end = min(file.size_bytes, size)
        for part in walk(file, end, fast=self._fast):
            if isinstance(part, Piece):
                self._take(part.chunk, part.failing)
            else:
                self._tell(part, is_cut=part.end == end and file.size_bytes != of_file)
        if end < size:
            self.headers.loose = True
            self._transactions.lose()
            self._indexes.skip(end, _NO_LIMIT)
        self._read_bytes = end
        self._compare()

    def lose(self) -> None:
        """Know of nothing: the log could not be read."""
        self.headers.loose = True
        self._transactions.lose()

    def facts(self) -> SegmentFacts:
        """Give what was found."""
        headers = self.headers
        return SegmentFacts(
            self._findings.told(),
            headers.batch_count,
            headers.record_count,
            self._read_bytes,
            merged(joined(self._runs)),
            not headers.loose,
            Decided() if self._fast else self._transactions.decided(),
        )

    def _take(self, chunk: Chunk, failing: Mask) -> None:
        for number in np.flatnonzero(failing).tolist():
            position = chunk.position + int(chunk.batches.starts[number])
            self._findings.add("crc", "the batch fails its CRC", position)
        good = ~failing
        if not self._fast:
            mine = np.frombuffer(chunk.data, np.uint8)[: chunk.end - chunk.position]
            self._crc32c = google_crc32c.extend(self._crc32c, mine)
        good &= ~self.headers.broken(chunk, good)
        if not self._fast:
            bad, (least, most) = records.undecodable(chunk, good, self._findings)
            self._least, self._most = min(self._least, least), max(self._most, most)
            self._whole &= not bad.any()
            self._transactions.take(chunk, good & ~bad)
        self._whole &= bool(good.all())
        loose, sound = self.headers.take(chunk, good)
        self._indexes.take(chunk, sound)
        shift = self._entry["offset_shift"]
        topic, batches = self._findings.topic, chunk.batches.where(good)
        self._runs.append(runs_of(topic, batches, loose[good], chunk.position, shift))

    def _tell(self, fault: Fault, *, is_cut: bool) -> None:
        """Tell of bytes that are no batch; that the last one is cut short, the size has told."""
        self._whole = False
        self.headers.loose = True
        self._transactions.lose()
        self._indexes.skip(fault.position, fault.end)
        if not is_cut or fault.kind == "crc":
            behind = f"; it goes on at position {fault.end}"
            self._findings.add(fault.kind, fault.reason + behind, fault.position)

    def _compare(self) -> None:
        """Compare the whole of what was read with the entry."""
        said, findings = self._entry["crc32c"], self._findings
        if self._whole:
            times = None if self._fast else (self._least, self._most)
            self.headers.compare(times)
        if not self._fast and self._whole and not findings.has(*_DAMAGE) and self._crc32c != said:
            what = f"the file has CRC-32C {self._crc32c:#010x} and the commit crc32c {said:#010x}"
            findings.add("checksum", what)
        stem = self._entry["file"].removesuffix(".log")
        self._indexes.tell(stem, findings, whole=self._whole and not findings.has("offset"))


def _indexes(store: Store, path: str, entry: Entry, findings: Findings) -> Indexes:
    """Read both indexes; one that is not what the entry says is told, and taken for empty."""
    stem = path.removesuffix(".log")
    own = entry["file"].removesuffix(".log")
    found: dict[str, bytes] = {}
    for kind, column, entry_bytes in _INDEXES:
        said = entry[column]
        if not said:
            continue  # Readers look for none.
        try:
            data = store.read(f"{stem}.{kind}", min(said, MOST_INDEX_BYTES))
        except FileNotFoundError:
            what = f"the file is not there, and the commit log says it has {said} bytes"
            findings.add("missing", what, file=f"{own}.{kind}")
            continue
        except FileTooLargeError:
            what = f"the file has more than the {said} bytes that the commit log says"
            findings.add(kind, what, file=f"{own}.{kind}")
            continue
        except (KlogError, OSError) as exc:
            what = f"the file cannot be read: {exc}"
            findings.add("unreadable", what, file=f"{own}.{kind}")
            continue
        if len(data) != said:
            what = f"the file has {len(data)} bytes, and the commit log says {said}"
            findings.add(kind, what, file=f"{own}.{kind}")
        elif said % entry_bytes:
            what = f"the file has {said} bytes, which are no whole entries of {entry_bytes}"
            findings.add(kind, what, file=f"{own}.{kind}")
        else:
            found[kind] = data
    named = segment_path(entry["file"])
    base = entry["base_offset"] - entry["offset_shift"] if named is None else named.first_offset
    return Indexes(
        found.get("index", b""),
        found.get("timeindex"),
        base,
        strict=entry["origin"] == "append",
    )
