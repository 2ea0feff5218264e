"""Golden cases of isolation: what a slice says is aborted, and which markers decide."""

from __future__ import annotations

from dataclasses import replace

from klog.connector.source.slice_contract import to_dict
from tests.contracts.slice_case import (
    RECORDS,
    Case,
    Cases,
    Files,
    batches_of,
    rows_of,
)
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    Record,
    marker,
    plain,
    transactional,
)

CASES = Cases()

TRANSACTIONS = [
    transactional(0, 5, [b"aborted", b"aborted"]),
    transactional(2, 6, [b"committed"]),
    plain(3, [b"plain"]),
    marker(4, 5, ABORT),
    transactional(5, 5, [b"the next one is committed"]),
    marker(6, 6, COMMIT),
    transactional(7, 6, [b"aborted"]),
    marker(8, 5, COMMIT),
    marker(9, 6, ABORT),
    plain(10, [b"plain"]),
]
VISIBLE = [
    Record(2, 1002, b"k", b"committed"),
    Record(3, 1000, b"k", b"plain"),
    Record(5, 1005, b"k", b"the next one is committed"),
    Record(10, 1000, b"k", b"plain"),
]
ABORTED = [
    Record(0, 1000, b"k", b"aborted"),
    Record(1, 1001, b"k", b"aborted"),
    Record(7, 1007, b"k", b"aborted"),
]


@CASES.add
def aborted_transactions(files: Files) -> Case:
    slice_ = replace(files.committed(TRANSACTIONS), aborted=[[5, 0, 4], [6, 7, 9]])
    return Case("read_committed: the slice says all that was aborted", [to_dict(slice_)],
                rows_of(VISIBLE))  # fmt: skip


@CASES.add
def read_uncommitted(files: Files) -> Case:
    slice_ = replace(
        files.committed(TRANSACTIONS), aborted=[[5, 0, 4], [6, 7, 9]], committed_only=False
    )
    rows = sorted([*VISIBLE, *ABORTED], key=lambda record: record.offset)
    return Case("read_uncommitted: all records, and no marker", [to_dict(slice_)], rows_of(rows))


@CASES.add
def undecided_without_transactions(files: Files) -> Case:
    return Case("a slice that may lack aborted transactions, and has no data of any",
                [to_dict(files.raw(batches_of(RECORDS)))], rows_of(RECORDS))  # fmt: skip


@CASES.add
def undecided(files: Files) -> Case:
    first = files.raw(TRANSACTIONS[:5])
    files.raw(TRANSACTIONS[5:], base_offset=6)
    slice_ = replace(
        first, limit_offset=6, end_offset=6, markers_end_offset=11, are_markers_in_file=False
    )
    return Case("markers decide, those of the next segment too", [to_dict(slice_)],
                rows_of(VISIBLE[:3]), is_python_only=True)  # fmt: skip


@CASES.add
def markers_in_the_segment(files: Files) -> Case:
    first = files.raw(TRANSACTIONS[:6])
    files.raw(TRANSACTIONS[6:], base_offset=7)
    slice_ = replace(first, limit_offset=7, end_offset=7, markers_end_offset=7)
    return Case("markers decide, which lie in the byte range; without one it is committed",
                [to_dict(slice_)], rows_of(VISIBLE[:3]))  # fmt: skip


@CASES.add
def aborted_bounds(files: Files) -> Case:
    batches = [transactional(offset, 5) for offset in (0, 1, 2, 3)]
    slice_ = replace(files.committed([*batches, plain(4)]), aborted=[[5, 1, 2], [6, 0, 9]])
    records = [Record(offset, 1000 + offset, b"k", b"v") for offset in (0, 3)]
    return Case("a row of aborted has its first and its last offset; producer ids differ",
                [to_dict(slice_)], rows_of([*records, Record(4, 1000, b"k", b"v")]))  # fmt: skip
