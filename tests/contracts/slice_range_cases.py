"""Golden cases of the bytes and offsets that a slice names: its file, range, index and CRC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from klog.connector.source.slice_contract import run_to_dict, to_dict
from klog.connector.source.slices import UNKNOWN, Slice
from tests.contracts.slice_case import (
    RECORDS,
    Case,
    Cases,
    Files,
    batches_of,
    rows_of,
)
from tests.fuzz.seal import sealed_log
from tests.support.batch_bytes import batch

CASES = Cases()


@CASES.add
def whole_segment(files: Files) -> Case:
    """Read a committed segment whose CRC-32C is the commit's."""
    slice_ = files.committed(batches_of(RECORDS))
    return Case("all of a committed segment, held to its CRC-32C", [to_dict(slice_)],
                rows_of(RECORDS))  # fmt: skip


@CASES.add
def wrong_segment_crc(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS))
    return Case(
        "sound batches that are not those of the commit: the CRC-32C of the segment differs",
        [to_dict(replace(slice_, crc32c=slice_.crc32c ^ 1))],
        error="corrupt",
    )


@CASES.add
def wrong_file_size(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS), b"more")
    return Case(
        "a committed file that is longer than its commit says",
        [to_dict(replace(slice_, file_size_bytes=slice_.segment_size_bytes))],
        error="corrupt",
    )


@CASES.add
def wrong_batch_crc(files: Files) -> Case:
    batches = batches_of(RECORDS)
    batches[3] = batches[3][:-1] + b"!"
    return Case(
        "a batch of a broker's file whose CRC-32C differs",
        [to_dict(files.raw(batches))],
        error="corrupt",
    )


@CASES.add
def damage_outside_the_range(files: Files) -> Case:
    batches = batches_of(RECORDS)
    batches[0] = batches[0][:-1] + b"!"
    slice_ = replace(files.raw(batches), start_offset=4, end_offset=9)
    return Case("a batch without wanted offsets need not be intact", [to_dict(slice_)],
                rows_of(RECORDS[4:9]))  # fmt: skip


@CASES.add
def offset_shift(files: Files) -> Case:
    slice_ = replace(
        files.committed(batches_of(RECORDS)), offset_shift=500, start_offset=510, end_offset=520
    )
    records = [replace(record, offset=record.offset + 500) for record in RECORDS[10:20]]
    return Case("offsets of the log are higher than the file's", [to_dict(slice_)],
                rows_of(records))  # fmt: skip


@CASES.add
def negative_offset_shift(files: Files) -> Case:
    records = [replace(record, offset=record.offset + 100) for record in RECORDS]
    slice_ = replace(
        files.committed(batches_of(records), base_offset=100), offset_shift=-100, start_offset=0,
        end_offset=40,
    )  # fmt: skip
    return Case("offsets of the log are lower than the file's", [to_dict(slice_)],
                rows_of(RECORDS))  # fmt: skip


def size(batches: Sequence[bytes]) -> int:
    return sum(map(len, batches))


def cut_by_index(
    files: Files, batches: Sequence[bytes], start: int, end: int, start_offset: int, end_offset: int
) -> Slice:
    """Return a slice of a committed segment with a part of its bytes, as an index says them."""
    whole = files.committed(batches)
    return replace(
        whole, start_position=start, end_position=end, crc32c=UNKNOWN, start_offset=start_offset,
        end_offset=end_offset, first_offset=UNKNOWN if start else whole.first_offset,
    )  # fmt: skip


