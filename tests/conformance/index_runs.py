"""Cases of the three index files: write entries, read the file, look entries up."""

from __future__ import annotations

from collections.abc import Sequence

from klog.logformat.indexes.abstract_index import max_entries
from klog.logformat.indexes.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.indexes.offset_index import (
    OffsetIndex,
    check_offset_index,
    decode_offset_index,
    empty_offset_index,
    encode_offset_index,
)
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY
from klog.logformat.indexes.time_index import (
    TimeIndex,
    check_time_index,
    decode_time_index,
    empty_time_index,
    encode_time_index,
)
from klog.logformat.indexes.transaction_index import (
    NO_ABORTED_TRANSACTIONS,
    AbortedTransaction,
    check_aborted,
    decode_aborted,
    encode_aborted,
)
from tests.support.broker_loader import index_updates
from tests.support.broker_loader.index_updates import aborted_entries

Pairs = Sequence[tuple[int, int]]
Transactions = Sequence[tuple[int, int, int, int]]


def offset_index(base: int, entries: Pairs) -> OffsetIndex:
    """Append to a new index, write it, open it again."""
    return decode_offset_index(
        encode_offset_index(index_updates.append_offsets(empty_offset_index(base), entries)), base
    )


def offset_lookups(base: int, entries: Pairs, offsets: Sequence[int]) -> Pairs:
    index = offset_index(base, entries)
    return [index.lookup(offset) for offset in offsets]


def offset_entries(base: int, entries: Pairs, numbers: Sequence[int]) -> Pairs:
    index = offset_index(base, entries)
    return [index.entry(number) for number in numbers]


def append_offsets(base: int, entries: Pairs, more: Pairs, index_bytes: int) -> Pairs:
    """Append to an index that was opened with a size of `index_bytes`."""
    index = index_updates.append_offsets(offset_index(base, entries), more, index_bytes)
    return [index.entry(number) for number in range(len(index))]


def upper_bounds(base: int, entries: Pairs, fetches: Pairs) -> list[int | None]:
    """Return the offset of the bound of each (position, size) of a fetch."""
    index = offset_index(base, entries)
    bounds = [index_updates.fetch_upper_bound(index, position, size) for position, size in fetches]
    return [bound if bound is None else bound.offset for bound in bounds]


def reopen_offsets(base: int, entries: Pairs) -> tuple[int, int]:
    index = offset_index(base, entries)
    return index.last_offset, len(index)


def truncate_offsets(base: int, entries: Pairs, offsets: Sequence[int]) -> Pairs:
    """Truncate one time after the other; return (last offset, entries) after each."""
    index = offset_index(base, entries)
    seen = []
    for offset in offsets:
        index = index_updates.truncate_offsets(index, offset)
        seen.append((index.last_offset, len(index)))
    return seen


def check_offsets(base: int, data: bytes) -> None:
    check_offset_index(data, base)


def write_offsets(base: int, entries: Pairs, index_bytes: int) -> tuple[str, int, int]:
    """Return the bytes, and how many bytes and entries the preallocated file has."""
    room = max_entries(index_bytes, OFFSET_ENTRY.itemsize)
    written = encode_offset_index(
        index_updates.append_offsets(empty_offset_index(base), entries, index_bytes)
    )
    return written.hex(), room * OFFSET_ENTRY.itemsize, room


def time_index(base: int, entries: Pairs, index_bytes: int = 360, reserved: int = 1) -> TimeIndex:
    """Append to a new index, write it, open it again."""
    index = index_updates.append_times(
        empty_time_index(base), entries, index_bytes, reserved=reserved
    )
    return decode_time_index(encode_time_index(index), base)


def time_lookups(base: int, entries: Pairs, timestamps: Sequence[int]) -> Pairs:
    index = time_index(base, entries)
    return [index_updates.lookup_time(index, timestamp) for timestamp in timestamps]


def time_entries(base: int, entries: Pairs, numbers: Sequence[int]) -> Pairs:
    index = time_index(base, entries)
    return [index.entry(number) for number in numbers]


def truncate_times(base: int, entries: Pairs, offset: int) -> int:
    return len(index_updates.truncate_times(time_index(base, entries), offset))


def append_times(
    base: int, entries: Pairs, more: Pairs, index_bytes: int, reserved: int
) -> tuple[int, int]:
    """Append to a full index; return the last entry."""
    index = time_index(base, entries, index_bytes)
    return index_updates.append_times(index, more, index_bytes, reserved=reserved).last_entry


def full_times(base: int, entries: Pairs, index_bytes: int) -> bool:
    return index_updates.is_full_of_times(time_index(base, entries, index_bytes), index_bytes)


def check_times(base: int, data: bytes) -> None:
    check_time_index(data, base)


def last_time(base: int, entries: Pairs) -> tuple[int, int]:
    return time_index(base, entries).last_entry


def resized(before_bytes: int, after_bytes: int) -> bool:
    """Return whether another `segment.index.bytes` is another number of entries."""
    entry = TIME_ENTRY.itemsize
    return max_entries(before_bytes, entry) != max_entries(after_bytes, entry)


def entry_bytes(entries: Pairs) -> int:
    return len(encode_time_index(time_index(0, entries))) // len(entries)


def write_times(base: int, entries: Pairs) -> str:
    return encode_time_index(index_updates.append_times(empty_time_index(base), entries)).hex()


def transactions(rows: Transactions, more: Transactions = ()) -> Transactions:
    """Append to a new index, write it, open it again, append more; return all."""
    first = NO_ABORTED_TRANSACTIONS.with_entries([AbortedTransaction(*row) for row in rows])
    index = decode_aborted(encode_aborted(first))
    return aborted_entries(index.with_entries([AbortedTransaction(*row) for row in more]))


def collect(rows: Transactions, fetch_offset: int, upper_bound: int) -> tuple[Transactions, bool]:
    index = NO_ABORTED_TRANSACTIONS.with_entries([AbortedTransaction(*row) for row in rows])
    collected, is_complete = index_updates.collect_aborted(index, fetch_offset, upper_bound)
    return aborted_entries(collected), is_complete


def truncate_transactions(rows: Transactions, offset: int) -> Transactions:
    index = NO_ABORTED_TRANSACTIONS.with_entries([AbortedTransaction(*row) for row in rows])
    return aborted_entries(index_updates.truncate_aborted(index, offset))


def check_transactions(base: int, rows: Transactions) -> None:
    check_aborted(write_transactions(rows), base)


def write_transactions(rows: Transactions) -> bytes:
    return encode_aborted(
        NO_ABORTED_TRANSACTIONS.with_entries([AbortedTransaction(*row) for row in rows])
    )


def transactions_hex(rows: Transactions) -> str:
    return write_transactions(rows).hex()
