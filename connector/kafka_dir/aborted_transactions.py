"""Which transactions the transaction indexes of a raw partition call aborted.

The rule: what a well-formed `.txnindex` calls aborted is aborted. One that is missing, malformed or
short of entries leaves it to the control batches (docs/format.md, 8.3, seen 27). No index proves
that it is complete: a segment without aborted transactions has none, and a broker that starts
without one goes on in a new file, whose entries and last stable offsets do not show what was lost.
"""

from __future__ import annotations

import numpy as np

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.logformat.array_types import Longs
from klog.logformat.indexes.transaction_index import parse_aborted


def read_aborted_transactions(log: RawPartition, start_offset: int, end_offset: int) -> Longs:
    """Read the aborted transactions that may have data in a range of offsets.

    Args:
        log: The partition.
        start_offset: The first offset of the range.
        end_offset: The offset after the last one.

    Returns:
        Shape `(transactions, 3)`: producer id, first offset, offset of the marker.
    """
    rows = [np.empty((0, 3), np.int64)]
    for segment, next_base in log.segments_with_ends():
        entry = segment.indexes.get("txnindex")
        if next_base <= start_offset or entry is None:
            continue
        data = read_companion_file(log.store, entry.path)
        aborted = None if data is None else parse_aborted(data, segment.base_offset, next_base)
        if aborted is not None:
            columns = (aborted.producer_ids, aborted.first_offsets, aborted.last_offsets)
            rows.append(rows_between(np.stack(columns, 1), start_offset, end_offset))
    return np.concatenate(rows)


def rows_between(aborted: Longs, start_offset: int, end_offset: int) -> Longs:
    """Return the aborted transactions that may have data in a range of offsets.

    Args:
        aborted: Shape `(transactions, 3)`: producer id, first offset, offset of the marker.
        start_offset: The first offset of the range.
        end_offset: The offset after the last one.
    """
    rows: Longs = aborted[(aborted[:, 2] >= start_offset) & (aborted[:, 1] < end_offset)]
    return rows