@CASES.add
def narrowed_by_the_plan(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = cut_by_index(files, batches, size(batches[:4]), size(batches[:7]), 21, 26)
    return Case("a byte range that begins before the first wanted batch", [to_dict(slice_)],
                rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def narrowed_too_far(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = cut_by_index(files, batches, size(batches[:6]), size(batches), 21, 26)
    return Case("an index that leads past the first wanted offset", [to_dict(slice_)],
                rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def narrowed_too_short(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = cut_by_index(files, batches, 0, size(batches[:6]), 21, 26)
    return Case("an index that leads before the last wanted offset: rows come from the byte range, "
                "and the rest from the segment", [to_dict(slice_)],
                rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def narrowed_into_a_batch(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = cut_by_index(files, batches, size(batches[:1]) + 3, size(batches[:7]) - 5, 21, 26)
    return Case("an index that leads into the middle of batches", [to_dict(slice_)],
                rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def narrowed_and_damaged(files: Files) -> Case:
    batches = batches_of(RECORDS)
    batches[6] = batches[6][:-1] + bytes([batches[6][-1] ^ 1])
    slice_ = cut_by_index(files, batches, size(batches[:4]), size(batches), 21, 28)
    return Case("damage in a byte range that an index has cut: no index is to blame",
                [to_dict(slice_)], error="corrupt")  # fmt: skip


@CASES.add
def narrowed_to_a_damaged_record(files: Files) -> Case:
    batches = batches_of(RECORDS)
    named = [*RECORDS[20:23], replace(RECORDS[23], headers=(("name", b"v"),))]
    batches[5] = sealed_log(batch(named).replace(b"name", b"\xff\xff\xff\xff"))
    slice_ = cut_by_index(files, batches, size(batches[:4]), size(batches), 16, 24)
    return Case("a right CRC, and a header name of the last record that is not UTF-8",
                [to_dict(slice_)], error="corrupt")  # fmt: skip


@CASES.add
def raw_cut(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.raw(batches),
        start_position=sum(map(len, batches[:5])),
        end_position=sum(map(len, batches[:7])),
        first_offset=20,
        limit_offset=28,
        start_offset=20,
        end_offset=28,
    )
    return Case("a byte range of a broker's file whose first offset is known", [to_dict(slice_)],
                rows_of(RECORDS[20:28]))  # fmt: skip


@CASES.add
def raw_cut_changed(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.raw(batches),
        start_position=sum(map(len, batches[:5])),
        first_offset=16,
        start_offset=16,
    )
    return Case("a broker's file that has another offset where the slice begins",
                [to_dict(slice_)], error="changed")  # fmt: skip


@CASES.add
def offsets_past_the_limit(files: Files) -> Case:
    slice_ = replace(files.raw(batches_of(RECORDS)), limit_offset=38)
    return Case("a batch that reaches past the segment's last offset", [to_dict(slice_)],
                error="corrupt")  # fmt: skip


@CASES.add
def index_named(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.committed(batches), start_offset=21, end_offset=26, **files.index(batches)
    )
    return Case("the task narrows the byte range by the index of a committed segment",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def raw_index_named(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(files.raw(batches), start_offset=21, end_offset=26, **files.index(batches))
    return Case("the task narrows the byte range by the index of a broker",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def index_missing(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.committed(batches),
        start_offset=21,
        end_offset=26,
        index_path=str(files.root / "t-0" / f"{0:020d}.index"),
        index_size_bytes=72,
    )
    return Case("an index that is named and missing: the segment is read from its start",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def raw_index_of_another_log(files: Files) -> Case:
    batches = batches_of(RECORDS)
    index = files.index(batches_of(RECORDS, 3))
    slice_ = replace(files.raw(batches), start_offset=21, end_offset=26, **index)
    return Case("an index that batches do not confirm: the segment is read from its start",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@CASES.add
def torn_tail(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS), b"torn")
    return Case("bytes after the segment, which a broker's torn append left",
                [to_dict(slice_)], rows_of(RECORDS))  # fmt: skip


@CASES.add
def active_segment(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = files.raw(batches[:7], b"".join(batches[7:]))
    return Case("a file that has grown since it was planned", [to_dict(slice_)],
                rows_of(RECORDS[:28]))  # fmt: skip


@CASES.add
def range_ends_inside_a_batch(files: Files) -> Case:
    slice_ = files.raw(batches_of(RECORDS))
    slice_ = replace(slice_, end_position=slice_.end_position - 1)
    return Case("a byte range that ends in the middle of a batch", [to_dict(slice_)],
                error="corrupt")  # fmt: skip


@CASES.add
def missing_file(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS))
    return Case("a committed file that is missing: the newest commit names it, too",
                [to_dict(replace(slice_, path=f"{slice_.path}.gone"))],
                error="corrupt")  # fmt: skip


@CASES.add
def several_slices(files: Files) -> Case:
    first = replace(files.committed(batches_of(RECORDS[:20])), limit_offset=20, end_offset=20)
    second = replace(
        files.committed(batches_of(RECORDS[20:]), base_offset=20), limit_offset=40, end_offset=33
    )
    return Case("a task reads its slices in order", [to_dict(first), to_dict(second)],
                rows_of(RECORDS[:33]))  # fmt: skip


@CASES.add
def run_of_slices(files: Files) -> Case:
    first = replace(files.committed(batches_of(RECORDS[:20])), limit_offset=20, end_offset=20)
    second = replace(
        files.committed(batches_of(RECORDS[20:]), base_offset=20), limit_offset=40, end_offset=33
    )
    values, more = asdict(first), asdict(second)
    shared = {name: value for name, value in values.items() if more[name] == value}
    varying = {name: [values[name], more[name]] for name in values if name not in shared}
    return Case("slices that differ in few fields travel as a run",
                [run_to_dict(shared, varying)], rows_of(RECORDS[:33]))  # fmt: skip


@CASES.add
def unknown_field(files: Files) -> Case:
    values: Any = {**to_dict(files.committed(batches_of(RECORDS))), "later": [1]}
    return Case("a field that this format does not know is ignored", [values],
                rows_of(RECORDS))  # fmt: skip


@CASES.add
def higher_format(files: Files) -> Case:
    values = to_dict(files.committed(batches_of(RECORDS))) | {"format": 2}
    return Case("a higher format is refused", [values], error="format")
