"""Plans of to-files that are interrupted, lose their records, or have a second run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from klog.cli import main
from klog.connector.embedded import Log
from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs import compact, to_files
from klog.jobs.copying_to_files import write_range
from klog.jobs.shared.files_manifest import FilesManifest
from tests.jobs.copying_to_files.orders_copy import check, run
from tests.jobs.file_rows import (
    directory_rows,
    hour_table,
    log_rows,
    manifest_rows,
)


class KilledError(Exception):
    """A run ends here."""


def interrupted(to: Path, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Run until so many files are there."""
    real, counts = write_range.put_file, iter(range(files + 1))

    def put_file(*args: Any) -> bool:
        if next(counts) == files:
            raise KilledError
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(write_range, "put_file", put_file)
        with pytest.raises(KilledError):
            run(to)


def test_a_plan_is_finished_under_its_names_whatever_came(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("orders", hour_table([0, 1, 2, 3]))
    interrupted(to, monkeypatch, 2)
    there = {path: path.read_bytes() for path in to.rglob("*.parquet")}
    assert len(there) == 2
    rows = log_rows(to.parents[1] / "root", "orders")
    assert all(row in rows for row in directory_rows(to))
    assert not manifest_rows(to)
    log.append("orders", hour_table([0, 1, 2, 3]))
    assert [p.start_offset for p in run(to, dry_run=True).partitions] == [0, 0]
    report = run(to)
    assert sum(part.records for part in report.partitions) == 8
    assert {path: path.read_bytes() for path in there} == there
    check(to, log)


@pytest.mark.parametrize("is_created_again", [False, True])
def test_records_of_a_plan_under_way_that_are_gone_are_named(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch, is_created_again: bool
) -> None:
    log.append("orders", hour_table([0, 1, 2, 3]).append_column("partition", [[0] * 4]))
    interrupted(to, monkeypatch, 1)
    if is_created_again:
        log.delete_topic("orders")
        log.create_topic("orders", partitions=2)
        log.append("orders", hour_table([0] * 9, "new").append_column("partition", [[0] * 9]))
        error = "deleted and created again, without offsets 0 to 3: 4 that were not copied"
    else:
        root = str(to.parents[1] / "root")
        command = ["delete-records", "--root", root, "--topic", "orders", "--partition", "0"]
        assert main([*command, "--offset", "2"]) == 0
        error = "offsets 0 to 1 were deleted: 2 that were not copied"
    with pytest.raises(DataLossError, match=f"orders-0: .*{error}; give the option failOnDataLoss"):
        run(to)
    run(to, options={"failOnDataLoss": "false"})
    rows = directory_rows(to)
    assert len(rows) == (10 if is_created_again else 3)
    assert len({(row["offset"], row["value"]) for row in rows}) == len(rows)


def test_what_a_compaction_removed_meanwhile_leaves_an_orphan_and_no_double(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.alter_config("orders", {"cleanup.policy": "compact"})
    log.append("orders", keyed([0, 1]))
    interrupted(to, monkeypatch, 1)
    log.append("orders", keyed([2, 3]))
    compact.run(None, str(to.parents[1] / "root"), "orders")
    run(to)
    offsets = [row["offset"] for row in directory_rows(to)]
    assert offsets == sorted(set(offsets))
    assert len(manifest_rows(to)) == len(offsets) - 1
    assert run(to, remove_orphans=True, dry_run=True).removed == 1
    assert len(directory_rows(to)) == len(offsets)
    assert run(to, remove_orphans=True).removed == 1
    assert directory_rows(to) == manifest_rows(to)


def test_only_files_of_finished_plans_are_orphans(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0]))
    run(to)
    (path,) = to.rglob("*.parquet")
    orphan = path.with_name(path.name.replace("-00000", "-00001"))
    temporary = path.with_name(f".{path.name}.{'0' * 16}.tmp")
    plan_id = path.stem.rpartition("-")[2]
    of_another = path.with_name(path.name.replace(plan_id, "0" * 16))
    of_user = path.with_name("notes.txt")
    for file in (orphan, temporary, of_another, of_user):
        file.touch()
    assert run(to, remove_orphans=True).removed == 2
    assert {file.name for file in path.parent.iterdir()} == {
        path.name, of_another.name, of_user.name,
    }  # fmt: skip


def keyed(hours: list[int]) -> pa.Table:
    table = hour_table(hours).drop_columns(["key", "value"])
    same = ["same"] * len(hours)
    return (
        table.append_column("key", [same])
        .append_column("value", [same])
        .append_column("partition", [[0] * len(hours)])
    )


def test_two_runs_at_once_write_each_file_once(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one starts and ends while the first one has written one file."""
    log.append("orders", hour_table([0, 1, 2, 3]))
    real, calls = write_range.put_file, []

    def put_file(*args: Any) -> bool:
        calls.append(args)
        if len(calls) == 2:
            assert sum(part.records for part in run(to).partitions) == 4
            log.append("orders", hour_table([4, 5]))
        return real(*args)

    monkeypatch.setattr(write_range, "put_file", put_file)
    assert sum(part.records for part in run(to).partitions) == 0
    check_once = manifest_rows(to)
    assert len(check_once) == 4
    run(to)
    check(to, log)


def test_a_run_that_woke_up_late_leaves_only_an_orphan(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.alter_config("orders", {"cleanup.policy": "compact"})
    log.append("orders", keyed([0, 1]))
    real, calls = write_range.put_file, []

    def put_file(*args: Any) -> bool:
        calls.append(args)
        if len(calls) == 1:
            log.append("orders", keyed([2, 3]))
            compact.run(None, str(to.parents[1] / "root"), "orders")
            root = to.parents[1] / "root"
            ends = {"maxOffsetsPerTrigger": "2"}
            to_files.run(None, str(root), "orders", str(to.parent), options=ends)
        return real(*args)

    monkeypatch.setattr(write_range, "put_file", put_file)
    run(to)
    run(to, remove_orphans=True)
    assert directory_rows(to) == manifest_rows(to)


def test_a_manifest_that_lost_an_entry_is_refused(log: Log, to: Path) -> None:
    for _ in range(2):
        log.append("orders", hour_table([0]))
        run(to)
    last = to / "_manifest" / "00000000000000000003.json"
    for lost in (last, to / "_manifest" / "00000000000000000001.json"):
        kept = lost.read_bytes()
        lost.unlink()
        if lost is not last:
            (to / "_manifest" / "newest.json").unlink()
        with pytest.raises(KlogError, match=f"{lost.name} is lost"):
            run(to)
        lost.write_bytes(kept)
    run(to)
    shutil.rmtree(to / "_manifest")
    with pytest.raises(OptionError, match="has files and no manifest"):
        run(to)


def test_a_first_run_that_begins_while_another_does(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees no manifest, and then files."""
    log.append("orders", hour_table([0]))
    run(to)
    real, calls = FilesManifest.newest, []

    def newest(manifest: FilesManifest) -> Any:
        calls.append(manifest)
        return None if len(calls) == 1 else real(manifest)

    monkeypatch.setattr(FilesManifest, "newest", newest)
    run(to)
    check(to, log)
