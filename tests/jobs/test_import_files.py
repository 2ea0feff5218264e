"""Files into topics: each file once, whatever was killed, and what fields become what."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import klog
from klog.cli import main
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.embedded import Log
from klog.connector.store.local_store import LocalStore
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitStateUnknownError, KlogError, OptionError
from klog.jobs import import_files, to_files
from klog.jobs.importing_files import import_batches, import_ledger, json_lines, table_files
from klog.jobs.importing_files.import_report import ImportFilesReport
from tests.jobs.file_rows import hour_table, log_rows


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("t", partitions=1)
    return log


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def run(source: Path, **arguments: Any) -> ImportFilesReport:
    return import_files.run(None, str(source.parent / "root"), "t", str(source), **arguments)


def records(source: Path, *columns: str) -> list[Any]:
    rows = log_rows(source.parent / "root", "t")
    if len(columns) == 1:
        return [row[columns[0]] for row in rows]
    return [tuple(row[column] for column in columns) for row in rows]


def test_each_file_is_imported_once_in_the_order_of_paths(log: Log, source: Path) -> None:
    (source / "b.json").write_text('{"n":2}\n{"n":3}')
    (source / "a").mkdir()
    (source / "a" / "1.jsonl").write_bytes(b'{"n":1}\r\n\n')
    (source / "_hidden.json").write_text("no")
    (source / "README.md").write_text("no")
    (source / "c.json.gz").write_bytes(gzip.compress(b'{"n":4}\n'))
    with pa.CompressedOutputStream(str(source / "d.ndjson.zst"), "zstd") as out:
        out.write(b"not even JSON, and \xff\n")
    (source / "e.json").touch()
    report = run(source)
    assert [(file.path, file.records) for file in report.files] == [
        ("a/1.jsonl", 1), ("b.json", 2), ("c.json.gz", 1), ("d.ndjson.zst", 1), ("e.json", 0),
    ]  # fmt: skip
    expected = [b'{"n":%d}' % n for n in (1, 2, 3, 4)] + [b"not even JSON, and \xff"]
    assert records(source, "value") == expected
    versions = len(log.history("t"))
    assert run(source).files == ()
    assert len(log.history("t")) == versions
    (source / "0.json").write_text("later\n")
    assert [file.path for file in run(source).files] == ["0.json"]
    assert records(source, "value") == [*expected, b"later"]


def test_files_are_batched_into_few_transactions(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(500):
        (source / f"{number:03}.json").write_text(f"{number}\n")
    before = len(log.history("t"))
    assert len(run(source).files) == 500
    assert len(log.history("t")) == before + 1
    for number in range(500, 510):
        (source / f"{number:03}.json").write_text(f"{number}\n")
    monkeypatch.setattr(import_batches, "MAX_BATCH_FILES", 4)
    run(source)
    assert len(log.history("t")) == before + 4
    for number in range(510, 520):
        (source / f"{number:03}.json").write_text(f"{number}\n")
    monkeypatch.setattr(import_batches, "MAX_BATCH_BYTES", 8)
    run(source)
    assert len(log.history("t")) == before + 9
    assert records(source, "value") == [b"%d" % number for number in range(520)]


def test_what_was_imported_stays_known_over_many_entries(log: Log, source: Path) -> None:
    for number in range(2 * import_ledger.FULL_ENTRIES + 3):
        (source / f"{number:03}.json").write_text(f"{number}\n")
        assert len(run(source).files) == 1
    (folder,) = (source.parent / "root" / "_klog" / "imports").iterdir()
    numbers = sorted(int(path.stem) for path in folder.glob("0*.json"))
    assert numbers == list(range(import_ledger.FULL_ENTRIES, numbers[-1] + 1))
    (folder / "newest.json").unlink()
    assert run(source).files == ()
    assert len(records(source, "value")) == numbers[-1] + 1


def test_a_file_that_changed_after_its_import_is_a_refusal(log: Log, source: Path) -> None:
    (source / "a.json").write_text("1\n")
    run(source)
    (source / "a.json").write_text("1\n2\n")
    (source / "b.json").write_text("3\n")
    report = run(source)
    assert report.exit_code == 1
    assert [file.path for file in report.changed] == ["a.json"]
    assert any("another size" in line and "a.json" in line for line in report.lines())
    assert records(source, "value") == [b"1", b"3"]
    assert run(source, dry_run=True).exit_code == 1


def test_a_wrong_file_leaves_nothing_of_its_transaction(log: Log, source: Path) -> None:
    (source / "a.json").write_text('{"id":"x"}\n')
    (source / "b.json").write_text('{"id":"y"}\n\n{"id":\n')
    for _ in range(2):
        with pytest.raises(KlogError, match=r"b\.json: line 3 is not a JSON object"):
            run(source, key="id")
        assert not records(source, "value")
    (source / "b.json").write_text('{"id":"y"}\n\n{"id":"z"}\n')
    assert len(run(source, key="id").files) == 2
    assert records(source, "key") == [b"x", b"y", b"z"]


def test_a_row_that_the_topic_refuses_is_named_by_its_file(log: Log, source: Path) -> None:
    log.alter_config("t", {"message.timestamp.after.max.ms": "1000"})
    (source / "a.csv").write_text("n,at\n1,2020-01-01\n")
    (source / "b.csv").write_text("n,at\n2,2020-01-01\n3,3000-01-01\n")
    with pytest.raises(KlogError, match=r"/b\.csv: record 2: the timestamp"):
        run(source, format="csv", timestamp="at")
    (source / "b.csv").write_text("n,at\n2,2020-01-01\n3,no\n")
    with pytest.raises(KlogError, match=r"b\.csv: row 2: at is 'no', which is not a time"):
        run(source, format="csv", timestamp="at")
    assert not records(source, "value")


def test_json_fields(log: Log, source: Path) -> None:
    (source / "a.json").write_text(
        '{"id":"x","at":"2025-01-02T03:04:05.678Z","v":{"a":[1,null]}}\n'
        '{"id":"2020-01-01 00:00:00","at":"2025-01-02T03:04:05","v":{"a":[]}}\n'
        '{"id":null,"at":null,"v":null}\n'
    )
    (source / "b.json").write_text('{"id":7,"at":1735787045678,"v":true}\n')
    run(source, key="id", value="v", timestamp="at")
    rows = records(source, "key", "value", "timestamp")
    at_ms = 1_735_787_045_678
    assert [row[:2] for row in rows] == [
        (b"x", b'{"a":[1,null]}'),
        (b"2020-01-01 00:00:00", b'{"a":[]}'),
        (None, None),
        (b"7", b"true"),
    ]
    assert [row[2] for row in rows[:2]] == [at_ms * 1000, (at_ms - 678) * 1000]
    assert rows[3][2] == at_ms * 1000


def test_values_of_a_field_stay_what_they_are(log: Log, source: Path) -> None:
    (source / "a.json").write_text(
        '{"v":{"b": 1.0, "at": "2020-01-01 00:00:00"},"id":1}\n{"id":"x","v":"\\u00e9"}\n'
    )
    (source / "b.json").write_text('{"id":12345678901234567890,"v":{"c":null}}\n')
    run(source, key="id", value="v")
    assert records(source, "key", "value") == [
        (b"1", b'{"b":1.0,"at":"2020-01-01 00:00:00"}'),
        (b"x", "é".encode()),
        (b"12345678901234567890", b'{"c":null}'),
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "error"),
    [
        ('{"a":1}\n', {"key": "b"}, "line 1 and those after it have no field b"),
        ('{"a":1}{"a":2}\n{"a":1}\n', {"key": "a"}, "line 1 is not a JSON object"),
        ('[{"a":1}]\n', {"key": "a"}, "line 1 is not a JSON object"),
        ('{"a":"x"}\n', {"timestamp": "a"}, "line 1: a is 'x', which is not a time"),
        ('{"a":{"b":1}}\n', {"timestamp": "a"}, "line 1: a is .* which is not a time"),
        ('{"a":1}\n', {"records": True}, "line 1 has no field value"),
        ('{"value":1}\n', {"records": True}, "line 1 is not a record of `klog consume --json`"),
        ('{"value":{"x":""}}\n', {"records": True}, "must be text, null or base64"),
        ('{"value":null,"partition":"x"}\n', {"records": True}, "must be whole numbers"),
        (
            '{"value":null,"partition":7}\n',
            {"records": True},
            r"/a\.json: record 1: there is no partition 7",
        ),
    ],
)
def test_wrong_json(
    log: Log, source: Path, text: str, arguments: dict[str, Any], error: str
) -> None:
    (source / "a.json").write_text(text)
    with pytest.raises(KlogError, match=error) as raised:
        run(source, **arguments)
    assert "a.json" in str(raised.value)
    assert not records(source, "value")


def test_long_lines_and_blocks(log: Log, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK_BYTES", 10)
    values = ["x" * size for size in (1, 25, 9, 10, 11, 40, 3)]
    (source / "a.json").write_text("\r\n".join(["", *values, ""]))
    run(source)
    assert records(source, "value") == [value.encode() for value in values]
    monkeypatch.setattr(json_lines, "MAX_LINE_BYTES", 20)
    (source / "b.json").write_text("y" * 50)
    with pytest.raises(KlogError, match=r"b\.json: a line has more than 20 bytes"):
        run(source)


def test_consume_json_goes_back_as_it_was(
    log: Log, source: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    log.create_topic("from", partitions=3)
    log.append("from", hour_table([0, 1, 0, 2, 5]))
    odd = pa.table(
        {
            "key": pa.array([b"\xff\x00", "é".encode(), b'"\\\n']),
            "value": pa.array([b"", None, b"\x80"]),
            "partition": pa.array([2, 2, 0]),
        }
    )
    log.append("from", odd)
    root = str(source.parent / "root")
    assert (
        main(["consume", "--root", root, "--topic", "from", "-o", "beginning", "-e", "--json"]) == 0
    )
    (source / "a.json").write_bytes(capfdbinary.readouterr().out)
    log.delete_topic("t")
    log.create_topic("t", partitions=3)
    run(source, records=True)
    assert same(log_rows(Path(root), "t")) == same(log_rows(Path(root), "from"))


def same(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what two topics do not share."""
    return [{**row, "topic": "", "headers": row["headers"] or []} for row in rows]


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
        (b"\n", {}, "the names of its columns"),
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
    ],
)
def test_wrong_parquet(
    log: Log, source: Path, column: pa.Array, arguments: dict[str, Any], error: str
) -> None:
    pq.write_table(pa.table({"c": column}), source / "a.parquet")
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
    monkeypatch.setattr(table_files, "BATCH_ROWS", batch_rows)
    monkeypatch.setattr(table_files, "MIN_BATCH_ROWS", 1)
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


