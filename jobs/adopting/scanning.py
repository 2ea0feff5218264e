"""What the bytes of one of a broker's segments say: all that its entry has to, and who is open.

The rule: every batch has to keep its CRC and to lie where its segment says. What became of a
transaction its segment alone cannot always tell, so two things are handed on: the data that no
marker follows here, and each producer's first marker here, which decides for the segments before.
(docs/format.md, 6, 10 and 11.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import google_crc32c
import numpy as np

from klog.connector.log.entries import MOST_PRODUCERS
from klog.connector.log.segment import Chunk, located
from klog.errors import CorruptRecordError
from klog.logformat import batch as v2
from klog.logformat.codecs import NAMES
from klog.logformat.control import ABORT
from klog.logformat.counting import LATEST_MS, data_counts, header_times
from klog.logformat.index import Longs, Mask
from klog.logformat.transactions import (
    aborted_by_index,
    is_control,
    is_transactional_data,
    markers,
)


@dataclass(frozen=True, slots=True)
class Scanned:
    """A segment's facts, in the words of an entry; offsets are the log's.

    `records` are all data records, `hidden` those of them that are known to be aborted. `aborted`
    has three numbers a transaction, as an entry has them. `undecided` gives for each producer the
    first offset and the number of its records behind its last marker here, `first_markers` offset
    and kind of its first one.
    """

    size_bytes: int
    crc32c: int
    records: int
    hidden: int
    batches: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    leader_epoch: int
    codec: str
    producer_ids: tuple[int, ...]
    aborted: tuple[tuple[int, int, int], ...]
    undecided: Mapping[int, tuple[int, int]]
    first_markers: Mapping[int, tuple[int, int]]


@dataclass(slots=True)
class Scan:
    """A segment being looked at, its chunks given in order; offsets from `base` to before `limit`.

    `indexed` are the aborted transactions that indexes know, as `rows_of` gives them.
    """

    base: int
    limit: int
    indexed: Longs
    size_bytes: int = 0
    _crc32c: int = 0
    _records: int = 0
    _hidden: int = 0
    _batches: int = 0
    _times: tuple[int, int] = (LATEST_MS, v2.NO_TIMESTAMP)
    _leader_epoch: int = v2.NONE_SET
    _codec: int = 0
    _producers: set[int] = field(default_factory=set)
    _aborted: dict[tuple[int, int], int] = field(default_factory=dict)
    _open: dict[int, tuple[int, int]] = field(default_factory=dict)
    _first_markers: dict[int, tuple[int, int]] = field(default_factory=dict)

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk; raises `CorruptRecordError` with the position in the file."""
        batches = chunk.batches
        with located(chunk.position):
            v2.check_crcs(chunk.data, batches)
            self._check_places(batches)
            counts = data_counts(chunk.data, batches)
            self._take_transactions(chunk.data, batches, counts)
        mine = np.frombuffer(chunk.data, np.uint8)[: int(batches.ends[-1])]
        self._crc32c = google_crc32c.extend(self._crc32c, mine)
        self.size_bytes = chunk.end
        self._batches += len(batches)
        self._records += int(counts.sum())
        self._take_headers(batches)

    def done(self) -> Scanned:
        """Give the facts."""
        least, most = self._times
        return Scanned(
            self.size_bytes,
            self._crc32c,
            self._records,
            self._hidden,
            self._batches,
            max(min(least, most), v2.NO_TIMESTAMP),
            max(most, v2.NO_TIMESTAMP),
            self._leader_epoch,
            NAMES[self._codec],
            tuple(sorted(self._producers)[:MOST_PRODUCERS]),
            tuple((producer, first, last) for (producer, last), first in self._aborted.items()),
            self._open,
            self._first_markers,
        )

    def _check_places(self, batches: v2.Batches) -> None:
        lowest = np.where(batches.is_legacy, batches.base_offsets, batches.lowest_offsets)
        wrong = (lowest < self.base) | (batches.next_offsets > self.limit)
        wrong |= (batches.attributes & v2.CODEC_MASK) >= len(NAMES)
        for number in np.flatnonzero(wrong).tolist():
            raise CorruptRecordError(
                f"a batch of offsets {lowest[number]} to {batches.next_offsets[number] - 1}, codec "
                f"{int(batches.attributes[number]) & v2.CODEC_MASK}, where offsets are from "
                f"{self.base} to before {self.limit}",
                int(batches.starts[number]),
            )

    def _take_headers(self, batches: v2.Batches) -> None:
        headers, flags = batches.headers, batches.attributes
        ids = np.unique(headers["producer_id"].astype(np.int64))
        self._producers.update(ids[ids >= 0].tolist())
        self._leader_epoch = max(self._leader_epoch, int(headers["leader_epoch"].max()))
        least, most = header_times(batches)
        self._times = min(self._times[0], least), max(self._times[1], most)
        data = np.flatnonzero((headers["count"] != 0) & ~is_control(batches))
        if len(data):
            self._codec = int(flags[data[-1]]) & v2.CODEC_MASK

    def _take_transactions(self, data: bytes, batches: v2.Batches, counts: Longs) -> None:
        """Follow the transactions through a chunk, batch by batch where there are any."""
        transactional = is_transactional_data(batches)
        transactional |= is_control(batches) & (batches.headers["producer_id"] >= 0)
        if not transactional.any():
            return
        own, counts = batches.where(transactional), counts[transactional]
        known = self._take_indexed(own, counts)
        kinds = {offset: kind for offset, _, kind in markers(data, own)}
        control = is_control(own)
        offsets, ids = own.base_offsets.tolist(), own.headers["producer_id"].tolist()
        for number in np.flatnonzero(~known).tolist():
            offset, producer = offsets[number], ids[number]
            if not control[number]:
                first, records = self._open.get(producer, (offset, 0))
                self._open[producer] = first, records + int(counts[number])
            elif offset in kinds:
                self._take_marker(producer, offset, kinds[offset])

    def _take_indexed(self, own: v2.Batches, counts: Longs) -> Mask:
        """Hide the data that indexes call aborted; tells which batches those are."""
        known = aborted_by_index(own, self.indexed)
        if known.any():
            self._hidden += int(counts[known].sum())
            ids = set(own.headers["producer_id"][known].tolist())
            low, high = own.base_offsets[0], own.base_offsets[-1]
            reach = (self.indexed[:, 1] <= high) & (self.indexed[:, 2] >= low)
            for producer, first, last in self.indexed[reach].tolist():
                if producer in ids:
                    self._aborted.setdefault((producer, last), first)
        return known

    def _take_marker(self, producer: int, offset: int, kind: int) -> None:
        self._first_markers.setdefault(producer, (offset, kind))
        first, records = self._open.pop(producer, (-1, 0))
        if kind == ABORT and first >= 0:
            self._aborted[producer, offset] = first
            self._hidden += records
