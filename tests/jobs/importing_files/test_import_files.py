"""Files into topics: each file once, whatever came before."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from klog.cli import main
from klog.connector.embedded import Log
from klog.errors import KlogError, OptionError
from klog.jobs import import_files
from klog.jobs.importing_files import (
    import_batches,
    import_ledger,
    import_plan,
)
from tests.jobs.importing_files.imported_rows import records, run


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
    monkeypatch.setattr(import_plan, "MAX_BATCH_FILES", 4)
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
