"""Verify one segment: its files against its entry, and its batches against each other.

The rule: an entry is enough to verify a segment, so a task on another machine can do it. What the
partition must know comes back with the findings. A log is read a few megabytes at a time. Whatever
is wrong is a finding; a damaged file does not end the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import google_crc32c
import numpy as np

from klog.connector.commit_log.segment_entries import SegmentEntry, file_size_bytes
from klog.connector.segment_chunks import Chunk
from klog.connector.store.readable_store import File, ReadableStore
from klog.errors import KlogError
from klog.jobs.shared.index_entry_check import IndexCheck
from klog.jobs.verifying.check_aborted import SegmentTransactions, TransactionCheck
from klog.jobs.verifying.check_headers import HeaderCheck
from klog.jobs.verifying.check_indexes import add_index_findings, read_indexes
from klog.jobs.verifying.check_records import NO_TIMESTAMPS, find_undecodable
from klog.jobs.verifying.check_sequences import SequenceRuns, join_runs, runs_of_batches
from klog.jobs.verifying.damaged_log_walk import DamagedBytes, WalkedBatches, walk_damaged_log
from klog.jobs.verifying.findings import Finding, Findings
from klog.logformat.array_types import Mask

_DAMAGE = ("size", "frame", "crc", "magic", "header", "offset", "epoch")
"""Kinds that show that the file is not what was written: a wrong checksum would say it again."""
_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What was found in a segment, and what its partition must know of it.

    `batches`, `records` and `size_bytes` are what could be read. `has_end` is whether the entry's
    last batch was there and could be read. `transactions` are empty in the fast form.
    """

    findings: tuple[Finding, ...]
    batches: int
    records: int
    size_bytes: int
    runs: SequenceRuns
    has_end: bool
    transactions: SegmentTransactions


def verify_segment(
    store: ReadableStore, root: str, topic: str, entry: SegmentEntry, *, fast: bool = False
) -> SegmentFacts:
    """Verify one segment.

    A missing file is a finding; the caller checks whether the commit log still names it.

    Args:
        store: The store.
        root: The root's path, as the store spells it.
        topic: The topic.
        entry: The segment's entry.
        fast: Read headers only.
    """
    findings = Findings(topic, entry["partition"], entry["file"])
    path = f"{root}/{entry['file']}"
    if not HeaderCheck(entry, findings).has_possible_offsets:
        reason = f"offsetShift {entry['offset_shift']} gives the file offsets that no log has"
        findings.add("entry", reason)
        transactions = SegmentTransactions(is_unknown=True)
        return SegmentFacts(
            findings.collected(), 0, 0, 0, join_runs([]), has_end=False, transactions=transactions
        )
    indexes = read_indexes(store, path, entry, findings)
    check = _SegmentCheck(entry, findings, indexes, fast=fast)
    try:
        file = store.open(path)
        try:
            check.read(file)
        finally:
            file.close()
    except FileNotFoundError:
        findings.add("missing", "the file is missing, and the commit log names it")
        check.add_unreadable()
    except (KlogError, OSError) as exc:
        findings.add("unreadable", f"the file cannot be read: {exc}")
        check.add_unreadable()
    return check.facts()


