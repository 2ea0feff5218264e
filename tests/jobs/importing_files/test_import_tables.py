"""CSV and Parquet into topics, and files of to-files back."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from klog.connector.embedded import Log
from klog.errors import KlogError
from klog.jobs import import_files, to_files
from klog.jobs.importing_files import range_merge, table_files
from klog.jobs.importing_files.chosen_fields import RecordFields
from klog.jobs.importing_files.range_merge import RangeFile, read_range
from klog.jobs.importing_files.table_files import batch_rows, read_parquet
from tests.jobs.file_rows import hour_table, log_rows
from tests.jobs.importing_files.imported_rows import records, run, same


def test_csv(log: Log, source: Path) -> None:
    (source / "a.csv").write_text('id,"na ""me"\n1,"x\ny, ""z"""\n002,\n')
    (source / "b.tsv").write_text("id\tother\n3\té\n")
    run(source, format="csv", key="id")
    assert records(source, "key") == [b"1", b"002", b"3"]
    assert [json.loads(value) for value in records(source, "value")] == [
        {"id": "1", 'na "me': 'x\ny, "z"'},
        {"id": "002", 'na "me': ""},
        {"id": "3", "other": "é"},
    ]
    (source / "c.csv").write_text("id,v\n9,one\n")
    run(source, format="csv", value="v")
    assert records(source, "value")[-1] == b"one"


@pytest.mark.parametrize(
    ("data", "arguments", "error"),
    [
        (b"a,b\n1,2\n3\n", {}, r"Row #3: Expected 2 columns, got 1"),
        (b"a,b\n1,2\n", {"key": "aa"}, "there is no column aa: did you mean a"),
        (b"a,a\n1,2\n", {"key": "a"}, "there are 2 columns a"),
        (b"a\n\xff\n", {}, "invalid UTF8"),
        (b"a" * (2 << 20), {}, "the names of its columns"),
        (b"\xff,b\n1,2\n", {}, "the names of its columns, in UTF-8"),
        (b"a\n1,\xff\n", {}, "Row #2: Expected 1 columns, got 2"),
        (b'a\n"' + b"x" * (17 << 20), {}, "a row has more than 8388608 bytes"),
        (b"a\n1\n", {"records": True}, "--records: columns of CSV are text"),
    ],
)
def test_wrong_csv(
    log: Log, source: Path, data: bytes, arguments: dict[str, Any], error: str
) -> None:
    (source / "a.csv").write_bytes(data)
    with pytest.raises(KlogError, match=error):
        run(source, format="csv", **arguments)
    assert not records(source, "value")


def test_any_parquet(log: Log, source: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, None], pa.int64()),
            "at": pa.array([dt.datetime(2025, 1, 1, tzinfo=dt.timezone.utc), None]),
            "price": pa.array([1.5, float("inf")]),
            "kind": pa.array(["a", "b\n"]).dictionary_encode(),
            "tags": pa.array([["x", None], None]),
            "nested": pa.array([{"d": dt.date(2025, 1, 1)}, None]),
        }
    )
    pq.write_table(table, source / "a.parquet")
    run(source, format="parquet", key="id", timestamp="at")
    assert records(source, "key") == [b"1", None]
    assert [json.loads(value) for value in records(source, "value")] == [
        {
            "id": 1, "at": "2025-01-01T00:00:00.000000Z", "price": 1.5, "kind": "a",
            "tags": ["x", None], "nested": {"d": "2025-01-01"},
        },
        {"id": None, "at": None, "price": None, "kind": "b\n", "tags": None, "nested": None},
    ]  # fmt: skip
    assert records(source, "timestamp")[0] == 1_735_689_600_000_000