def test_a_topic_that_was_created_again_gets_all_files(log: Log, source: Path) -> None:
    (source / "a.json").write_text("1\n")
    run(source)
    log.delete_topic("t")
    log.create_topic("t", 1)
    assert len(run(source).files) == 1
    assert run(source, options={"transactionalId": "another"}).files[0].path == "a.json"
    assert records(source, "value") == [b"1", b"1"]


def test_an_id_of_another_writer_is_refused(log: Log, source: Path) -> None:
    (source / "a.json").write_text("1\n")
    rows = pa.table({"value": ["x"]})
    log.append("t", rows, transactional_id="loader", transaction_version=5)
    with pytest.raises(OptionError, match=r"'loader' has written version 5.* ends at -1"):
        run(source, options={"transactionalId": "loader"})
    run(source, options={"transactionalId": "mine"})
    log.append("t", rows, transactional_id="mine", transaction_version=1)
    with pytest.raises(OptionError, match="ends at 0"):
        run(source, options={"transactionalId": "mine"}, dry_run=True)


class KilledError(Exception):
    """A run ends here."""


@pytest.mark.parametrize("is_after", [False, True])
def test_a_run_that_was_killed_around_its_commit(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    (source / "a.json").write_text("1\n")
    real = CommitLog.commit

    def commit(*args: Any) -> Any:
        if is_after:
            real(*args)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "commit", commit)
        with pytest.raises(KilledError):
            run(source)
    (source / "b.json").write_text("2\n")
    assert [file.path for file in run(source).files] == ["a.json", "b.json"][is_after:]
    assert records(source, "value") == [b"1", b"2"]


