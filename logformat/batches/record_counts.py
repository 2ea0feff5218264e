"""How many data records batches have, and from when to when, by their headers.

The rule: a header is believed, except for the count of a wrapper, which has to be read
(docs/format.md, 2 and 4).
"""

from __future__ import annotations

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.decode_records import decode_parts

MAX_TIMESTAMP_MS = (1 << 63) - 1
"""The smallest timestamp of no records."""


def data_record_counts(data: bytes, batches: v2.Batches) -> Longs:
    """Return the number of data records of each batch, 0 for a control batch.

    Args:
        data: The buffer of the batches.
        batches: The batches.

    Raises:
        CorruptRecordError: A wrapper cannot be read; its position is that of the wrapper.
    """
    counts: Longs = np.where(batches.is_control, 0, batches.headers["count"].astype(np.int64))
    is_wrapper = counts == v2.WRAPPER_COUNT
    if is_wrapper.any():
        wrappers = batches.where(is_wrapper)
        next_offsets, message_counts = wrappers.next_offsets, np.zeros(len(wrappers), np.int64)
        for part in decode_parts(data, wrappers, ()):
            np.add.at(message_counts, np.searchsorted(next_offsets, part.offset, "right"), 1)
        counts[is_wrapper] = message_counts
    return counts


def header_timestamp_range(batches: v2.Batches) -> tuple[int, int]:
    """Return the smallest and the largest timestamp in headers, in ms.

    A header has the timestamp of the first record, which need not be the smallest, and the largest
    one. A batch that a compaction has emptied has only the largest, which is no longer a record's.

    Args:
        batches: The batches.

    Returns:
        `MAX_TIMESTAMP_MS` and -1 if there are no timestamps.
    """
    headers, attributes = batches.headers, batches.attributes
    max_timestamps = headers["max_timestamp"].astype(np.int64)
    # With one of these bits the base timestamp is not a record's.
    has_other_base = (attributes & (v2.LOG_APPEND_TIME | v2.DELETE_HORIZON)) != 0
    base_timestamps = headers["base_timestamp"].astype(np.int64)
    first_timestamps = np.where(has_other_base, max_timestamps, base_timestamps)
    return (
        int(first_timestamps[headers["count"] != 0].min(initial=MAX_TIMESTAMP_MS)),
        int(max_timestamps.max(initial=v2.NO_TIMESTAMP)),
    )