@pytest.mark.parametrize(
    ("column", "arguments", "error"),
    [
        (pa.array([b"\xff"]), {}, "column c has bytes that are not UTF-8"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())), {}, "has no form in JSON"),
        (pa.array([1.5]), {"timestamp": "c"}, "--timestamp: column c has the type double"),
        (pa.array([1]), {"records": True}, "--records: it has a column c"),
        (pa.table({"value": [1]}), {}, "/a.parquet: column value is int64"),
    ],
)
def test_wrong_parquet(
    log: Log, source: Path, column: pa.Array, arguments: dict[str, Any], error: str
) -> None:
    table = column if isinstance(column, pa.Table) else pa.table({"c": column})
    pq.write_table(table, source / "a.parquet")
    with pytest.raises(KlogError, match=error):
        run(source, format="parquet", **arguments)
    (source / "a.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(KlogError, match=r"a\.parquet: it cannot be read as Parquet"):
        run(source, format="parquet")
    assert not records(source, "value")


@pytest.mark.parametrize("batch_rows", [1, 3, 1 << 16])
def test_files_of_to_files_are_the_same_records_at_the_same_offsets(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    monkeypatch.setattr(range_merge, "MAX_OFFSETS", batch_rows)
    monkeypatch.setattr(range_merge, "START_OFFSETS", batch_rows)
    monkeypatch.setattr(table_files, "BATCH_ROWS", batch_rows)
    root = source.parent / "root"
    log.create_topic("from", partitions=3)
    for hours in ([0, 5, 1], [0, -100, 0, 3], [7] * 20):
        log.append("from", hour_table(hours))
        to_files.run(None, str(root), "from", str(source), max_file_bytes=200)
    log.delete_topic("t")
    log.create_topic("t", partitions=3)
    report = import_files.run(None, str(root), "t", str(source / "from"), format="parquet")
    assert same(log_rows(root, "t")) == same(log_rows(root, "from"))
    assert len(report.files) == len(list(source.rglob("*.parquet")))
    log.append("from", hour_table([9, 8, 9]))
    to_files.run(None, str(root), "from", str(source))
    import_files.run(None, str(root), "t", str(source / "from"), format="parquet")
    assert same(log_rows(root, "t")) == same(log_rows(root, "from"))


def test_files_of_a_plan_under_way_are_not_imported(log: Log, source: Path) -> None:
    root = source.parent / "root"
    log.create_topic("from", partitions=1)
    log.append("from", hour_table([0]))
    to_files.run(None, str(root), "from", str(source))
    files_entry = source / "from" / "_manifest" / "00000000000000000001.json"
    text = files_entry.read_text()
    files_entry.unlink()
    (source / "from" / "_manifest" / "newest.json").unlink()
    assert (
        import_files.run(None, str(root), "t", str(source / "from"), format="parquet").files == ()
    )
    files_entry.write_text(text.replace("date=", "../date="))
    with pytest.raises(KlogError, match="is not a path of to-files"):
        import_files.run(None, str(root), "t", str(source / "from"), format="parquet")


def test_rows_of_a_wide_file_are_read_some_at_a_time(tmp_path: Path) -> None:
    wide = pa.table({"v": ["x" * 100_000] * 400, "n": range(400)})
    pq.write_table(wide, tmp_path / "a.parquet", use_dictionary=False)
    narrow = pa.table({"n": range(400)})
    pq.write_table(narrow, tmp_path / "b.parquet")
    assert batch_rows(pq.read_metadata(tmp_path / "a.parquet")) < 90
    assert batch_rows(pq.read_metadata(tmp_path / "b.parquet")) == table_files.BATCH_ROWS
    batches = list(read_parquet(str(tmp_path / "a.parquet"), RecordFields(value="v")))
    assert [sum(map(len, batches)), len(batches) > 4] == [400, True]


class OpenFiles:
    """Files of a range in memory, that count how many are open."""

    def __init__(self) -> None:
        self.now = self.most = 0

    @contextmanager
    def open(self, offsets: list[int]) -> Iterator[pa.BufferReader]:
        """Open a file with records of these offsets."""
        self.now += 1
        self.most = max(self.now, self.most)
        out = pa.BufferOutputStream()
        values = [str(offset) for offset in offsets]
        pq.write_table(pa.table({"offset": offsets, "value": values}), out)
        yield pa.BufferReader(out.getvalue())
        self.now -= 1


def test_files_of_a_range_are_open_while_they_have_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_merge, "START_OFFSETS", 10)
    monkeypatch.setattr(range_merge, "MAX_OFFSETS", 10)
    opened = OpenFiles()
    hours = [list(range(first, first + 9)) for first in range(0, 300, 10)]
    hours += [[9, 299], [19, 29, 150]]  # Late records.
    files = [RangeFile(f"{hour[0]}", partial(opened.open, hour), hour[0]) for hour in hours]
    batches = list(read_range(files, RecordFields()))
    values = [int(value) for batch in batches for value in batch.column("value").to_pylist()]
    assert values == sorted(offset for hour in hours for offset in hour)
    assert opened.most == 3
    assert opened.now == 0


def test_a_file_of_a_range_that_is_wrong_is_named(tmp_path: Path) -> None:
    opened = OpenFiles()
    right = RangeFile("right", partial(opened.open, [1, 3]), 0)
    for data, error in ((b"no", "wrong: it cannot be read as Parquet"), (b"", "no column offset")):
        if not data:
            pq.write_table(pa.table({"value": ["x"]}), tmp_path / "a.parquet")
            data = (tmp_path / "a.parquet").read_bytes()
        wrong = RangeFile("wrong", partial(nullcontext, pa.BufferReader(data)), 2)
        with pytest.raises(KlogError, match=error):
            list(read_range([right, wrong], RecordFields()))
