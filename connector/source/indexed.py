"""Where in a committed segment a slice lies, by the segment's offset index: one read.

The rule: the index is believed, and what it says is checked by the data that is read
(`read.py`). An entry says where an append begins and its last offset, so a slice begins with the
last append that ends before what is wanted, and ends behind the first that reaches its end. A small
segment is read from its start, and so is one whose index is missing or malformed.
"""

from __future__ import annotations

from klog.connector.log.lookup import between, read_index
from klog.connector.source.slices import WHOLE_BYTES, Slice
from klog.connector.store.files import Store


def narrowed(store: Store, piece: Slice) -> Slice:
    """Give a slice with the positions between which its offsets lie; offsets are as in the file."""
    is_all = piece["start_offset"] <= piece["base_offset"]
    is_all &= piece["end_offset"] >= piece["limit_offset"]
    if is_all or not piece["index_bytes"] or piece["file_bytes"] <= WHOLE_BYTES:
        return piece
    index = read_index(
        store, piece["path"], piece["base_offset"], piece["file_bytes"], piece["index_bytes"]
    )
    if index is None or not len(index):
        return piece
    begin, end = between(index, piece["file_bytes"], piece["start_offset"], piece["end_offset"] - 1)
    known = piece["first_offset"] if not begin else -1
    return piece | {"begin": begin, "end": end, "first_offset": known, "crc32c": -1}
