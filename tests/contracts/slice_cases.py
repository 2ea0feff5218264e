"""The golden cases of the slice: tasks and their rows, one case for each rule.

The rule: rows are never computed by klog. They come from the records that a case's files are made
of, or from the account of the broker's own consumer (tests/golden). Paths are relative to the
project's folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import google_crc32c
import numpy as np

from klog.connector.kafka_dir.raw_root import RawRoot
from klog.connector.options.read_options import parse_read_options
from klog.connector.source import scan_planner
from klog.connector.source.slice_contract import TaskDict, run_to_dict, to_dict
from klog.connector.source.slices import UNKNOWN, Slice
from klog.logformat.indexes.transaction_index import decode_aborted
from tests import golden
from tests.connector.log_dirs import entries_of, offset_index
from tests.contracts.slice_runner import FOLDER, row_of
from tests.corpus import Digest
from tests.support.batch_bytes import (
    ABORT,
    COMMIT,
    LOG_APPEND_TIME,
    Record,
    batch,
    marker,
    plain,
    transactional,
)
from tests.support.project import PROJECT
from tests.support.reader_rows import told_at

FILES = FOLDER / "files"
LARGEST_SECONDS_MS = 9223372036854774
"""The last millisecond that fits an int64 of microseconds."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A case: its title, its task, and the expected rows or error."""

    title: str
    task: TaskDict
    rows: Rows | None = None
    error: str = ""
    is_python_only: bool = False

    def fields(self) -> dict[str, Any]:
        """Return the fields of the case's file."""
        result = {"error": self.error} if self.rows is None else {"rows": self.rows}
        return {
            "title": self.title,
            "isPythonOnly": self.is_python_only,
            "task": _relative(self.task),
            **result,
        }


def _relative(task: TaskDict) -> TaskDict:
    """Return a task without the fields that depend on this checkout or machine."""
    text = json.dumps(task).replace(f"{PROJECT}/", "")
    return [values | {"identity": "", "stamp": ""} for values in json.loads(text)]


class Files:
    """The files of a case, written next to the cases."""

    def __init__(self, name: str, *, is_dry: bool) -> None:
        """Take the case's name; `is_dry` writes nothing."""
        self.root = FILES / name
        self._is_dry = is_dry

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the partition; return its path."""
        path = self.root / "t-0" / name
        if not self._is_dry:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return str(path)

    def committed(self, batches: Sequence[bytes], torn: bytes = b"", base_offset: int = 0) -> Slice:
        """Write a committed segment; return the slice with all of it."""
        data = b"".join(batches)
        return Slice(
            topic="t",
            partition=0,
            topic_id="oLU2KAuJTQu3f_SSptKlOA",
            root=str(self.root),
            path=self.write(f"{base_offset:020d}.log", data + torn),
            is_committed=True,
            identity="",
            stamp="",
            file_size_bytes=len(data) + len(torn),
            segment_size_bytes=len(data),
            base_offset=base_offset,
            offset_shift=0,
            start_position=0,
            end_position=len(data),
            first_offset=base_offset,
            limit_offset=base_offset + 1_000,
            start_offset=base_offset,
            end_offset=base_offset + 1_000,
            index_path="",
            index_size_bytes=0,
            crc32c=google_crc32c.value(data),
            committed_only=True,
            aborted=[],
            markers_end_offset=UNKNOWN,
        )

    def raw(self, batches: Sequence[bytes], tail: bytes = b"", base_offset: int = 0) -> Slice:
        """Write an active segment; return the slice with its readable bytes."""
        return replace(
            self.committed(batches, tail, base_offset),
            topic_id="",
            is_committed=False,
            file_size_bytes=UNKNOWN,
            first_offset=UNKNOWN,
            crc32c=UNKNOWN,
            markers_end_offset=base_offset + 1_000,
        )

    def index(self, batches: Sequence[bytes]) -> dict[str, Any]:
        """Write an offset index with an entry for each batch; return the fields that name it."""
        data = offset_index(entries_of(batches))
        return {"index_path": self.write(f"{0:020d}.index", data), "index_size_bytes": len(data)}


MakeCase = Callable[[Files], Case]
CASES: dict[str, MakeCase] = {}


def case(make: MakeCase) -> MakeCase:
    """Register a case under its function's name."""
    CASES[make.__name__] = make
    return make


