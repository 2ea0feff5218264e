"""Which transactions the transaction indexes of a raw partition call aborted.

The rule: what a well-formed `.txnindex` calls aborted is aborted. One that is missing, malformed or
short of entries leaves it to the control batches (docs/format.md, 8.3, seen 27).
"""

from __future__ import annotations

import numpy as np

from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.logformat.indexes.transaction_index import read_aborted


def read_aborted_transactions(
    log: RawPartition, start_offset: int, end_offset: int
) -> list[list[int]]:
    """Return the aborted transactions that reach into a range of offsets.

    Args:
        log: The partition.
        start_offset: The first offset of the range.
        end_offset: The offset after the last one.

    Returns:
        A list each: producer id, first offset, offset of the marker.
    """
    rows: list[list[int]] = []
    for segment, next_base in log.segments_with_ends():
        entry = segment.indexes.get("txnindex")
        if next_base <= start_offset or entry is None:
            continue
        data = read_companion_file(log.store, entry.path)
        aborted = None if data is None else read_aborted(data, segment.base_offset, next_base)
        if aborted is not None:
            mask = (aborted.last_offsets >= start_offset) & (aborted.first_offsets < end_offset)
            columns = (aborted.producer_ids, aborted.first_offsets, aborted.last_offsets)
            rows.extend(np.stack([column[mask] for column in columns], 1).tolist())
    return rows
