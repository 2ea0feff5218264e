"""Which aborted transactions the indexes of a raw partition name, and which they may lack.

The rule: what a well-formed `.txnindex` calls aborted is aborted. One that is missing, malformed or
short of entries leaves it to the control batches (docs/format.md, 8.3, seen 27). A segment without
aborted transactions has no such file, so a missing one proves nothing, and entries that the end of
a file has lost do not show. But an entry has the last stable offset after its marker: all
transactions that began below it had ended, and a broker appends entries in the order of the
markers. So the index of that segment has each of them that was aborted in that segment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.logformat.array_types import Longs
from klog.logformat.indexes.transaction_index import parse_aborted


@dataclass(frozen=True, slots=True)
class IndexedAborts:
    """What the transaction indexes of a partition say about a range of offsets.

    Attributes:
        rows: The aborted transactions, a row each: producer id, first offset, offset of the marker.
        base_offsets: The base offset of each segment whose index has entries.
        stable_offsets: The last stable offset after the last marker of each such index.
        log_end: All markers that decide about the range lie before this offset.
    """

    rows: Longs
    base_offsets: Longs
    stable_offsets: Longs
    log_end: int

    def between(self, base_offset: int, next_offset: int) -> list[list[int]]:
        """Return the rows that may have data in a range of offsets.

        Args:
            base_offset: The first offset.
            next_offset: The offset after the last one.
        """
        mask = (self.rows[:, 2] >= base_offset) & (self.rows[:, 1] < next_offset)
        rows: list[list[int]] = self.rows[mask].tolist()
        return rows

    def markers_end_offset(self, base_offset: int, end_offset: int) -> int | None:
        """Return the offset before which the markers lie of transactions that no row names.

        Args:
            base_offset: The base offset of a segment.
            end_offset: The offset after the last one that is wanted of it.

        Returns:
            None if the rows name every aborted transaction with data in that range.
        """
        has_all = (self.base_offsets >= base_offset) & (self.stable_offsets >= end_offset)
        if not has_all.any():
            return self.log_end
        first = int(self.base_offsets[np.argmax(has_all)])
        return None if first == base_offset else first


def read_aborted_transactions(
    log: RawPartition, start_offset: int, end_offset: int
) -> IndexedAborts:
    """Read the indexes that may name aborted transactions with data in a range of offsets.

    Args:
        log: The partition.
        start_offset: The first offset of the range.
        end_offset: The offset after the last one.
    """
    rows, base_offsets, stable_offsets = [np.empty((0, 3), np.int64)], [], []
    for segment, next_base in log.segments_with_ends():
        entry = segment.indexes.get("txnindex")
        if next_base <= start_offset or entry is None:
            continue
        data = read_companion_file(log.store, entry.path)
        aborted = None if data is None else parse_aborted(data, segment.base_offset, next_base)
        if aborted is None or not len(aborted):
            continue
        mask = (aborted.last_offsets >= start_offset) & (aborted.first_offsets < end_offset)
        columns = (aborted.producer_ids, aborted.first_offsets, aborted.last_offsets)
        rows.append(np.stack([column[mask] for column in columns], 1))
        base_offsets.append(segment.base_offset)
        stable_offsets.append(int(aborted.last_stable_offsets.max()))
        if stable_offsets[-1] >= end_offset:
            break  # What began in the range has ended: no later index names it.
    return IndexedAborts(
        np.concatenate(rows),
        np.array(base_offsets, np.int64),
        np.array(stable_offsets, np.int64),
        max(log.log_end, end_offset),
    )