RECORDS = [
    Record(number, 1_700_000_000_000 + number, b"k%d" % number, b"value %d" % number)
    for number in range(40)
]


def batches_of(records: Sequence[Record], size: int = 4, **fields: Any) -> list[bytes]:
    """Return batches of a few records each."""
    return [
        batch(records[first : first + size], **fields) for first in range(0, len(records), size)
    ]


def rows_of(records: Sequence[Record], timestamp_type: int = 0) -> Rows:
    """Return the rows of records."""
    return [
        row_of(
            record.offset,
            record.timestamp,
            timestamp_type,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    ]


@case
def whole_segment(files: Files) -> Case:
    """Read a committed segment whose CRC-32C is the commit's."""
    slice_ = files.committed(batches_of(RECORDS))
    return Case("all of a committed segment, held to its CRC-32C", [to_dict(slice_)],
                rows_of(RECORDS))  # fmt: skip


@case
def wrong_segment_crc(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS))
    return Case(
        "sound batches that are not those of the commit: the CRC-32C of the segment differs",
        [to_dict(replace(slice_, crc32c=slice_.crc32c ^ 1))],
        error="corrupt",
    )


@case
def wrong_file_size(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS), b"more")
    return Case(
        "a committed file that is longer than its commit says",
        [to_dict(replace(slice_, file_size_bytes=slice_.segment_size_bytes))],
        error="corrupt",
    )


@case
def wrong_batch_crc(files: Files) -> Case:
    batches = batches_of(RECORDS)
    batches[3] = batches[3][:-1] + b"!"
    return Case(
        "a batch of a broker's file whose CRC-32C differs",
        [to_dict(files.raw(batches))],
        error="corrupt",
    )


@case
def damage_outside_the_range(files: Files) -> Case:
    batches = batches_of(RECORDS)
    batches[0] = batches[0][:-1] + b"!"
    slice_ = replace(files.raw(batches), start_offset=4, end_offset=9)
    return Case("a batch without wanted offsets need not be intact", [to_dict(slice_)],
                rows_of(RECORDS[4:9]))  # fmt: skip


@case
def offset_shift(files: Files) -> Case:
    slice_ = replace(
        files.committed(batches_of(RECORDS)), offset_shift=500, start_offset=510, end_offset=520
    )
    records = [replace(record, offset=record.offset + 500) for record in RECORDS[10:20]]
    return Case("offsets of the log are higher than the file's", [to_dict(slice_)],
                rows_of(records))  # fmt: skip


@case
def negative_offset_shift(files: Files) -> Case:
    records = [replace(record, offset=record.offset + 100) for record in RECORDS]
    slice_ = replace(
        files.committed(batches_of(records), base_offset=100), offset_shift=-100, start_offset=0,
        end_offset=40,
    )  # fmt: skip
    return Case("offsets of the log are lower than the file's", [to_dict(slice_)],
                rows_of(RECORDS))  # fmt: skip


@case
def narrowed_by_the_plan(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.committed(batches),
        start_position=sum(map(len, batches[:4])),
        end_position=sum(map(len, batches[:7])),
        first_offset=UNKNOWN,
        crc32c=UNKNOWN,
        start_offset=21,
        end_offset=26,
    )
    return Case("a byte range that begins before the first wanted batch", [to_dict(slice_)],
                rows_of(RECORDS[21:26]))  # fmt: skip


@case
def narrowed_too_far(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.committed(batches),
        start_position=sum(map(len, batches[:6])),
        first_offset=UNKNOWN,
        crc32c=UNKNOWN,
        start_offset=21,
        end_offset=26,
    )
    return Case("an index that leads past the first wanted offset", [to_dict(slice_)],
                error="changed")  # fmt: skip


@case
def narrowed_too_short(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.committed(batches),
        end_position=sum(map(len, batches[:6])),
        crc32c=UNKNOWN,
        start_offset=21,
        end_offset=26,
    )
    return Case("an index that leads before the last wanted offset", [to_dict(slice_)],
                error="changed")  # fmt: skip


@case
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


@case
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


@case
def offsets_past_the_limit(files: Files) -> Case:
    slice_ = replace(files.raw(batches_of(RECORDS)), limit_offset=38)
    return Case("a batch that reaches past the segment's last offset", [to_dict(slice_)],
                error="corrupt")  # fmt: skip


