"""Files of topics: every record once, by hour, for readers of the directory and of the manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import klog
from klog.cli import main
from klog.connector.embedded import Log
from klog.connector.source.row_schema import arrow_schema
from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs import to_files
from klog.jobs.copying_to_files import bucket_writers
from klog.jobs.copying_to_files.bucket_writers import COLUMNS, BucketWriters
from tests.jobs.broker_dirs import names_of, scene_of
from tests.jobs.copying_to_files.orders_copy import check, run
from tests.jobs.file_rows import (
    HOUR_MS,
    START_MS,
    directory_rows,
    hour_table,
    log_rows,
    manifest_entries,
    manifest_rows,
)


class StoppedError(Exception):
    """The rounds end here."""


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


def test_a_dry_run_has_all_plans(log: Log, to: Path) -> None:
    log.append("orders", hour_table([0] * 20))
    report = run(to, dry_run=True, options={"maxOffsetsPerTrigger": "3"})
    assert sum(part.end_offset - part.start_offset for part in report.partitions) == 20
    assert not to.exists()


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


def test_what_waits_keeps_no_other_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch has a record of a late hour, which waits while the others are written."""
    monkeypatch.setattr(bucket_writers, "MAX_WAITING_BYTES", 4 << 20)
    before = pa.total_allocated_bytes()
    writers = BucketWriters("hour", "zstd")
    for number in range(40):
        hours = [0] * 999 + [-number - 1]
        rows = {
            "topic": ["t"] * 1000,
            "partition": [0] * 1000,
            "offset": range(number * 1000, (number + 1) * 1000),
            "timestamp": [(START_MS + hour * HOUR_MS) * 1000 for hour in hours],
            "timestampType": [0] * 1000,
            "key": [None] * 1000,
            "value": [b"x" * 1000] * 1000,
            "headers": [None] * 1000,
        }
        writers.add(pa.RecordBatch.from_pydict(rows, arrow_schema(COLUMNS)))
    assert pa.total_allocated_bytes() - before < 12 << 20
    files = list(writers.finish())
    assert [file.records for file in files] == [1] * 40 + [40 * 999]
    assert (files[-1].start_offset, files[-1].end_offset) == (0, 39_999)


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
            raise StoppedError
        log.append("orders", hour_table([0]))

    monkeypatch.setattr("klog.jobs.shared.copy_rounds.time.sleep", sleep)
    with pytest.raises(StoppedError):
        run(to, continuous=True, interval_seconds=7.0)
    assert rounds == [7.0] * 3
