"""Segments that no commit names, and that a lost commit may have added.

The rule: a candidate is a file that is sound from its first byte to its last. The log end at a
file's birth tells an append from what a merge or a compaction wrote: an append begins there, and
after a loss, as the log end that is known may be too low, there or above. Where the log end at its
birth is not known, and for a broker's file, nothing tells them apart: such a file is doubtful.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from klog.connector.log.entries import Entry
from klog.connector.log.log_reader import LogReader
from klog.connector.log.lookup import index_path
from klog.connector.log.paths import SegmentPath, segment_path
from klog.connector.log.segment import chunks
from klog.errors import CorruptRecordError
from klog.jobs.adopting.scanning import Scan
from klog.logformat.names import MAX_OFFSET
from klog.logformat.transactions import rows_of

Attempts = list[list[Entry]]
Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class KnownEnds:
    """Log ends by version, in rising order; above version `exact` they may be too low."""

    ends: Mapping[int, tuple[int, ...]]
    exact: int

    def is_append(self, birth: int | None, partition: int, base: int) -> bool | None:
        """Tell whether a file of this birth and first offset is an append; None if unknown."""
        known = [version for version in self.ends if birth is not None and version <= birth]
        if not known:
            return None
        version = max(known)
        ends = self.ends[version]
        end = ends[partition] if partition < len(ends) else 0
        is_exact = version == birth and version <= self.exact
        return base == end if is_exact else base >= end


@dataclass(frozen=True, slots=True)
class Found:
    """What may be appends to a partition: the segments of each attempt, in order."""

    appends: Attempts
    doubtful: Attempts


@dataclass(frozen=True, slots=True)
class Candidates:
    """Unreferenced segments of a topic, and the log ends that tell appends from others."""

    log: LogReader
    files: Iterable[str]
    known: KnownEnds

    def of_partition(self, partition: int, max_birth: int) -> Found:
        """Return what may be appends to a partition, born at a version up to the highest."""
        attempts: dict[Key, list[SegmentPath]] = {}
        for path in filter(None, map(segment_path, self.files)):
            if path.partition == partition and (path.birth is None or path.birth <= max_birth):
                key = (-1 if path.birth is None else path.birth, path.attempt)
                attempts.setdefault(key, []).append(path)
        found = Found([], [])
        for _, paths in sorted(attempts.items()):
            paths.sort(key=lambda path: path.first_offset)
            first = paths[0]
            is_append = self.known.is_append(first.birth, partition, first.first_offset)
            if is_append is False:
                continue
            entries = [self.entry(path) for path in paths]
            whole = [entry for entry in entries if entry is not None]
            if len(whole) == len(entries) and _are_contiguous(whole):
                (found.doubtful if is_append is None else found.appends).append(whole)
        return found

    def entry(self, path: SegmentPath) -> Entry | None:
        """Read a segment from first byte to last; None if it is not sound."""
        place = self.log.paths.data(str(path))
        scan = Scan(path.first_offset, MAX_OFFSET, rows_of([]))
        next_offset = path.first_offset
        try:
            file = self.log.store.open(place)
            try:
                for chunk in chunks(file, 0, file.size_bytes, path.first_offset):
                    scan.take(chunk)
                    next_offset = int(chunk.batches.next_offsets[-1])
                if scan.size_bytes != file.size_bytes or next_offset == path.first_offset:
                    return None
            finally:
                file.close()
        except (CorruptRecordError, FileNotFoundError):
            return None
        facts = scan.done()
        if facts.records != next_offset - path.first_offset:
            return None
        sizes = {
            one.path.rpartition("/")[2]: one.size_bytes
            for one in self.log.entries(place.rpartition("/")[0])
        }
        name = place.rpartition("/")[2]
        return {
            "partition": path.partition,
            "file": str(path),
            "base_offset": path.first_offset,
            "next_offset": next_offset,
            "offset_shift": 0,
            "size_bytes": facts.size_bytes,
            "index_bytes": sizes.get(index_path(name, "index"), 0),
            "time_index_bytes": sizes.get(index_path(name, "timeindex"), 0),
            "crc32c": facts.crc32c,
            "record_count": facts.records,
            "batch_count": facts.batches,
            "min_timestamp_ms": facts.min_timestamp_ms,
            "max_timestamp_ms": facts.max_timestamp_ms,
            "leader_epoch": facts.leader_epoch,
            "codec": facts.codec,
            "producer_ids": list(facts.producer_ids) or [-1],
            "origin": "append",
        }


def _are_contiguous(entries: list[Entry]) -> bool:
    return all(one["next_offset"] == other["base_offset"] for one, other in pairwise(entries))


MAX_CHAINS = 1000
"""So many rows of attempts are looked at: among more nobody could choose."""


def chains(attempts: Attempts, base: int, end: int) -> Attempts:
    """Return the rows of attempts whose files say that they follow each other from base to end."""
    found: Attempts = []
    open_chains: list[tuple[int, list[Entry]]] = [(base, [])]
    for _ in range(MAX_CHAINS):
        if not open_chains:
            break
        reached, chain = open_chains.pop()
        if reached == end:
            found.append(chain)
            continue
        open_chains += [
            (attempt[-1]["next_offset"], [*chain, *attempt])
            for attempt in attempts
            if attempt[0]["base_offset"] == reached and attempt[-1]["next_offset"] <= end
        ]
    return found


def length(entries: Iterable[Entry]) -> int:
    """Return how many offsets segments have."""
    return sum(entry["next_offset"] - entry["base_offset"] for entry in entries)


def content(entries: Iterable[Entry]) -> tuple[tuple[int, int], ...]:
    """Return what tells the contents of segments apart."""
    return tuple((entry["size_bytes"], entry["crc32c"]) for entry in entries)
