"""Imports that are killed, sleep, or find other files than they listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.embedded import Log
from klog.connector.store.local_store import LocalStore
from klog.errors import CommitStateUnknownError, KlogError
from klog.jobs.importing_files.import_plan import LeftFile
from klog.jobs.importing_files.import_report import ImportFilesReport
from klog.jobs.importing_files.source_files import SourceFile, list_source
from tests.jobs.importing_files.imported_rows import HookedStore, job, records, run


class KilledError(Exception):
    """A run ends here."""


def killed() -> None:
    raise KilledError


def lost() -> None:
    raise CommitStateUnknownError("the answer was lost")


@pytest.mark.parametrize("is_after", [False, True])
def test_a_run_that_was_killed_around_its_commit(log: Log, source: Path, is_after: bool) -> None:
    (source / "a.json").write_text("1\n")
    with pytest.raises(KilledError):
        job(source, HookedStore(**{"after" if is_after else "before": killed})).run()
    (source / "b.json").write_text("2\n")
    assert [file.path for file in run(source).files] == ["a.json", "b.json"][is_after:]
    assert records(source, "value") == [b"1", b"2"]


def test_files_that_changed_while_a_transaction_was_open_are_listed_again(
    log: Log, source: Path
) -> None:
    (source / "a.json").write_text("1\n")
    (source / "b.json").write_text("2\n")
    with pytest.raises(KilledError):
        job(source, HookedStore(before=killed)).run()
    (source / "a.json").write_text("1111\n")
    (source / "b.json").unlink()
    report = run(source)
    assert ([file.path for file in report.files], report.exit_code) == (["a.json"], 0)
    assert records(source, "value") == [b"1111"]


@pytest.mark.parametrize("is_abandoned", [False, True])
def test_a_run_that_woke_up_after_the_next_one_adds_nothing(
    log: Log, source: Path, is_abandoned: bool
) -> None:
    """It sleeps before its commit; the next one imports the file, or finds that it has changed."""
    (source / "a.json").write_text("1\n")
    first = iter([True])

    def before() -> None:
        if next(first, False):
            if is_abandoned:
                (source / "a.json").write_text("22\n")
            assert len(run(source).files) == 1

    assert job(source, HookedStore(before)).run().files == ()
    assert records(source, "value") == [b"22" if is_abandoned else b"1"]


def test_a_commit_whose_outcome_is_open_is_not_abandoned(log: Log, source: Path) -> None:
    (source / "a.json").write_text("1\n")
    with pytest.raises(CommitStateUnknownError):
        job(source, HookedStore(after=lost)).run()
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


def test_a_file_that_grows_is_left_out_and_the_others_are_imported(log: Log, source: Path) -> None:
    (source / "a.json").write_text("1\n")
    (source / "b.json").write_text("2\n")

    def list_files() -> list[SourceFile]:
        """List the files; a writer appends to one of them before it is read."""
        files = list_source(LocalStore(), str(source), "json")
        with (source / "a.json").open("a") as file:
            file.write("more\n")
        return files

    result = job(source, list_files=list_files).run()
    assert [file.path for file in result.files] == ["b.json"]
    assert result.left == (LeftFile("a.json", 2, is_deleted=False),)
    assert len(list((source.parent / "root" / "_klog" / "imports").rglob("0*.json"))) == 2
    assert records(source, "value") == [b"2"]
    again = job(source).run()
    assert [file.path for file in again.files] == ["a.json"]
    assert again.left == ()


def test_a_file_that_is_deleted_before_it_is_read_is_left_out(log: Log, source: Path) -> None:
    for name in ("a", "b", "c"):
        (source / f"{name}.json").write_text(f"{name}\n")

    def list_files() -> list[SourceFile]:
        files = list_source(LocalStore(), str(source), "json")
        (source / "b.json").unlink(missing_ok=True)
        return files

    result = job(source, list_files=list_files).run()
    assert [file.path for file in result.files] == ["a.json", "c.json"]
    assert result.left == (LeftFile("b.json", 2, is_deleted=True),)
    assert records(source, "value") == [b"a", b"c"]


def test_files_that_were_left_are_reported() -> None:
    left = (LeftFile("a.json", 2, is_deleted=False), LeftFile("b.json", 2, is_deleted=True))
    report = ImportFilesReport("root", "t", "source", False, (), left=left)
    first, second, total = report.lines()
    assert first.startswith("File: a.json\tFailed: the file changed while it was imported")
    assert second.startswith("File: b.json\tFailed: the file was deleted before it was read")
    assert "Failed: 2" in total
    assert report.exit_code == 1
    assert report.as_json()["left"][1] == {"path": "b.json", "sizeBytes": 2, "isDeleted": True}