@case
def index_named(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(
        files.committed(batches), start_offset=21, end_offset=26, **files.index(batches)
    )
    return Case("the task narrows the byte range by the index of a committed segment",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@case
def raw_index_named(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = replace(files.raw(batches), start_offset=21, end_offset=26, **files.index(batches))
    return Case("the task narrows the byte range by the index of a broker",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@case
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


@case
def raw_index_of_another_log(files: Files) -> Case:
    batches = batches_of(RECORDS)
    index = files.index(batches_of(RECORDS, 3))
    slice_ = replace(files.raw(batches), start_offset=21, end_offset=26, **index)
    return Case("an index that batches do not confirm: the segment is read from its start",
                [to_dict(slice_)], rows_of(RECORDS[21:26]))  # fmt: skip


@case
def torn_tail(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS), b"torn")
    return Case("bytes after the segment, which a broker's torn append left",
                [to_dict(slice_)], rows_of(RECORDS))  # fmt: skip


@case
def active_segment(files: Files) -> Case:
    batches = batches_of(RECORDS)
    slice_ = files.raw(batches[:7], b"".join(batches[7:]))
    return Case("a file that has grown since it was planned", [to_dict(slice_)],
                rows_of(RECORDS[:28]))  # fmt: skip


@case
def headers(files: Files) -> Case:
    records = [
        Record(0, 5, b"k", b"v", (("h", None), ("h", b"2"), ("größe", b""))),
        Record(1, 6),
        Record(2, 7, None, b"v", (("", b"\x00\xff"),)),
    ]
    return Case("headers: none, several of one name, null and empty values",
                [to_dict(files.committed([batch(records)]))], rows_of(records))  # fmt: skip


@case
def nulls(files: Files) -> Case:
    records = [
        Record(0, 1, None, None),
        Record(1, 1, b"", b""),
        Record(2, 1, b"k", None),
        Record(3, 1, None, b"\x00"),
    ]
    return Case("null and empty keys and values", [to_dict(files.committed([batch(records)]))],
                rows_of(records))  # fmt: skip


@case
def timestamps(files: Files) -> Case:
    times = [(1 << 63) - 1, LARGEST_SECONDS_MS, -1, 0, -LARGEST_SECONDS_MS, -(1 << 63)]
    records = [Record(number, time) for number, time in enumerate(times)]
    slice_ = files.committed([batch([record]) for record in records])
    largest = LARGEST_SECONDS_MS
    clipped = [
        replace(record, timestamp=max(-largest, min(record.timestamp, largest)))
        for record in records
    ]
    return Case("times that microseconds cannot hold become the first or last that they can",
                [to_dict(slice_)], rows_of(clipped))  # fmt: skip


@case
def log_append_time(files: Files) -> Case:
    batches = batches_of(RECORDS, attributes=LOG_APPEND_TIME, max_timestamp=1_800_000_000_000)
    records = [replace(record, timestamp=1_800_000_000_000) for record in RECORDS]
    return Case("LogAppendTime: all records of a batch have its time",
                [to_dict(files.committed(batches))], rows_of(records, 1))  # fmt: skip


@case
def compacted_gaps(files: Files) -> Case:
    kept = [record for record in RECORDS if record.offset % 7 in (1, 2) and record.offset > 10]
    batches = [
        batch(kept[:4], base_offset=8, last_offset_delta=15),
        batch(base_offset=24, last_offset_delta=3),
        batch(kept[4:], base_offset=28, last_offset_delta=11),
    ]
    slice_ = replace(files.committed(batches), first_offset=UNKNOWN, start_offset=3, end_offset=36)
    return Case(
        "gaps within batches and between them, an emptied batch, a start in a gap",
        [to_dict(slice_)],
        rows_of([record for record in kept if record.offset < 36]),
    )


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


@case
def aborted_transactions(files: Files) -> Case:
    slice_ = replace(files.committed(TRANSACTIONS), aborted=[[5, 0, 4], [6, 7, 9]])
    return Case("read_committed: the slice says all that was aborted", [to_dict(slice_)],
                rows_of(VISIBLE))  # fmt: skip


@case
def read_uncommitted(files: Files) -> Case:
    slice_ = replace(
        files.committed(TRANSACTIONS), aborted=[[5, 0, 4], [6, 7, 9]], committed_only=False
    )
    rows = sorted([*VISIBLE, *ABORTED], key=lambda record: record.offset)
    return Case("read_uncommitted: all records, and no marker", [to_dict(slice_)], rows_of(rows))


@case
def undecided_without_transactions(files: Files) -> Case:
    return Case("a slice that may lack aborted transactions, and has no data of any",
                [to_dict(files.raw(batches_of(RECORDS)))], rows_of(RECORDS))  # fmt: skip


@case
def undecided(files: Files) -> Case:
    first = files.raw(TRANSACTIONS[:5])
    files.raw(TRANSACTIONS[5:], base_offset=6)
    slice_ = replace(first, limit_offset=6, end_offset=6, markers_end_offset=11)
    return Case("markers decide, those of the next segment too", [to_dict(slice_)],
                rows_of(VISIBLE[:3]), is_python_only=True)  # fmt: skip


@case
def markers_in_the_segment(files: Files) -> Case:
    first = files.raw(TRANSACTIONS[:6])
    files.raw(TRANSACTIONS[6:], base_offset=7)
    slice_ = replace(first, limit_offset=7, end_offset=7, markers_end_offset=7)
    return Case("markers decide, which lie in the byte range; without one it is committed",
                [to_dict(slice_)], rows_of(VISIBLE[:3]))  # fmt: skip


@case
def aborted_bounds(files: Files) -> Case:
    batches = [transactional(offset, 5) for offset in (0, 1, 2, 3)]
    slice_ = replace(files.committed([*batches, plain(4)]), aborted=[[5, 1, 2], [6, 0, 9]])
    records = [Record(offset, 1000 + offset, b"k", b"v") for offset in (0, 3)]
    return Case("a row of aborted has its first and its last offset; producer ids differ",
                [to_dict(slice_)], rows_of([*records, Record(4, 1000, b"k", b"v")]))  # fmt: skip


@case
def damaged_records(files: Files) -> Case:
    batches = [*batches_of(RECORDS[:4]), batch(base_offset=4, count=1, payload=b"\xff" * 20)]
    return Case("a batch whose CRC holds and whose records do not decode",
                [to_dict(files.committed(batches))], error="corrupt")  # fmt: skip


@case
def damaged_compression(files: Files) -> Case:
    batches = [
        batch(base_offset=0, count=1, attributes=4, payload=b"not zstd, though its CRC holds")
    ]
    return Case("a batch whose CRC holds and that does not decompress",
                [to_dict(files.raw(batches))], error="corrupt")  # fmt: skip


@case
def header_name_not_utf8(files: Files) -> Case:
    name = b"n\xffme"
    record = b"\x00\x00\x00\x01\x01\x02" + bytes([2 * len(name)]) + name + b"\x01"
    batches = [batch(base_offset=0, count=1, payload=bytes([2 * len(record)]) + record)]
    return Case("a header whose name is not UTF-8",
                [to_dict(files.raw(batches))], error="corrupt")  # fmt: skip


@case
def offsets_that_do_not_rise(files: Files) -> Case:
    batches = [*batches_of(RECORDS[4:8]), *batches_of(RECORDS[:4])]
    return Case("a batch with a lower offset than the one before it",
                [to_dict(files.raw(batches))], error="corrupt")  # fmt: skip


@case
def range_ends_inside_a_batch(files: Files) -> Case:
    slice_ = files.raw(batches_of(RECORDS))
    slice_ = replace(slice_, end_position=slice_.end_position - 1)
    return Case("a byte range that ends in the middle of a batch", [to_dict(slice_)],
                error="corrupt")  # fmt: skip


@case
def missing_file(files: Files) -> Case:
    slice_ = files.committed(batches_of(RECORDS))
    return Case("a committed file that is missing: a new plan may have another one",
                [to_dict(replace(slice_, path=f"{slice_.path}.gone"))],
                error="changed")  # fmt: skip


@case
def delete_horizon(files: Files) -> Case:
    records = [Record(0, 1_000, b"k1", None), Record(1, 2_000, b"k2", b"v")]
    batches = [batch(records, attributes=64, base_timestamp=86_401_000)]
    return Case("a delete horizon: timestamps count from it, and tombstones are rows",
                [to_dict(files.committed(batches))], rows_of(records))  # fmt: skip


@case
def emptied_batch(files: Files) -> Case:
    batches = [
        batch(base_offset=0, last_offset_delta=4, payload=b"\xff"),
        *batches_of(RECORDS[5:8]),
    ]
    return Case("an empty batch, whose other bytes mean nothing",
                [to_dict(files.committed(batches))], rows_of(RECORDS[5:8]))  # fmt: skip


@case
def several_slices(files: Files) -> Case:
    first = replace(files.committed(batches_of(RECORDS[:20])), limit_offset=20, end_offset=20)
    second = replace(
        files.committed(batches_of(RECORDS[20:]), base_offset=20), limit_offset=40, end_offset=33
    )
    return Case("a task reads its slices in order", [to_dict(first), to_dict(second)],
                rows_of(RECORDS[:33]))  # fmt: skip


@case
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


@case
def unknown_field(files: Files) -> Case:
    values: Any = {**to_dict(files.committed(batches_of(RECORDS))), "later": [1]}
    return Case("a field that this format does not know is ignored", [values],
                rows_of(RECORDS))  # fmt: skip


@case
def higher_format(files: Files) -> Case:
    values = to_dict(files.committed(batches_of(RECORDS))) | {"format": 2}
    return Case("a higher format is refused", [values], error="format")


def broker_case(version: str, topic: str, partition: int, level: str) -> MakeCase:
    """Return a case with files that a broker wrote (tests/golden)."""

    def make(files: Files) -> Case:
        scene = golden.scene(version)
        options = parse_read_options(
            {"assign": json.dumps({topic: [partition]}), "isolationLevel": level}
        )
        root = RawRoot([str(path) for path in scene.log_dirs])
        (task,) = scan_planner.plan_snapshot(root.snapshot(), options)
        return Case(
            f"{topic}-{partition} of a broker {version}: {scene.notes[topic]}",
            task,
            broker_rows(version, topic, partition, level),
        )

    return make


def broker_rows(version: str, topic: str, partition: int, level: str) -> Rows:
    """Return the rows that the broker's own consumer read."""
    rows = []
    for record in told_at(golden.scene(version).records(), level):
        if (record.topic, record.partition) == (topic, partition):
            assert not isinstance(record.value, Digest)
            rows.append(
                row_of(
                    record.offset, record.timestamp, record.timestamp_type, record.key,
                    record.value, record.headers,
                )
            )  # fmt: skip
    return rows


def adopted_transactions(files: Files) -> Case:
    """Return the transactions of a broker as a klog root has them after `klog adopt`."""
    uncommitted = broker_case("4.2.0", "txn", 0, "read_uncommitted")(files)
    task = []
    for values in uncommitted.task:
        path = PROJECT / str(values["path"])
        aborted = decode_aborted(path.with_suffix(".txnindex").read_bytes())
        task.append(
            values
            | {
                "isCommitted": True,
                "fileSizeBytes": path.stat().st_size,
                "crc32c": google_crc32c.value(path.read_bytes()),
                "committedOnly": True,
                "aborted": np.stack(
                    [aborted.producer_ids, aborted.first_offsets, aborted.last_offsets], 1
                ).tolist(),
            }
        )
    rows = broker_rows("4.2.0", "txn", 0, "read_committed")
    stable = max(row["offset"] for row in rows) + 1
    task[-1]["endOffset"] = stable
    return Case("aborted and committed transactions of a broker, adopted", task, rows)


CASES["adopted_transactions"] = adopted_transactions
for _version, _topic, _partitions in (
    ("2.8.2", "v0", range(4)),
    ("2.8.2", "v1", range(4)),
    ("2.8.2", "v1.append", range(4)),
    ("2.8.2", "v1.kafka-python", range(3)),
    ("2.8.2", "mixed", range(4)),
    ("2.8.2", "v0.compacted", range(4)),
    ("2.8.2", "v1.compacted", range(4)),
    ("4.2.0", "v2", range(5)),
    ("4.2.0", "v2.append", range(5)),
    ("4.2.0", "v2.compacted", range(5)),
    ("4.2.0", "idempotent", range(1)),
):
    for _partition in _partitions:
        _name = f"broker_{_topic}_{_partition}".replace(".", "_").replace("-", "_")
        CASES[_name] = broker_case(_version, _topic, _partition, "read_committed")
for _level in ("read_committed", "read_uncommitted"):
    CASES[f"broker_txn_{_level}"] = broker_case("4.2.0", "txn", 0, _level)
