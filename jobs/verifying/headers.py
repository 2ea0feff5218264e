"""What the headers of a segment's batches say, held to each other and to the commit's entry.

The rule: an append's batches lie side by side, so each says its own offset and, by how many there
are, the offset of the next; what a rewrite made may have gaps and never goes back. A header under
a bad CRC says nothing. What is counted over the whole segment is compared only if all of it could
be read: else the damage is told, not what follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from klog.connector.log.entries import JSON_NAMES, Entry, aborted_of
from klog.connector.log.segment import Chunk
from klog.jobs.verifying.findings import Findings
from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.counting import LATEST_MS, header_times
from klog.logformat.index import Longs, Mask
from klog.logformat.transactions import aborted_by_index, rows_of

_MOST_OFFSET = 1 << 62


@dataclass(slots=True)
class Headers:
    """What is known of a segment so far; offsets are the file's.

    `next_offset` is the one behind the last batch, as the batches before it have it, and `strays`
    how far the last one's own offset was from that. `loose` says that what lay directly before the
    next batch is not known.
    """

    entry: Entry
    findings: Findings
    next_offset: int = field(init=False)
    strays: int = 0
    loose: bool = False
    record_count: int = 0
    batch_count: int = 0
    max_timestamp_ms: int = v2.NO_TIMESTAMP
    least_timestamp_ms: int = LATEST_MS
    leader_epoch: int = -1
    codecs: set[int] = field(default_factory=set)
    producer_ids: set[int] = field(default_factory=set)
    is_plain: bool = True
    has_legacy: bool = False
    has_wrappers: bool = False
    _aborted: Longs = field(init=False)

    def __post_init__(self) -> None:
        """Begin where the entry does."""
        self.next_offset = self.first_offset
        self._aborted = rows_of(aborted_of(self.entry))

    @property
    def first_offset(self) -> int:
        """Give the first offset as the file has it."""
        return int(self.entry["base_offset"] - self.entry["offset_shift"])

    @property
    def end_offset(self) -> int:
        """Give the offset behind the last one as the file has it."""
        return int(self.entry["next_offset"] - self.entry["offset_shift"])

    @property
    def can_be(self) -> bool:
        """Tell whether the file could have such offsets, with room to count on."""
        return -_MOST_OFFSET <= self.first_offset <= self.end_offset <= _MOST_OFFSET

    @property
    def is_append(self) -> bool:
        """Tell whether a writer of klog's made the segment, and nothing has rewritten it."""
        return bool(self.entry["origin"] == "append")

    @property
    def is_dense(self) -> bool:
        """Tell whether every offset has a record."""
        offsets = self.entry["next_offset"] - self.entry["base_offset"]
        merged = self.entry["origin"] == "merge" and self.entry["record_count"] == offsets
        return self.is_append or (merged and not self.has_legacy)

    def broken(self, chunk: Chunk, good: Mask) -> Mask:
        """Tell which good batches have headers that none of this segment can have, and say so."""
        headers = chunk.batches.headers
        deltas = headers["last_offset_delta"].astype(np.int64)
        counts = headers["count"].astype(np.int64)
        legacy = chunk.batches.is_legacy & good
        self.has_legacy |= bool(legacy.any())
        odd = good & ~legacy & ((deltas < 0) | (counts < 0) | (counts > deltas + 1))
        if self.is_dense:
            odd |= good & ~legacy & (counts != deltas + 1)
        for number in np.flatnonzero(odd).tolist():
            what = f"a batch of {counts[number]} records whose last offset delta is "
            self.findings.add("header", f"{what}{deltas[number]}", self._at(chunk, number))
        if self.is_append:
            for number in np.flatnonzero(legacy).tolist():
                what = f"magic {headers['magic'][number]}, and klog writes magic {v2.MAGIC}"
                self.findings.add("magic", what, self._at(chunk, number))
            odd |= legacy
        return odd

    def take(self, chunk: Chunk, good: Mask) -> tuple[Mask, Mask]:
        """Take the batches that are `good`.

        Gives those that do not directly follow another, and those whose offsets are believed.
        """
        loose, sound = np.zeros(len(good), np.bool_), good.copy()
        self.has_wrappers |= bool((chunk.batches.headers["count"] == v2.WRAPPER_COUNT)[good].any())
        changes = np.flatnonzero(good[1:] != good[:-1]) + 1
        for begin, end in zip([0, *changes.tolist()], [*changes.tolist(), len(good)], strict=True):
            if good[begin]:
                loose[begin:end], sound[begin:end] = self._follow(chunk, begin, end)
            else:
                self.loose = True
        self.batch_count += len(good)
        self._count(chunk.batches.where(good))
        self._check_epochs(chunk, good)
        return loose, sound

    def compare(self, records: tuple[int, int] | None) -> None:
        """Compare what was counted with the entry; `records` are their least and largest times."""
        said = dict(self.entry)
        if self.is_dense and not self.findings.has("offset"):
            self._differs("next_offset", self.next_offset, self.end_offset)
        self._differs("batch_count", self.batch_count, said["batch_count"])
        # How many records a wrapper of an old format has, only opening it tells.
        if not self.has_wrappers or self.record_count > said["record_count"]:
            self._differs("record_count", self.record_count, said["record_count"])
        if self.is_plain:
            self._compare_times(records)
        codecs = sorted(NAMES[codec] for codec in self.codecs if codec < len(NAMES))
        if self.is_append and codecs and codecs != [said["codec"]]:
            self._differs("codec", " and ".join(codecs), said["codec"])
        if not self.is_append and not self.findings.has("epoch"):
            self._differs("leader_epoch", self.leader_epoch, said["leader_epoch"])
        mine, theirs = self.producer_ids, {one for one in said["producer_ids"] if one >= 0}
        if mine != theirs:
            some = sorted(mine ^ theirs)[:3]
            self.findings.add(
                "entry",
                f"the batches have {len(mine)} producer ids and producerIds says {len(theirs)}; "
                f"only one of the two has {', '.join(map(str, some))}",
            )

    def _compare_times(self, records: tuple[int, int] | None) -> None:
        if not self.record_count:
            return
        least, most = self.entry["min_timestamp_ms"], self.entry["max_timestamp_ms"]
        self._differs("max_timestamp_ms", self.max_timestamp_ms, most)
        if records is not None and self.is_append:
            self._differs("min_timestamp_ms", records[0], least)
        elif least > max(self.least_timestamp_ms, v2.NO_TIMESTAMP):
            self._differs("min_timestamp_ms", self.least_timestamp_ms, least)

    def _differs(self, name: str, found: object, said: object) -> None:
        if found != said:
            what = f"the file says {found} and the commit {JSON_NAMES[name]} {said}"
            self.findings.add("entry", what)

    def _at(self, chunk: Chunk, number: int) -> int:
        return chunk.position + int(chunk.batches.starts[number])

    def _follow(self, chunk: Chunk, begin: int, end: int) -> tuple[Mask, Mask]:
        """Compare the offsets of batches that lie side by side.

        Gives those behind a gap, and those whose offsets are what they should be.
        """
        some = chunk.batches.part(begin, end)
        if self.is_dense:
            expected, strays = self._due(some)
            wrong = strays != 0
            told = wrong & (strays != np.append(self.strays, strays[:-1]))
            self.strays = int(strays[-1])
        else:
            told = wrong = self._outside(some)
            expected = np.append(self.next_offset, some.next_offsets[:-1])
            self.next_offset = int(some.next_offsets[-1])
        for number in np.flatnonzero(told).tolist():
            self.findings.add(
                "offset",
                f"the batch has offsets {some.base_offsets[number]} to "
                f"{some.next_offsets[number] - 1} in the file, where {expected[number]} is "
                f"{'due' if self.is_dense else f'the least and {self.end_offset - 1} the most'}",
                self._at(chunk, begin + number),
                int(expected[number]) + self.entry["offset_shift"],
            )
        loose = told.copy() if self.is_dense else np.ones(len(some), np.bool_)
        loose[0] |= self.loose
        self.loose = False
        return loose, ~wrong

    def _due(self, some: v2.Batches) -> tuple[Longs, Longs]:
        """Give the offset that is due for each batch, and how far its own is from that."""
        bases, spans = some.base_offsets, some.headers["last_offset_delta"].astype(np.int64) + 1
        if self.loose:  # What was not read may have had any offsets up to the entry's end.
            least = self.next_offset + self.strays
            self.next_offset = min(max(least, int(bases[0])), self.end_offset)
            self.strays = 0
        expected = self.next_offset + np.cumsum(spans) - spans
        self.next_offset = int(expected[-1]) + int(spans[-1])
        return expected, bases - expected

    def _outside(self, some: v2.Batches) -> Mask:
        """Tell which batches leave the segment or go back behind the one before."""
        bases, nexts = some.lowest_offsets, some.next_offsets
        bases = np.where(some.is_legacy, np.maximum(bases, self.first_offset), bases)
        outside: Mask = (bases < self.first_offset) | (nexts > self.end_offset)
        back = bases < np.append(self.next_offset, nexts[:-1])
        found: Mask = outside | (back & ~np.append(False, outside[:-1]))
        return found

    def _count(self, good: v2.Batches) -> None:
        if not len(good):
            return
        headers, flags = good.headers, good.attributes
        special = (flags & (v2.CONTROL | v2.TRANSACTIONAL)) != 0
        self.is_plain &= not (special.any() or good.is_legacy.any())
        counts = headers["count"].astype(np.int64)
        filled = counts != 0
        data = (flags & v2.CONTROL) == 0
        self.has_wrappers |= bool((counts == v2.WRAPPER_COUNT).any())
        aborted = aborted_by_index(good, self._aborted)
        self.record_count += int(counts[data & (counts > 0) & ~aborted].sum())
        self.codecs.update(np.unique(flags[filled] & v2.CODEC_MASK).tolist())
        ids = np.unique(headers["producer_id"].astype(np.int64))
        self.producer_ids.update(ids[ids >= 0].tolist())
        self.leader_epoch = max(self.leader_epoch, int(headers["leader_epoch"].max()))
        least, most = header_times(good)
        self.least_timestamp_ms = min(self.least_timestamp_ms, least)
        self.max_timestamp_ms = max(self.max_timestamp_ms, most)

    def _check_epochs(self, chunk: Chunk, good: Mask) -> None:
        """Hold batches to an append's one leader epoch, which lies outside their CRC."""
        if not self.is_append:
            return
        epochs = chunk.batches.headers["leader_epoch"]
        said = self.entry["leader_epoch"]
        for number in np.flatnonzero(good & (epochs != said)).tolist():
            what = f"the batch has leader epoch {epochs[number]} and the commit leaderEpoch {said}"
            self.findings.add("epoch", what, self._at(chunk, number))