class _SegmentCheck:
    """Checks the log of one segment."""

    def __init__(
        self, entry: SegmentEntry, findings: Findings, indexes: IndexCheck, *, fast: bool
    ) -> None:
        self._headers = HeaderCheck(entry, findings)
        self._entry, self._findings, self._indexes = entry, findings, indexes
        self._fast = fast
        self._runs: list[SequenceRuns] = []
        self._transactions = TransactionCheck(entry, findings)
        self._crc32c = 0
        self._read_bytes = 0
        self._is_complete = True
        self._min_ms, self._max_ms = NO_TIMESTAMPS

    def read(self, file: File) -> None:
        """Check the log from its start to its end."""
        size, committed_bytes = self._entry["size_bytes"], file_size_bytes(self._entry)
        if file.size_bytes != committed_bytes:
            reason = f"the file has {file.size_bytes} bytes and the commit sizeBytes {size}"
            if committed_bytes > size:
                reason += f" and tornBytes {committed_bytes - size}"
            self._findings.add("size", reason)
            self._is_complete = False
        end = min(file.size_bytes, size)
        for part in walk_damaged_log(file, end, fast=self._fast):
            if isinstance(part, WalkedBatches):
                self._add_batches(part.chunk, part.fails_crc)
            else:
                is_cut = part.end == end and file.size_bytes != committed_bytes
                self._add_damage(part, is_cut=is_cut)
        if end < size:
            self.add_unreadable()
            self._indexes.skip(end, _NO_LIMIT)
        self._read_bytes = end
        self._compare_with_entry()

    def add_unreadable(self) -> None:
        """Add bytes that could not be read: what follows comes after a gap."""
        self._headers.add_unreadable()
        self._transactions.add_unreadable()

    def facts(self) -> SegmentFacts:
        """Return what was found."""
        headers = self._headers
        return SegmentFacts(
            self._findings.collected(),
            headers.batch_count,
            headers.record_count,
            self._read_bytes,
            join_runs(self._runs),
            not headers.after_gap,
            SegmentTransactions() if self._fast else self._transactions.result(),
        )

    def _add_batches(self, chunk: Chunk, fails_crc: Mask) -> None:
        for number in np.flatnonzero(fails_crc).tolist():
            position = chunk.position + int(chunk.batches.starts[number])
            self._findings.add("crc", "the batch fails its CRC", position)
        valid = ~fails_crc
        if not self._fast:
            data = np.frombuffer(chunk.data, np.uint8)[: chunk.end_position - chunk.position]
            self._crc32c = google_crc32c.extend(self._crc32c, data)
        valid &= ~self._headers.find_impossible(chunk, valid)
        if not self._fast:
            decoded = find_undecodable(chunk, valid, self._findings)
            is_undecodable, (min_ms, max_ms) = decoded.is_undecodable, decoded.timestamp_range
            self._min_ms, self._max_ms = min(self._min_ms, min_ms), max(self._max_ms, max_ms)
            self._is_complete &= not is_undecodable.any()
            self._transactions.add(chunk, valid & ~is_undecodable)
        self._is_complete &= bool(valid.all())
        offsets = self._headers.add(chunk, valid)
        self._indexes.add(chunk, offsets.is_right)
        runs = runs_of_batches(
            self._findings.topic,
            chunk.batches.where(valid),
            offsets.after_gap[valid],
            chunk.position,
            self._entry["offset_shift"],
        )
        self._runs.append(runs)

    def _add_damage(self, damage: DamagedBytes, *, is_cut: bool) -> None:
        """Report bytes that are no batch, unless the size already shows that they are cut."""
        self._is_complete = False
        self.add_unreadable()
        self._indexes.skip(damage.position, damage.end)
        if not is_cut or damage.kind == "crc":
            reason = f"{damage.reason}; it goes on at position {damage.end}"
            self._findings.add(damage.kind, reason, damage.position)

    def _compare_with_entry(self) -> None:
        """Compare what was read with the entry."""
        crc32c, findings = self._entry["crc32c"], self._findings
        if self._is_complete:
            self._headers.compare_with_entry(None if self._fast else (self._min_ms, self._max_ms))
        has_crc = not self._fast and self._is_complete and not findings.has(*_DAMAGE)
        if has_crc and self._crc32c != crc32c:
            reason = (
                f"the file has CRC-32C {self._crc32c:#010x} and the commit crc32c {crc32c:#010x}"
            )
            findings.add("checksum", reason)
        is_complete = self._is_complete and not findings.has("offset")
        add_index_findings(self._indexes, findings, is_complete=is_complete)
