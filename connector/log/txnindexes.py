"""What the transaction indexes of a raw partition say was aborted.

The rule: a `.txnindex` that is there and well-formed is believed; of one that is missing or
malformed the control batches have to say what it would (docs/format.md, 8.3, seen 27).
"""

from __future__ import annotations

from klog.connector.log.beside import read_beside
from klog.connector.log.partition import RawPartition
from klog.logformat.transaction_index import read_aborted


def aborted_by_indexes(log: RawPartition, start: int, end: int) -> list[list[int]]:
    """Give the aborted transactions that reach into a range of offsets, each a list of three.

    That is producer id, first offset, offset of the marker.
    """
    found: list[list[int]] = []
    for segment, behind in log.bounded_segments():
        entry = segment.indexes.get("txnindex")
        if behind <= start or entry is None:
            continue
        data = read_beside(log.store, entry.path)
        entries = None if data is None else read_aborted(data, segment.base_offset, behind)
        if entries is not None:
            wanted = (entries.last_offsets >= start) & (entries.first_offsets < end)
            rows = (entries.producer_ids, entries.first_offsets, entries.last_offsets)
            found.extend(map(list, zip(*(row[wanted].tolist() for row in rows), strict=True)))
    return found
