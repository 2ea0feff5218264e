"""`scan(as_of_version=)`: a topic as each of its commits left it, whatever came later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.commit_log import small_segments, snapshot_leases
from klog.connector.commit_log.past_files import PastFiles
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.embedded import Log
from klog.errors import OffsetOutOfRangeError, OptionError
from klog.jobs import compact, merge, vacuum
from tests.connector.log_dirs import many, write_log

COLUMNS = ["partition", "offset", "key", "value"]
Rows = list[dict[str, Any]]


def rows(log: Log, **bounds: Any) -> Rows:
    table: pa.Table = log.scan("t", columns=COLUMNS, **bounds).read_all()
    return [dict(row) for row in table.to_pylist()]


def append(log: Log, first: int, count: int, partitions: int = 2) -> None:
    """Append numbers as values, under three keys."""
    numbers = range(first, first + count)
    columns = {
        "key": [f"k{number % 3}" for number in numbers],
        "value": [f"{number}" for number in numbers],
        "partition": pa.array([number % partitions for number in numbers]),
    }
    log.append("t", pa.table(columns))


def history(path: str) -> tuple[Log, dict[int, Rows]]:
    """Change a topic in every way; return the records of versions as they were then."""
    log = klog.open(path)
    log.create_topic("t", 2, {"cleanup.policy": "compact,delete"})
    past = {0: rows(log)}
    for number in range(4):
        append(log, 10 * number, 10)
        past[number + 1] = rows(log)
    delete = f"delete-records --root {path} --topic t --partition 0 --offset 7"
    changes: list[Callable[[], object]] = [
        lambda: main(delete.split()),
        lambda: merge.run(None, path, "t"),
        lambda: log.add_partitions("t", 3),
        lambda: append(log, 40, 10, partitions=3),
        lambda: compact.run(None, path, "t"),
        lambda: log.alter_config("t", {"retention.ms": "-1"}),
        lambda: append(log, 50, 10, partitions=3),
    ]
    for change in changes:
        change()
        past[version(log)] = rows(log)
    return log, past


def version(log: Log) -> int:
    return log.describe("t").version


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "root")


def test_each_version_is_read_as_it_was(path: str) -> None:
    log, past = history(path)
    assert len(past) == 12
    for as_of, expected in past.items():
        assert rows(klog.open(path), as_of_version=as_of) == expected
    assert rows(log) == past[version(log)]
    assert len({len(expected) for expected in past.values()}) > 5


def test_a_time_means_the_last_commit_at_or_before_it(path: str) -> None:
    log, past = history(path)
    times = {commit.version: commit.timestamp_ms for commit in log.history("t")}
    for as_of, expected in past.items():
        at = times[as_of]
        moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=at)
        for time in (at, str(at), moment, moment + timedelta(microseconds=999)):
            assert rows(log, as_of_timestamp=time) == expected
        assert rows(log, as_of_timestamp=moment.isoformat()) == expected
    assert rows(log, as_of_timestamp="now") == rows(log)
    with pytest.raises(OptionError, match=r"^as_of_timestamp: topic t has no version at .* 0 to"):
        rows(log, as_of_timestamp="now-1d")
    with pytest.raises(OptionError, match=r"as_of_timestamp: .* has no time zone"):
        rows(log, as_of_timestamp=datetime(2026, 1, 1))  # noqa: DTZ001


def test_bounds_are_those_of_the_version(path: str) -> None:
    log, past = history(path)
    start = {0: 3, 1: 5}
    expected = [row for row in past[3] if row["offset"] >= start[row["partition"]]]
    assert rows(log, start=start, as_of_version=3) == expected
    assert rows(log, end=4, as_of_version=3) == [row for row in past[3] if row["offset"] < 4]
    with pytest.raises(OffsetOutOfRangeError, match=r"t-0: end 16 is out of range; .* 0 to 15"):
        rows(log, end=16, as_of_version=3)
    with pytest.raises(OptionError, match=r"start: t has no partition 2, only 0 to 1"):
        rows(log, start={2: 0}, as_of_version=3)
    with pytest.raises(OffsetOutOfRangeError, match=r"t-0: start 0 is out of range"):
        rows(log, start=0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"as_of_version": 99}, r"^as_of_version: topic t has no version 99: .* are 0 to \d+\."),
        ({"as_of_version": -1}, r"^as_of_version: must be a whole number from 0, got '-1'"),
        ({"as_of_version": "x"}, r"^as_of_version: must be a whole number from 0, got 'x'"),
        ({"as_of_timestamp": "yesterday"}, r"^as_of_timestamp: must be a time in ms since 1970"),
        ({"as_of_timestamp": -5}, r"^as_of_timestamp: must be a time in ms since 1970"),
        (
            {"as_of_version": 1, "as_of_timestamp": 5},
            r"^as_of_version, as_of_timestamp: must set at most one, got both",
        ),
    ],
)
def test_a_wrong_version_is_refused(path: str, arguments: dict[str, Any], reason: str) -> None:
    log, _ = history(path)
    with pytest.raises(OptionError, match=reason):
        rows(log, **arguments)


def test_versions_of_an_earlier_topic_of_the_name_are_refused(path: str) -> None:
    log, _ = history(path)
    deleted = version(log) + 1
    log.delete_topic("t")
    with pytest.raises(OptionError, match="was deleted"):
        rows(log, as_of_version=3)
    log.create_topic("t")
    again = version(log)
    assert rows(log, as_of_version=again) == []
    with pytest.raises(OptionError, match=r"^as_of_version: topic t was deleted and created again"):
        rows(log, as_of_version=3)
    with pytest.raises(OptionError, match=rf"does not exist in version {deleted}, which deleted"):
        rows(log, as_of_version=deleted)


def test_a_directory_of_a_broker_has_no_past(tmp_path: Path) -> None:
    write_log(tmp_path, {0: many(3)})
    with pytest.raises(OptionError, match=r"^as_of_version: the path has log directories of a br"):
        rows(klog.open(str(tmp_path)), as_of_version=0)


def test_a_version_is_read_as_long_as_vacuum_leaves_its_files(path: str) -> None:
    log, past = history(path)
    vacuum.run(None, path, "t", dry_run=False)
    for as_of, expected in past.items():
        assert rows(log, as_of_version=as_of) == expected
    vacuum.run(None, path, "t", dry_run=False, grace_ms=0)
    compacted = next(c.version for c in log.history("t") if c.operation == "compact")
    for as_of, expected in past.items():
        if as_of == 0 or as_of >= compacted:
            assert rows(log, as_of_version=as_of) == expected
            continue
        with pytest.raises(
            OptionError, match=rf"vacuum has deleted.*Version {compacted} can be read"
        ):
            rows(log, as_of_version=as_of)
    # What is read needs no file that is gone: an empty range, and a partition of live segments.
    appended = max(as_of for as_of in past if as_of < compacted)
    assert rows(log, as_of_version=appended, end={0: 7, 1: 0, 2: 0}) == []


@pytest.mark.parametrize("has_lease", [False, True])
def test_a_file_that_goes_while_a_version_is_read(path: str, has_lease: bool) -> None:
    """A reader without a lease gets the error that a later one gets; nothing is left out."""
    log, past = history(path)
    reader = log.scan("t", columns=COLUMNS, as_of_version=4)
    root = find_root(path)
    assert root is not None
    topic_log = root.log("t")
    if has_lease:
        snapshot_leases.take_lease(topic_log, "lease-of-a-test", 4, 60_000)
    vacuum.run(None, path, "t", dry_run=False, grace_ms=0)
    if has_lease:
        assert reader.read_all().to_pylist() == past[4]
        return
    with pytest.raises(OptionError, match=r"as_of_version: version 4 of topic t needs t-0/"):
        reader.read_all()


def test_the_version_of_a_scan_is_fixed_when_it_is_made(path: str) -> None:
    log, past = history(path)
    reader = log.scan("t", columns=COLUMNS, as_of_timestamp="now")
    append(log, 100, 10)
    assert reader.read_all().to_pylist() == past[version(log) - 1]


@pytest.mark.parametrize("max_whole_bytes", [small_segments.MAX_WHOLE_BYTES, 0])
def test_a_file_that_vacuum_takes_before_it_is_read_is_not_called_damaged(
    path: str, monkeypatch: pytest.MonkeyPatch, max_whole_bytes: int
) -> None:
    monkeypatch.setattr(small_segments, "MAX_WHOLE_BYTES", max_whole_bytes)
    log = klog.open(path)
    log.create_topic("t", 1, {"cleanup.policy": "compact"})
    times = pa.array([1, 2, 3], pa.timestamp("s", "UTC"))
    for _ in range(2):
        log.append("t", pa.table({"key": ["k"] * 3, "value": ["v"] * 3, "timestamp": times}))
    compact.run(None, path, "t", min_dirty_ratio=0)
    check = PastFiles.check

    def check_and_vacuum(self: PastFiles, version: int, segments: pa.Table) -> None:
        check(self, version, segments)
        for file in segments["file"].to_pylist():
            Path(path, file).unlink(missing_ok=True)

    monkeypatch.setattr(PastFiles, "check", check_and_vacuum)
    with pytest.raises(OptionError, match=r"as_of_version: version 1 of topic t needs t-0/0000"):
        rows(log, as_of_version=1, start=datetime(1970, 1, 1, 0, 0, 2, tzinfo=timezone.utc))
