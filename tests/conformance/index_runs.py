"""Cases of the three index files: entries go in, through the file's bytes, and are asked."""

from __future__ import annotations

from collections.abc import Sequence

from klog.logformat.index import capacity
from klog.logformat.offset_index import ENTRY as OFFSET_ENTRY
from klog.logformat.offset_index import (
    OffsetIndex,
    check_offset_index,
    decode_offset_index,
    empty_offset_index,
    encode_offset_index,
)
from klog.logformat.time_index import ENTRY as TIME_ENTRY
from klog.logformat.time_index import (
    TimeIndex,
    check_time_index,
    decode_time_index,
    empty_time_index,
    encode_time_index,
)
from klog.logformat.transaction_index import (
    NONE_ABORTED,
    AbortedTransaction,
    check_aborted,
    decode_aborted,
    encode_aborted,
)

Pairs = Sequence[tuple[int, int]]
Transactions = Sequence[tuple[int, int, int, int]]


def offset_index(base: int, entries: Pairs) -> OffsetIndex:
    """Append to a new index, write it, open it again."""
    return decode_offset_index(
        encode_offset_index(empty_offset_index(base).with_entries(entries)), base
    )


def offset_lookups(base: int, entries: Pairs, offsets: Sequence[int]) -> Pairs:
    index = offset_index(base, entries)
    return [index.lookup(offset) for offset in offsets]


def offset_entries(base: int, entries: Pairs, numbers: Sequence[int]) -> Pairs:
    index = offset_index(base, entries)
    return [index.entry(number) for number in numbers]


def append_offsets(base: int, entries: Pairs, more: Pairs, index_bytes: int) -> Pairs:
    """Append to an index that was opened with so many bytes."""
    index = offset_index(base, entries).with_entries(more, index_bytes)
    return [index.entry(number) for number in range(len(index))]


def upper_bounds(base: int, entries: Pairs, fetches: Pairs) -> list[int | None]:
    """Give the offset of the bound of each (position, size) of a fetch."""
    index = offset_index(base, entries)
    bounds = [index.upper_bound(position, size) for position, size in fetches]
    return [bound if bound is None else bound.offset for bound in bounds]


def reopen_offsets(base: int, entries: Pairs) -> tuple[int, int]:
    index = offset_index(base, entries)
    return index.last_offset, len(index)


def truncate_offsets(base: int, entries: Pairs, offsets: Sequence[int]) -> Pairs:
    """Truncate one time after the other; give (last offset, entries) after each."""
    index = offset_index(base, entries)
    seen = []
    for offset in offsets:
        index = index.truncated_to(offset)
        seen.append((index.last_offset, len(index)))
    return seen


def check_offsets(base: int, data: bytes) -> None:
    check_offset_index(data, base)


def write_offsets(base: int, entries: Pairs, index_bytes: int) -> tuple[str, int, int]:
    """Give the bytes, and how many bytes and entries the preallocated file has."""
    room = capacity(index_bytes, OFFSET_ENTRY.itemsize)
    written = encode_offset_index(empty_offset_index(base).with_entries(entries, index_bytes))
    return written.hex(), room * OFFSET_ENTRY.itemsize, room


def time_index(base: int, entries: Pairs, index_bytes: int = 360, reserved: int = 1) -> TimeIndex:
    """Append to a new index, write it, open it again."""
    made = empty_time_index(base).with_entries(entries, index_bytes, reserved=reserved)
    return decode_time_index(encode_time_index(made), base)


def time_lookups(base: int, entries: Pairs, timestamps: Sequence[int]) -> Pairs:
    index = time_index(base, entries)
    return [index.lookup(timestamp) for timestamp in timestamps]


def time_entries(base: int, entries: Pairs, numbers: Sequence[int]) -> Pairs:
    index = time_index(base, entries)
    return [index.entry(number) for number in numbers]


def truncate_times(base: int, entries: Pairs, offset: int) -> int:
    return len(time_index(base, entries).truncated_to(offset))


def append_times(
    base: int, entries: Pairs, more: Pairs, index_bytes: int, reserved: int
) -> tuple[int, int]:
    """Append to a full index; give the last entry."""
    index = time_index(base, entries, index_bytes)
    return index.with_entries(more, index_bytes, reserved=reserved).last_entry


def full_times(base: int, entries: Pairs, index_bytes: int) -> bool:
    return time_index(base, entries, index_bytes).is_full(index_bytes)


def check_times(base: int, data: bytes) -> None:
    check_time_index(data, base)


def last_time(base: int, entries: Pairs) -> tuple[int, int]:
    return time_index(base, entries).last_entry


def resized(before_bytes: int, after_bytes: int) -> bool:
    """Tell whether another `segment.index.bytes` is another number of entries."""
    entry = TIME_ENTRY.itemsize
    return capacity(before_bytes, entry) != capacity(after_bytes, entry)


def entry_bytes(entries: Pairs) -> int:
    return len(encode_time_index(time_index(0, entries))) // len(entries)


def write_times(base: int, entries: Pairs) -> str:
    return encode_time_index(empty_time_index(base).with_entries(entries)).hex()


def transactions(rows: Transactions, more: Transactions = ()) -> Transactions:
    """Append to a new index, write it, open it again, append more; give all."""
    first = NONE_ABORTED.with_entries([AbortedTransaction(*row) for row in rows])
    index = decode_aborted(encode_aborted(first))
    index = index.with_entries([AbortedTransaction(*row) for row in more])
    return [index.entry(number) for number in range(len(index))]


def collect(rows: Transactions, fetch_offset: int, upper_bound: int) -> tuple[Transactions, bool]:
    index = NONE_ABORTED.with_entries([AbortedTransaction(*row) for row in rows])
    found, complete = index.collect(fetch_offset, upper_bound)
    return [found.entry(number) for number in range(len(found))], complete


def truncate_transactions(rows: Transactions, offset: int) -> Transactions:
    index = NONE_ABORTED.with_entries([AbortedTransaction(*row) for row in rows])
    kept = index.truncated_to(offset)
    return [kept.entry(number) for number in range(len(kept))]


def check_transactions(base: int, rows: Transactions) -> None:
    check_aborted(write_transactions(rows), base)


def write_transactions(rows: Transactions) -> bytes:
    return encode_aborted(NONE_ABORTED.with_entries([AbortedTransaction(*row) for row in rows]))


def transactions_hex(rows: Transactions) -> str:
    return write_transactions(rows).hex()
