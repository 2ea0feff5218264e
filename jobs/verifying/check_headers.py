"""Check the headers of a segment's batches against each other and against the segment's entry.

The rule: appended batches follow each other, so each header has its own offset, and by its number
of records the offset of the next batch. A rewritten segment may have gaps but never goes back. A
header whose CRC fails is not compared. What is counted over the segment is compared with the entry
only if all of the segment could be read; else only the damage is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klog.connector.commit_log.segment_entries import JSON_NAMES, SegmentEntry, aborted_transactions
from klog.connector.segment_chunks import Chunk
from klog.jobs.verifying.findings import Findings
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.record_counts import MAX_TIMESTAMP_MS, header_timestamp_range
from klog.logformat.codecs.codec_names import CODEC_NAMES
from klog.logformat.producers.transaction_outcomes import aborted_rows, is_aborted_by_index

_MAX_OFFSET = 1 << 62


@dataclass(frozen=True, slots=True)
class CheckedOffsets:
    """Which batches do not directly follow another one, and which have the offsets that are due."""

    after_gap: Mask
    is_right: Mask


@dataclass(slots=True)
class HeaderCheck:
    """Checks the headers of one segment; offsets are those of the file.

    `next_offset` is the one after the last batch, as the batches before it have it, and
    `offset_error` how far the last batch's own offset was from that. With `after_gap` it is not
    known what was directly before the next batch.
    """

    entry: SegmentEntry
    findings: Findings
    next_offset: int = field(init=False)
    offset_error: int = 0
    after_gap: bool = False
    record_count: int = 0
    batch_count: int = 0
    min_timestamp_ms: int = MAX_TIMESTAMP_MS
    max_timestamp_ms: int = v2.NO_TIMESTAMP
    leader_epoch: int = -1
    codecs: set[int] = field(default_factory=set)
    producer_ids: set[int] = field(default_factory=set)
    is_plain: bool = True
    has_legacy: bool = False
    has_wrappers: bool = False
    _aborted: Longs = field(init=False)

    def __post_init__(self) -> None:
        """Begin at the entry's first offset."""
        self.next_offset = self.first_offset
        self._aborted = aborted_rows(aborted_transactions(self.entry))

    @property
    def first_offset(self) -> int:
        """Return the first offset, as in the file."""
        return int(self.entry["base_offset"] - self.entry["offset_shift"])

    @property
    def end_offset(self) -> int:
        """Return the offset after the last one, as in the file."""
        return int(self.entry["next_offset"] - self.entry["offset_shift"])

    @property
    def has_possible_offsets(self) -> bool:
        """Return whether a file can have the entry's offsets, with room for arithmetic."""
        return -_MAX_OFFSET <= self.first_offset <= self.end_offset <= _MAX_OFFSET

    @property
    def is_append(self) -> bool:
        """Return whether klog's writer made the segment, and nothing has rewritten it."""
        return bool(self.entry["origin"] == "append")

    @property
    def is_dense(self) -> bool:
        """Return whether every offset has a record."""
        offsets = self.entry["next_offset"] - self.entry["base_offset"]
        is_merged = self.entry["origin"] == "merge" and self.entry["record_count"] == offsets
        return self.is_append or (is_merged and not self.has_legacy)

    def find_impossible(self, chunk: Chunk, valid: Mask) -> Mask:
        """Return which valid batches have a header that this segment cannot have; report them.

        Args:
            chunk: The chunk.
            valid: Which of its batches keep their CRC.
        """
        headers = chunk.batches.headers
        deltas = headers["last_offset_delta"].astype(np.int64)
        counts = headers["count"].astype(np.int64)
        legacy = chunk.batches.is_legacy & valid
        self.has_legacy |= bool(legacy.any())
        is_v2 = valid & ~legacy
        impossible = is_v2 & ((deltas < 0) | (counts < 0) | (counts > deltas + 1))
        if self.is_dense:
            impossible |= is_v2 & (counts != deltas + 1)
        for number in np.flatnonzero(impossible).tolist():
            reason = (
                f"a batch of {counts[number]} records whose last offset delta is {deltas[number]}"
            )
            self.findings.add("header", reason, _position(chunk, number))
        if self.is_append:
            for number in np.flatnonzero(legacy).tolist():
                reason = f"magic {headers['magic'][number]}, and klog writes magic {v2.MAGIC}"
                self.findings.add("magic", reason, _position(chunk, number))
            impossible |= legacy
        return impossible

    def add_unreadable(self) -> None:
        """Add bytes that cannot be read: the next batch comes after a gap."""
        self.after_gap = True

    def add(self, chunk: Chunk, valid: Mask) -> CheckedOffsets:
        """Check the valid batches of a chunk.

        Args:
            chunk: The chunk.
            valid: Which of its batches are checked.
        """
        after_gap, has_right_offset = np.zeros(len(valid), np.bool_), valid.copy()
        counts = chunk.batches.headers["count"]
        self.has_wrappers |= bool((counts == v2.WRAPPER_COUNT)[valid].any())
        changes = (np.flatnonzero(valid[1:] != valid[:-1]) + 1).tolist()
        for start, end in zip([0, *changes], [*changes, len(valid)], strict=True):
            if valid[start]:
                after_gap[start:end], has_right_offset[start:end] = self._check_offsets(
                    chunk, start, end
                )
            else:
                self.add_unreadable()
        self.batch_count += len(valid)
        self._count(chunk.batches.where(valid))
        self._check_leader_epochs(chunk, valid)
        return CheckedOffsets(after_gap, has_right_offset)

    def compare_with_entry(self, record_ms: tuple[int, int] | None) -> None:
        """Compare what was counted with the entry, after the whole segment was read.

        Args:
            record_ms: The smallest and largest timestamp of the records; None if they were not
                decoded.
        """
        entry = self.entry
        if self.is_dense and not self.findings.has("offset"):
            self._compare("next_offset", self.next_offset, self.end_offset)
        self._compare("batch_count", self.batch_count, entry["batch_count"])
        # How many records a wrapper of an old format has is not in its header.
        if not self.has_wrappers or self.record_count > entry["record_count"]:
            self._compare("record_count", self.record_count, entry["record_count"])
        if self.is_plain:
            self._compare_timestamps(record_ms)
        codecs = sorted(CODEC_NAMES[codec] for codec in self.codecs if codec < len(CODEC_NAMES))
        if self.is_append and codecs and codecs != [entry["codec"]]:
            self._compare("codec", " and ".join(codecs), entry["codec"])
        if not self.is_append and not self.findings.has("epoch"):
            self._compare("leader_epoch", self.leader_epoch, entry["leader_epoch"])
        entry_ids = {producer_id for producer_id in entry["producer_ids"] if producer_id >= 0}
        if self.producer_ids != entry_ids:
            different = sorted(self.producer_ids ^ entry_ids)[:3]
            self.findings.add(
                "entry",
                f"the batches have {len(self.producer_ids)} producer ids and producerIds says "
                f"{len(entry_ids)}; only one of the two has {', '.join(map(str, different))}",
            )

    def _compare_timestamps(self, record_ms: tuple[int, int] | None) -> None:
        if not self.record_count:
            return
        min_ms = self.entry["min_timestamp_ms"]
        self._compare("max_timestamp_ms", self.max_timestamp_ms, self.entry["max_timestamp_ms"])
        if record_ms is not None and self.is_append:
            self._compare("min_timestamp_ms", record_ms[0], min_ms)
        elif min_ms > max(self.min_timestamp_ms, v2.NO_TIMESTAMP):
            self._compare("min_timestamp_ms", self.min_timestamp_ms, min_ms)

    def _compare(self, column: str, in_file: object, in_entry: object) -> None:
        if in_file != in_entry:
            name = JSON_NAMES[column]
            self.findings.add("entry", f"the file says {in_file} and the commit {name} {in_entry}")

    def _check_offsets(self, chunk: Chunk, start: int, end: int) -> tuple[Mask, Mask]:
        """Check the offsets of batches that follow each other.

        Returns:
            Which batches come after a gap; which have the offsets that are due.
        """
        batches = chunk.batches.slice(start, end)
        if self.is_dense:
            expected, errors = self._due_offsets(batches)
            is_wrong = errors != 0
            # A batch that is as far off as the one before it is the same finding.
            is_reported = is_wrong & (errors != np.append(self.offset_error, errors[:-1]))
            self.offset_error = int(errors[-1])
        else:
            is_reported = is_wrong = self._is_outside_or_back(batches)
            expected = np.append(self.next_offset, batches.next_offsets[:-1])
            self.next_offset = int(batches.next_offsets[-1])
        for number in np.flatnonzero(is_reported).tolist():
            due = (
                f"{expected[number]} is due"
                if self.is_dense
                else f"{expected[number]} is the lowest and {self.end_offset - 1} the highest"
            )
            self.findings.add(
                "offset",
                f"the batch has offsets {batches.base_offsets[number]} to "
                f"{batches.next_offsets[number] - 1} in the file, where {due}",
                _position(chunk, start + number),
                int(expected[number]) + self.entry["offset_shift"],
            )
        after_gap = is_reported.copy() if self.is_dense else np.ones(len(batches), np.bool_)
        after_gap[0] |= self.after_gap
        self.after_gap = False
        return after_gap, ~is_wrong

    def _due_offsets(self, batches: v2.Batches) -> tuple[Longs, Longs]:
        """Return the offset that is due for each batch, and how far its own is from that."""
        base_offsets = batches.base_offsets
        spans = batches.headers["last_offset_delta"].astype(np.int64) + 1
        if self.after_gap:  # What was not read may have had any offsets up to the entry's end.
            min_offset = self.next_offset + self.offset_error
            self.next_offset = min(max(min_offset, int(base_offsets[0])), self.end_offset)
            self.offset_error = 0
        expected = self.next_offset + np.cumsum(spans) - spans
        self.next_offset = int(expected[-1]) + int(spans[-1])
        return expected, base_offsets - expected

    def _is_outside_or_back(self, batches: v2.Batches) -> Mask:
        """Return which batches are outside the segment, or go back before the one before them."""
        next_offsets = batches.next_offsets
        # The header of a wrapper has its last offset alone.
        is_wrapper = batches.headers["count"] == v2.WRAPPER_COUNT
        known_offsets = np.where(is_wrapper, next_offsets - 1, batches.base_offsets)
        outside: Mask = (known_offsets < self.first_offset) | (next_offsets > self.end_offset)
        goes_back = known_offsets < np.append(self.next_offset, next_offsets[:-1])
        after_outside = np.append(False, outside[:-1])
        is_wrong: Mask = outside | (goes_back & ~after_outside)
        return is_wrong

    def _count(self, batches: v2.Batches) -> None:
        if not len(batches):
            return
        headers, flags = batches.headers, batches.attributes
        is_special = (flags & (v2.CONTROL | v2.TRANSACTIONAL)) != 0
        self.is_plain &= not (is_special.any() or batches.is_legacy.any())
        counts = headers["count"].astype(np.int64)
        is_data = (flags & v2.CONTROL) == 0
        self.has_wrappers |= bool((counts == v2.WRAPPER_COUNT).any())
        is_aborted = is_aborted_by_index(batches, self._aborted)
        self.record_count += int(counts[is_data & (counts > 0) & ~is_aborted].sum())
        self.codecs.update(np.unique(flags[counts != 0] & v2.CODEC_MASK).tolist())
        ids = np.unique(headers["producer_id"].astype(np.int64))
        self.producer_ids.update(ids[ids >= 0].tolist())
        self.leader_epoch = max(self.leader_epoch, int(headers["leader_epoch"].max()))
        min_ms, max_ms = header_timestamp_range(batches)
        self.min_timestamp_ms = min(self.min_timestamp_ms, min_ms)
        self.max_timestamp_ms = max(self.max_timestamp_ms, max_ms)

    def _check_leader_epochs(self, chunk: Chunk, valid: Mask) -> None:
        """Compare the batches of an append with its leader epoch, which the CRC does not cover."""
        if not self.is_append:
            return
        epochs, epoch = chunk.batches.headers["leader_epoch"], self.entry["leader_epoch"]
        for number in np.flatnonzero(valid & (epochs != epoch)).tolist():
            self.findings.add(
                "epoch",
                f"the batch has leader epoch {epochs[number]} and the commit leaderEpoch {epoch}",
                _position(chunk, number),
            )


def _position(chunk: Chunk, number: int) -> int:
    return chunk.position + int(chunk.batches.starts[number])