def test_files_that_changed_while_a_transaction_was_open_are_listed_again(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a.json").write_text("1\n")
    (source / "b.json").write_text("2\n")
    with monkeypatch.context() as patch:
        patch.setattr(import_batches, "commit_rows", killed)
        with pytest.raises(KilledError):
            run(source)
    (source / "a.json").write_text("1111\n")
    (source / "b.json").unlink()
    assert [file.path for file in run(source).files] == ["a.json"]
    assert run(source).exit_code == 0
    assert records(source, "value") == [b"1111"]


def killed(*args: Any) -> None:
    raise KilledError


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_run_that_woke_up_after_the_next_one_adds_nothing(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch, is_abandoned: bool
) -> None:
    """It sleeps before its commit; the next one imports the file, or finds that it has changed."""
    (source / "a.json").write_text("1\n")
    real, calls = CommitLog.commit, []

    def commit(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            if is_abandoned:
                (source / "a.json").write_text("22\n")
            assert len(run(source).files) == 1
        return real(*args)

    monkeypatch.setattr(CommitLog, "commit", commit)
    assert run(source).files == ()
    assert records(source, "value") == [b"22" if is_abandoned else b"1"]


@pytest.mark.parametrize("has_landed", [True, False])
def test_answers_that_were_lost(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch, has_landed: bool
) -> None:
    (source / "a.json").write_text("1\n")
    real, lost = LocalStore.put_if_absent, set()

    def put_if_absent(store: LocalStore, path: str, data: bytes) -> PutResult:
        if path in lost:
            return real(store, path, data)
        lost.add(path)
        if has_landed:
            real(store, path, data)
        return PutResult.UNKNOWN

    monkeypatch.setattr(LocalStore, "put_if_absent", put_if_absent)
    assert len(run(source).files) == 1
    assert run(source).files == ()
    assert records(source, "value") == [b"1"]


def test_a_commit_whose_outcome_is_open_is_not_abandoned(
    log: Log, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "a.json").write_text("1\n")
    real = CommitLog.commit

    def commit(*args: Any) -> Any:
        real(*args)
        raise CommitStateUnknownError("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "commit", commit)
        with pytest.raises(CommitStateUnknownError):
            run(source)
    assert run(source).files == ()
    assert records(source, "value") == [b"1"]


def test_a_damaged_ledger_is_an_error(log: Log, source: Path) -> None:
    (source / "a.json").write_text("1\n")
    run(source)
    (entry,) = (source.parent / "root" / "_klog" / "imports").rglob("0*.json")
    text = entry.read_text()
    for wrong in (text.replace('"imported":[]', '"imported":[1]'), text.replace('"files"', '"f"')):
        entry.write_text(wrong)
        with pytest.raises(KlogError, match="not those of an import"):
            run(source)
    entry.unlink()
    with pytest.raises(KlogError, match="is lost"):
        run(source)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"format": "avro"}, "--format: must be one of json, csv, parquet"),
        ({"records": True, "key": "a"}, "--records: the fields of a record have fixed names"),
        ({"options": {"transactionVersion": "1"}}, "transactionVersion"),
        ({"options": {"compression": "x"}}, "compression"),
    ],
)
def test_wrong_arguments(log: Log, source: Path, arguments: dict[str, Any], error: str) -> None:
    (source / "a.json").write_text("1\n")
    with pytest.raises(OptionError, match=error):
        run(source, **arguments)
    with pytest.raises(OptionError, match="--from: there is no directory"):
        import_files.run(None, str(source.parent / "root"), "t", str(source / "missing"))
    with pytest.raises(OptionError, match=r"a\.json is a file\. Give its directory"):
        import_files.run(None, str(source.parent / "root"), "t", str(source / "a.json"))
    with pytest.raises(OptionError, match="there is no topic no"):
        import_files.run(None, str(source.parent / "root"), "no", str(source))
    assert not records(source, "value")


def test_the_verb(log: Log, source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (source / "a.json").write_text('{"id":1}\n')
    root = str(source.parent / "root")
    command = ["import-files", "--root", root, "--from", str(source), "--key", "id"]
    assert main([*command, "--topic", "t", "--dry-run", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert (report["dryRun"], report["files"][0]["path"]) == (True, "a.json")
    assert main([*command, "--topic", "t"]) == 0
    assert "Imported: 1 files\tRecords: 1" in capfd.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert "exactly one topic" in capfd.readouterr().err
