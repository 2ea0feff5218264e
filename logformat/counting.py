"""What the headers of batches tell of their records, together: how many, from when to when.

The rule: a header is believed, but for the count of a wrapper, which has to be opened.
"""

from __future__ import annotations

import numpy as np

from klog.logformat import batch as v2
from klog.logformat.columnar import decode_parts
from klog.logformat.index import Longs
from klog.logformat.transactions import is_control

LATEST_MS = (1 << 63) - 1
"""The least timestamp of no record."""


def data_counts(data: bytes, batches: v2.Batches) -> Longs:
    """Give the number of data records of each batch, 0 for a control batch.

    Raises `CorruptRecordError` with the position in `data` of a wrapper that cannot be opened.
    """
    counts: Longs = np.where(is_control(batches), 0, batches.headers["count"].astype(np.int64))
    wrappers = counts == v2.WRAPPER_COUNT
    if wrappers.any():
        own = batches.where(wrappers)
        ends, found = own.next_offsets, np.zeros(len(own), np.int64)
        for part in decode_parts(data, own, ()):
            np.add.at(found, np.searchsorted(ends, part.offset, "right"), 1)
        counts[wrappers] = found
    return counts


def header_times(batches: v2.Batches) -> tuple[int, int]:
    """Give the least and the largest timestamp that headers tell, in milliseconds.

    A batch tells its first record's, which need not be its oldest's, and its largest; one that a
    compaction has emptied only its largest, which no record has now. `LATEST_MS` and -1 for none.
    """
    headers, flags = batches.headers, batches.attributes
    largest = headers["max_timestamp"].astype(np.int64)
    # With one of these bits the base timestamp is none of a record's.
    stamped = (flags & (v2.LOG_APPEND_TIME | v2.DELETE_HORIZON)) != 0
    first = np.where(stamped, largest, headers["base_timestamp"].astype(np.int64))
    return (
        int(first[headers["count"] != 0].min(initial=LATEST_MS)),
        int(largest.max(initial=v2.NO_TIMESTAMP)),
    )
