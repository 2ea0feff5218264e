"""Files of topics: every record once, by hour, for readers of the directory and of the manifest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import klog
from klog.cli import main
from klog.connector.embedded import Log
from klog.connector.store.local_store import LocalStore
from klog.connector.store.writable_store import PutResult
from klog.errors import CommitStateUnknownError, DataLossError, KlogError, OptionError
from klog.jobs import compact, to_files
from klog.jobs.copying_to_files import write_range
from klog.jobs.copying_to_files.files_report import ToFilesReport
from klog.jobs.shared import numbered_entries
from klog.jobs.shared.files_manifest import FilesManifest
from tests.jobs.broker_dirs import names_of, scene_of
from tests.jobs.file_rows import (
    START_MS,
    directory_rows,
    hour_table,
    log_rows,
    manifest_entries,
    manifest_rows,
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(str(tmp_path / "root"))
    log.create_topic("orders", partitions=2)
    return log


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "files" / "orders"


def run(to: Path, **arguments: Any) -> ToFilesReport:
    root = str(to.parents[1] / "root")
    return to_files.run(None, root, to.name, str(to.parent), **arguments)


def check(to: Path, log: Log) -> None:
    """Check that both kinds of readers see what the topic has."""
    expected = log_rows(to.parents[1] / "root", to.name)
    assert directory_rows(to) == expected
    assert manifest_rows(to) == expected


def test_every_record_is_there_once_in_the_folder_of_its_hour(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0, 0, 1, 5, 1, 0, -700, 30]))
    report = run(to)
    check(to, log)
    assert sum(part.records for part in report.partitions) == 8
    for path in to.rglob("*.parquet"):
        hour, day = path.parent.name, path.parent.parent.name
        times = pq.ParquetFile(path).read()["timestamp"].to_pylist()
        assert {f"date={time:%Y-%m-%d}/hour={time:%H}" for time in times} == {f"{day}/{hour}"}
    assert (to / "date=2025-11-28" / "hour=14").is_dir()


def test_a_second_run_copies_only_what_came(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0, 1]))
    run(to)
    files = set(to.rglob("*"))
    assert [part.files for part in run(to).partitions] == [0, 0]
    assert set(to.rglob("*")) == files
    log.append("orders", hour_table([1, 2, 0]))
    report = run(to)
    assert sum(part.records for part in report.partitions) == 3
    assert sum(part.end_offset - part.start_offset for part in report.partitions) == 3
    check(to, log)


def test_late_records_of_an_hour_share_a_file_however_hours_alternate(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0, -48] * 500).append_column("partition", [[1] * 1000]))
    run(to)
    assert len(list(to.rglob("*.parquet"))) == 2
    check(to, log)


def test_files_are_cut_by_size_and_plans_by_the_limit(log: Log, to: Path) -> None:
    for _ in range(10):
        log.append("orders", hour_table([0] * 200, "x" * 100))
    run(to, max_file_bytes=3000)
    assert len(list(to.rglob("*.parquet"))) >= 5
    check(to, log)
    again = to.parent / "again" / "orders"
    root = str(to.parents[1] / "root")
    options = {"maxOffsetsPerTrigger": "300"}
    to_files.run(None, root, "orders", str(again.parent), options=options)
    plans = [entry for entry in manifest_entries(again) if entry["kind"] == "plan"]
    assert len(plans) >= 7
    assert directory_rows(again) == manifest_rows(again) == log_rows(Path(root), "orders")


@pytest.mark.parametrize(("layout", "folders"), [("day", 3), ("none", 0)])
def test_other_layouts(log: Log, to: Path, layout: str, folders: int) -> None:
    log.append("orders", hour_table([0, 1, 24, 48]))
    run(to, partition_by=layout)
    assert len(list(to.glob("date=*"))) == folders
    check(to, log)
    with pytest.raises(OptionError, match=f"--partition-by: .* is laid out by {layout}"):
        run(to)


def test_times_that_no_date_has_are_hives_null(log: Log, to: Path) -> None:
    log.alter_config("orders", {"message.timestamp.after.max.ms": str((1 << 63) - 1)})
    far = pa.array([1 << 60, 1 << 52, -1, START_MS], pa.timestamp("ms", "UTC"))
    log.append("orders", pa.table({"value": ["a", "b", "c", "d"], "timestamp": far}))
    run(to)
    null = "__HIVE_DEFAULT_PARTITION__"
    assert list((to / f"date={null}" / f"hour={null}").glob("*.parquet"))
    assert list((to / "date=1969-12-31" / "hour=23").glob("*.parquet"))
    check(to, log)


def test_large_records_of_many_hours_are_row_groups(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klog.jobs.copying_to_files.bucket_writers.ROW_GROUP_BYTES", 5_000)
    monkeypatch.setattr("klog.jobs.copying_to_files.bucket_writers.MAX_WAITING_BYTES", 20_000)
    for _ in range(10):
        log.append("orders", hour_table([n % 40 for n in range(3000)], "y" * 50))
    run(to)
    groups = [pq.ParquetFile(path).num_row_groups for path in to.rglob("*.parquet")]
    assert max(groups) > 1
    check(to, log)


def test_a_brokers_directory_is_copied_as_consumers_read_it(tmp_path: Path) -> None:
    (source,) = scene_of("transactions").log_dirs
    topics = {name.topic for name in names_of(source)}
    report = to_files.run(None, str(source), None, str(tmp_path))
    topics -= {"__consumer_offsets", "__transaction_state"}
    assert {part.topic for part in report.partitions} == topics
    for topic in topics:
        rows = klog.open(str(source)).scan(topic).read_all()
        assert len(directory_rows(tmp_path / topic)) == len(rows)


def test_where_a_first_run_starts_is_kept(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0, 0]))
    latest = {"startingOffsets": "latest"}
    assert not sum(part.records for part in run(to, options=latest).partitions)
    log.append("orders", hour_table([0, 0, 0]))
    assert sum(part.records for part in run(to, options=latest).partitions) == 3


def test_retention_that_passed_the_positions_names_the_lost_offsets(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0] * 10).append_column("partition", [[0] * 10]))
    run(to)
    log.append("orders", hour_table([1] * 10).append_column("partition", [[0] * 10]))
    code = main(
        ["delete-records", "--root", str(to.parents[1] / "root"), "--topic", "orders",
         "--partition", "0", "--offset", "15"]
    )  # fmt: skip
    assert code == 0
    with pytest.raises(DataLossError, match=r"offsets 10 to 14 were deleted.*failOnDataLoss"):
        run(to)
    report = run(to, options={"failOnDataLoss": "false"})
    assert report.partitions[0].records == 5
    offsets = [row["offset"] for row in directory_rows(to)]
    assert offsets == [*range(10), *range(15, 20)]


def test_a_topic_that_was_created_again_is_a_loss(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0] * 10))
    run(to)
    log.delete_topic("orders")
    log.create_topic("orders", partitions=2)
    log.append("orders", hour_table([0] * 4, "new"))
    with pytest.raises(DataLossError, match="created again"):
        run(to)
    assert sum(p.records for p in run(to, options={"failOnDataLoss": "false"}).partitions) == 4
    assert len(directory_rows(to)) == len(manifest_rows(to)) == 14


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
    unlisted = path.with_name(path.name.replace("-00000", "-00001"))
    temporary = path.with_name(f".{path.name}.{'0' * 16}.tmp")
    plan_id = path.stem.rpartition("-")[2]
    of_another = path.with_name(path.name.replace(plan_id, "0" * 16))
    of_user = path.with_name("notes.txt")
    for file in (unlisted, temporary, of_another, of_user):
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


def test_a_run_that_woke_up_after_the_next_one_removes_what_only_it_has(
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


@pytest.mark.parametrize(
    ("answer", "has_landed"),
    [(PutResult.UNKNOWN, True), (PutResult.UNKNOWN, False), (PutResult.EXISTS, True)],
)
def test_answers_that_were_lost(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch, answer: PutResult, has_landed: bool
) -> None:
    """Each put of a new path answers so once, after it has landed or not."""
    log.append("orders", hour_table([0, 1]))
    real, lost = LocalStore.put_if_absent, set()

    def put_if_absent(store: LocalStore, path: str, data: bytes) -> PutResult:
        if path in lost:
            return real(store, path, data)
        lost.add(path)
        if has_landed:
            real(store, path, data)
        return answer

    monkeypatch.setattr(LocalStore, "put_if_absent", put_if_absent)
    run(to)
    check(to, log)
    assert len(manifest_entries(to)) == 2


def test_a_store_that_never_answers_is_an_error(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("orders", hour_table([0]))
    monkeypatch.setattr(numbered_entries, "MAX_PUTS", 2)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put_if_absent", lambda *args: PutResult.UNKNOWN)
        with pytest.raises(CommitStateUnknownError, match="Run the job again"):
            run(to)
    run(to)
    check(to, log)


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


def test_wrong_entries_and_options_are_errors(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0]))
    run(to)
    entry = to / "_manifest" / "00000000000000000001.json"
    text = entry.read_text()
    for wrong, error in (
        (text.replace('"format":1', '"format":2'), "a later klog has written it"),
        (text.replace('"kind":"files"', '"kind":"x"'), "not one of a manifest"),
        (text[:50], "not an entry of klog's"),
    ):
        entry.write_text(wrong)
        with pytest.raises(KlogError, match=error):
            run(to)
    entry.write_text(text.replace('"topic":"orders"', '"topic":"other"'))
    with pytest.raises(OptionError, match="has files of topic other"):
        run(to)
    entry.write_text(text)
    for arguments in (
        {"partition_by": "minute"},
        {"compression": "brotli"},
        {"max_file_bytes": 0},
        {"topic_pattern": "o"},
    ):
        with pytest.raises(OptionError):
            run(to, **arguments)


def test_the_verb(log: Log, to: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log.append("orders", hour_table([0, 1, 2]))
    log.create_topic("payments", 1)
    command = ["to-files", "--root", str(to.parents[1] / "root"), "--to", str(to.parent), "--json"]
    assert main([*command, "--dry-run"]) == 0
    assert json.loads(capfd.readouterr().out)["dryRun"]
    assert not to.exists()
    assert main([*command, "--remove-orphans"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert {part["topic"] for part in report["partitions"]} == {"orders", "payments"}
    assert (report["records"], report["removed"]) == (3, 0)
    check(to, log)
    assert main([*command[:-1], "--topic", "order"]) == 1
    assert "there is no topic order" in capfd.readouterr().err


def test_one_topic_of_several_fails_alone(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0]))
    log.create_topic("payments", 1)
    (to.parent / "payments").mkdir(parents=True)
    (to.parent / "payments" / "file").touch()
    report = to_files.run(None, str(to.parents[1] / "root"), None, str(to.parent))
    assert report.exit_code == 1
    assert [failed.topic for failed in report.failed] == ["payments"]
    check(to, log)
    assert "Failed: 1" in list(report.lines())[-1]


def test_continuous_rounds_close_their_files(
    log: Log, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("orders", hour_table([0]))
    rounds = []

    def sleep(seconds: float) -> None:
        check(to, log)
        rounds.append(seconds)
        if len(rounds) == 3:
            raise KilledError
        log.append("orders", hour_table([0]))

    monkeypatch.setattr("klog.jobs.to_files.time.sleep", sleep)
    with pytest.raises(KilledError):
        run(to, continuous=True, interval_seconds=7.0)
    assert rounds == [7.0] * 3
