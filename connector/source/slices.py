"""Slices, the unit of reading: a byte range of one segment with the offsets wanted from it.

A slice is a plain dict, because Spark carries it:

    topic, partition           of the records
    root, topic_id             the root, as it was given, and whose topic it is
    path, identity, stamp      of the file the slice lies in, as planned; no stamp while it grows;
                               no identity where a commit says what the file is
    base_offset                of the segment, as the file says it
    offset_shift               what is added to the offsets that the file says
    file_bytes, index_bytes,   of the segment and its offset index, as its commit says; -1 where
    crc32c                     nothing does, no index where none is to be believed
    torn_bytes                 in the file behind the segment: a broker's torn append
    begin, end                 positions: the bytes to read; of a committed segment all of them,
                               until the task has looked into its index
    first_offset               first offset of the batch at `begin`, -1 where that is unknown
    start_offset, end_offset   the records wanted, end exclusive, by the log's offsets
    limit_offset               behind every offset that may stand in these bytes
    committed_only             whether aborted transactions are left out
    aborted                    those that a `.txnindex` or a commit says, each a list:
                               [producer id, first offset, last offset]
    markers_until              the log end, before which lies the marker of each transaction that
                               is decided; -1 where `aborted` has all that were aborted

`first_offset`, `limit_offset` and `aborted` are as the file says them. Many slices that differ in
few fields are one run: the fields they share, and under `each` a list for each other field. So a
plan of a million segments makes a few lists, and a task expands its own run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

Slice: TypeAlias = dict[str, Any]
Task: TypeAlias = list[dict[str, Any]]
"""Slices and runs, in order."""

TARGET_BYTES = 64 << 20
"""A task's share: some seconds of decoding, and small beside a segment."""
MOST_TASKS = 10_000
"""A driver holds them all: of a larger read each has more than its share."""
WHOLE_BYTES = 256 << 10
"""Up to here a segment is read whole rather than looked up in its index."""
EACH = "each"


class ChangedError(Exception):
    """The bytes under a slice are no longer those that were planned."""


def expanded(task: Iterable[dict[str, Any]]) -> Iterator[Slice]:
    """Give the slices of a task, those of its runs one by one."""
    for one in task:
        each = one.get(EACH)
        if each is None:
            yield one
            continue
        shared = {name: value for name, value in one.items() if name != EACH}
        for values in zip(*each.values(), strict=True):
            yield shared | dict(zip(each, values, strict=True))


def span(piece: Slice) -> int:
    """Give how many offsets a slice wants."""
    return int(piece["end_offset"] - piece["start_offset"])
