"""From what the segments of a partition say to their entries: who was aborted is decided here.

The rule: data that no marker follows in its own segment is decided by the first marker of its
producer in the segments behind. Where there is none at all the transaction is open: a log is not
taken then, unless it is said what became of such transactions. (docs/format.md, 10 and 11.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from klog.connector.log.entries import Entry
from klog.connector.log.partition import TopicPartition
from klog.jobs.adopting.broker import refuse_open
from klog.jobs.adopting.scanning import Scanned
from klog.logformat.control import ABORT


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a segment's bytes lie in the klog root, and which offsets of the log it stands for."""

    file: str
    base_offset: int
    next_offset: int
    torn_bytes: int = 0
    index_bytes: int = 0
    time_index_bytes: int = 0


def entries_of(
    name: TopicPartition,
    segments: Sequence[tuple[Placed, Scanned]],
    log_end: int,
    open_transactions: str | None,
) -> list[Entry]:
    """Give the entries of a partition's segments, which come in order.

    `open_transactions` is None, `abort` or `commit`. Raises `KlogError` for an open one with None.
    """
    later: dict[int, tuple[int, int]] = {}
    opened: dict[int, int] = {}
    found = []
    for placed, scanned in reversed(segments):
        hidden, aborted = scanned.hidden, list(scanned.aborted)
        for producer, (first, records) in scanned.undecided.items():
            last, kind = later.get(producer, (-1, -1))
            if last < 0:
                opened[producer] = first
                last, kind = log_end - 1, ABORT if open_transactions == "abort" else -1
            if kind == ABORT:
                aborted.append((producer, first, last))
                hidden += records
        later.update(scanned.first_markers)
        found.append(_entry(name, placed, scanned, hidden, aborted))
    if open_transactions is None:
        refuse_open(name, opened)
    return found[::-1]


def _entry(
    name: TopicPartition,
    placed: Placed,
    scanned: Scanned,
    hidden: int,
    aborted: Iterable[tuple[int, int, int]],
) -> Entry:
    ordered = sorted(aborted, key=lambda one: (one[2], one[0]))
    return {
        "partition": name.partition,
        "file": placed.file,
        "base_offset": placed.base_offset,
        "next_offset": placed.next_offset,
        "offset_shift": 0,
        "size_bytes": scanned.size_bytes,
        "index_bytes": placed.index_bytes,
        "time_index_bytes": placed.time_index_bytes,
        "crc32c": scanned.crc32c,
        "record_count": scanned.records - hidden,
        "batch_count": scanned.batches,
        "min_timestamp_ms": scanned.min_timestamp_ms,
        "max_timestamp_ms": scanned.max_timestamp_ms,
        "leader_epoch": scanned.leader_epoch,
        "codec": scanned.codec,
        "producer_ids": list(scanned.producer_ids),
        "origin": "adopt",
        "torn_bytes": placed.torn_bytes,
        "aborted": [number for one in ordered for number in one],
    }
