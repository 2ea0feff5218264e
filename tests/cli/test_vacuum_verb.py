"""`klog vacuum`: a dry run by default; --execute deletes just what the dry run lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klog.connector.commit_log import checkpoint_writer, commit_builders
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.snapshot_leases import take_lease
from klog.connector.store.temporary_names import temporary_path
from klog.jobs import vacuum
from klog.jobs.shared.argument_values import duration_ms
from tests.connector.commit_log.memory_logs import DAY_MS
from tests.faults.full_disk import limited
from tests.support.command_root import Root

REMOVED_FOR_3D = "2023-11-17T22:13:21.001Z"
"""Three days after the removal of the fixture's segment."""


@pytest.fixture
def littered(on_root: Root) -> Root:
    """Return a root with live files and each kind of file to delete, two days old."""
    on_root.does("topics", "create", "--topic", "orders", "--partitions", "2")
    on_root.append("orders", 0, 2)
    on_root.stage("orders", 1, 3)  # Its writer was killed,
    killed = temporary_path(f"orders-1/{0:020d}-{1:010d}-00000009.log", lambda: "0" * 16)
    (on_root.path / killed).write_bytes(b"12345")  # and so was this one's.
    on_root.clock.now_ms += 1000
    on_root.append("orders", 0, 1)
    topic_id = on_root.state("orders").topic_id
    on_root.commit("orders", commit_builders.delete_records(topic_id, {0: 2}), "delete-records")
    on_root.clock.now_ms += 2 * DAY_MS
    return on_root


def test_a_dry_run_writes_nothing(littered: Root) -> None:
    before = littered.files()
    removed, live = (f"orders-0/{n:020d}-{n and 1:010d}-" for n in (0, 2))
    output = littered.does("vacuum")
    assert littered.files() == before
    head, *rows, total = output.splitlines()
    assert head == "Topic: orders\tFiles: 5\tBytes: 56"
    assert [row.split("\t")[2:] for row in rows] == [
        ["Bytes: 8", "Kind: removed"],
        ["Bytes: 14", "Kind: removed"],
        ["Bytes: 8", "Kind: orphan"],
        ["Bytes: 21", "Kind: orphan"],
        ["Bytes: 5", "Kind: leftover"],  # codespell:ignore leftover
    ]
    assert rows[0].startswith(f"\tFile: {removed}")
    assert live not in output
    assert total == (
        "Would delete 5 files, 56 bytes. This was a dry run: give --execute to delete them."
    )
    assert littered.does("vacuum", "--dry-run", "--topic", "orders") == output


def test_it_deletes_what_the_dry_run_listed(littered: Root) -> None:
    plan = json.loads(littered.does("vacuum", "--json"))
    assert (plan["dryRun"], plan["graceMs"]) == (True, DAY_MS)
    before = littered.files()
    done = json.loads(littered.does("vacuum", "--execute", "--json"))
    assert done["topics"] == plan["topics"]
    deleted = before - littered.files()
    assert deleted == done["topics"]["orders"]["files"].keys()
    assert done["topics"]["orders"]["bytes"] == 56
    assert littered.does("vacuum") == "There is nothing to delete.\n"
    assert littered.state("orders").log_end == (3, 0)
    assert littered.does("vacuum", "--execute") == "Deleted 0 files, 0 bytes.\n"
    history = littered.does("history", "--topic", "orders")
    assert "\tOperation: vacuum\t" in history


@pytest.mark.parametrize("topic", [None, "orders"])
def test_deletions_before_a_failed_commit_are_reported(littered: Root, topic: str | None) -> None:
    """The disk is full: the commit fails, even after the index of a removed segment made room."""
    before = littered.files()
    with limited(littered.path, 0):
        report = vacuum.run(None, str(littered.path), topic, dry_run=False)
    done = report.as_json()["topics"]["orders"]
    assert (report.exit_code, len(done["removed"]), done["bytes"]) == (1, 1, 8)
    assert done["files"].keys() == before - littered.files()
    assert "not written: File too large" in done["error"]
    assert done["error"].endswith(
        "Before that, this vacuum deleted 1 files, 8 bytes: run it again to delete the rest"
    )
    head, total, *files, last = report.lines()
    assert head == f"Topic: orders\tError: {done['error']}"
    assert (total, len(files)) == ("Topic: orders\tFiles: 1\tBytes: 8", 1)
    assert last == "Deleted 1 files, 8 bytes."
    assert littered.does("vacuum", "--execute").endswith("Deleted 4 files, 48 bytes.\n")


def test_the_grace_decides(littered: Root) -> None:
    assert littered.does("vacuum", "--grace", "3d") == (
        f"Topic: orders\tWaiting: 2\tBytes: 22\tFrom: {REMOVED_FOR_3D}\tUntil: {REMOVED_FOR_3D}\n"
        "There is nothing to delete.\n"
    )
    assert "Would delete 5 files" in littered.does("vacuum", "--grace", "47h")
    output = littered.does("vacuum", "--execute", "--grace", "72h")
    assert output.splitlines()[1:] == ["Deleted 0 files, 0 bytes."]
    assert littered.does("vacuum", "--execute").endswith("Deleted 5 files, 56 bytes.\n")


def test_deleted_topics_are_vacuumed(littered: Root) -> None:
    littered.does("topics", "delete", "--topic", "orders")
    littered.clock.now_ms += 2 * DAY_MS
    littered.does("vacuum", "--execute")
    assert not [file for file in littered.files() if file.startswith("orders-")]


def test_one_topic_that_cannot_be_vacuumed_leaves_the_others(littered: Root) -> None:
    littered.does("topics", "create", "--topic", "broken")
    log = littered.path / "_klog" / "topics" / "broken" / "log"
    (log / f"{0:020d}.json").write_bytes(b"{}")
    (littered.path / "_klog" / "topics" / "begun").mkdir()  # Its creator was killed, or still runs.
    result = littered.run("vacuum", "--execute")
    assert (result.code, result.err) == (1, "")
    assert result.out.decode().startswith("Topic: broken\tError: commit ")
    assert result.out.decode().endswith("Deleted 5 files, 56 bytes.\n")
    assert "its format is None" in littered.refuses("vacuum", "--topic", "broken")
    for topic in ("begun", "nope"):
        assert f"there is no topic {topic}" in littered.refuses("vacuum", "--topic", topic)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("24h", DAY_MS), ("1d", DAY_MS), ("90m", 5_400_000), ("30s", 30_000), ("5ms", 5), ("0h", 0)],
)
def test_a_grace_is_read(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["24", "", "-1h", "1.5h", "1w", "h", "9" * 13 + "h"])
def test_a_grace_that_is_none(on_root: Root, text: str) -> None:
    assert "is not a duration" in on_root.refuses("vacuum", f"--grace={text}", code=2)


def test_both_at_once_are_wrong_usage(on_root: Root) -> None:
    assert "not allowed with" in on_root.refuses("vacuum", "--execute", "--dry-run", code=2)


def test_commits_before_a_checkpoint_expire(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "orders")
    for _ in range(5):
        on_root.append("orders", 0, 1)
        on_root.clock.now_ms += 1000
    root = find_root(str(on_root.path))
    assert root is not None
    log = root.log("orders")
    checkpoint_writer.write_checkpoint(log, log.load())
    on_root.append("orders", 0, 1)
    assert on_root.does("vacuum") == "There is nothing to delete.\n"
    on_root.clock.now_ms += 40 * DAY_MS
    line = "Topic: orders\tCommits: 6\n"
    assert on_root.does("vacuum").startswith(f"{line}Would delete 0 files, 0 bytes, 6 commits.")
    assert on_root.does("vacuum", "--log-retention", "50d") == "There is nothing to delete.\n"
    history = on_root.does("history", "--topic", "orders")
    assert on_root.does("vacuum", "--execute") == f"{line}Deleted 0 files, 0 bytes, 6 commits.\n"
    assert on_root.state("orders").log_end == (6,)
    assert len(on_root.does("history", "--topic", "orders").splitlines()) < len(
        history.splitlines()
    )


def linked(root: Path, name: str) -> Path:
    """Move a file or a directory of a root elsewhere, and link to it."""
    place = root.parent / "another disk" / name
    place.parent.mkdir(parents=True)
    (root / name).rename(place)
    (root / name).symlink_to(place)
    return place


def files_at(place: Path) -> set[Path]:
    """Return a file, or all files of a directory."""
    return {path for path in (place, *place.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("directory", ["orders-0", "orders-1"])
def test_a_linked_partition_is_left(littered: Root, directory: str) -> None:
    due = json.loads(littered.does("vacuum", "--json"))["topics"]["orders"]["files"]
    place = linked(littered.path, directory)
    before = files_at(place)
    plan = json.loads(littered.does("vacuum", "--json"))["topics"]["orders"]
    done = json.loads(littered.does("vacuum", "--execute", "--json"))["topics"]["orders"]
    assert done == plan
    assert files_at(place) == before
    assert done["left"] == {file: directory for file in due if file.startswith(directory)}
    assert done["files"].keys() == due.keys() - done["left"].keys()
    assert len(done["left"]) in (2, 3)
    output = littered.does("vacuum")
    assert f"Topic: orders\tLeft: {len(done['left'])}\n" in output
    assert all(f"\tFile: {file}\tLink: {directory}\n" in output for file in done["left"])
    littered.append("orders", int(directory[-1]), 1)
    assert files_at(place) > before  # It is still read and written.


def test_a_linked_segment_is_left_and_its_index_goes(littered: Root) -> None:
    due = json.loads(littered.does("vacuum", "--json"))["topics"]["orders"]
    place = linked(littered.path, due["removed"][0])
    for _ in range(2):  # It is not purged while it exists.
        done = json.loads(littered.does("vacuum", "--execute", "--json"))["topics"]["orders"]
        assert done["left"] == {due["removed"][0]: due["removed"][0]}
        littered.clock.now_ms += DAY_MS
    assert place.exists()
    left = [file for file in littered.files() if file in due["files"]]
    assert left == [due["removed"][0]]


OWN = "_klog/topics/orders"


@pytest.mark.parametrize(
    "name",
    [
        "_klog", "_klog/topics", OWN, f"{OWN}/log", f"{OWN}/checkpoints", f"{OWN}/gc",
        f"{OWN}/pins", f"{OWN}/parts", f"{OWN}/sidecars", f"{OWN}/log/{1:020d}.json",
        f"{OWN}/pins/12345678.json",
    ],
)  # fmt: skip
def test_what_is_linked_in_the_topics_log_is_left(littered: Root, name: str) -> None:
    """Of every kind: commits, expirations, checkpoints, leases, temporary files."""
    root = find_root(str(littered.path))
    assert root is not None
    log = root.log("orders")
    for _ in range(3):
        littered.append("orders", 0, 1)
        checkpoint_writer.write_checkpoint(log, log.load())
    own = littered.path / OWN
    for folder in ("gc", "pins", "parts", "sidecars"):
        (own / folder).mkdir(exist_ok=True)
    (own / "gc" / f"{0:020d}").write_bytes(b"")
    (own / "pins/12345678.json").write_text('{"version": 0, "expiresMs": 5}')
    (own / "parts" / f"{0:020d}-{1:012d}-{0:08x}.parquet").write_bytes(b"1")
    (own / "sidecars" / f"{0:020d}-{0:016x}-{1:012d}-{0:08x}.parquet").write_bytes(b"1")
    for folder in ("log", "checkpoints", "gc", "parts", "sidecars"):
        killed = temporary_path(str(own / folder / f"{0:020d}.x"), lambda: "0" * 16)
        Path(killed).write_bytes(b"1")
    littered.clock.now_ms += 40 * DAY_MS
    place = linked(littered.path, name)
    before = files_at(place)
    arguments = ("vacuum", "--execute", "--json", "--grace", "1h", "--log-retention", "1h")
    for _ in range(2):
        littered.clock.now_ms += DAY_MS
        done = json.loads(littered.does(*arguments))["topics"]["orders"]
        assert done["left"][name] == name
        assert set(done["left"].values()) == {name}
        assert before <= files_at(place)
        assert (littered.path / name).is_symlink()
    assert littered.state("orders").log_end == (6, 0)


def test_a_root_may_be_a_link(littered: Root) -> None:
    link = littered.path.parent / "given"
    link.symlink_to(littered.path)
    due = json.loads(littered.does("vacuum", "--json"))["topics"]["orders"]
    littered.path = link
    done = json.loads(littered.does("vacuum", "--execute", "--json"))["topics"]["orders"]
    assert (done, done["left"]) == (due, {})
    assert not littered.files() & due["files"].keys()


@pytest.mark.parametrize("words", [[], ["--dry-run"], ["--execute"]])
def test_what_waits_and_until_when(on_root: Root, words: list[str]) -> None:
    on_root.does("topics", "create", "--topic", "orders")
    begun_ms = on_root.clock.now_ms
    for records in (1, 2, 3):
        on_root.append("orders", 0, records)
    topic_id = on_root.state("orders").topic_id
    for hour, start in enumerate((1, 3)):
        on_root.clock.now_ms = begun_ms + 3_600_000 * (hour + 1)
        build = commit_builders.delete_records(topic_id, {0: start})
        on_root.commit("orders", build, "delete-records")
    report = json.loads(on_root.does("vacuum", *words, "--json"))
    assert report["topics"]["orders"]["waiting"] == {
        "files": 4,
        "bytes": 7 + 14 + 2 * 8,
        "firstMs": begun_ms + 3_600_000 + DAY_MS,
        "lastMs": begun_ms + 2 * 3_600_000 + DAY_MS,
    }
    line, *_ = on_root.does("vacuum", *words).splitlines()
    assert line == (
        "Topic: orders\tWaiting: 4\tBytes: 37\tFrom: 2023-11-15T23:13:20.000Z"
        "\tUntil: 2023-11-16T00:13:20.000Z"
    )
    on_root.clock.now_ms = begun_ms + 3_600_000 + DAY_MS
    assert "\tWaiting: 2\tBytes: 22\t" in on_root.does("vacuum", *words)
    on_root.does("vacuum", "--execute")
    on_root.clock.now_ms += DAY_MS
    on_root.does("vacuum", "--execute")
    waiting = json.loads(on_root.does("vacuum", *words, "--json"))["topics"]["orders"]["waiting"]
    assert waiting == {"files": 0, "bytes": 0, "firstMs": None, "lastMs": None}
    assert "Waiting" not in on_root.does("vacuum", *words)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_lease_keeps_files_for_longer(on_root: Root, is_damaged: bool) -> None:
    on_root.does("topics", "create", "--topic", "orders")
    on_root.append("orders", 0, 1)
    root = find_root(str(on_root.path))
    assert root is not None
    take_lease(root.log("orders"), "a-reader-1", 1, 7 * DAY_MS)
    ends_ms = on_root.clock.now_ms + 7 * DAY_MS
    if is_damaged:
        (on_root.path / "_klog/topics/orders/pins/a-reader-1.json").write_bytes(b"{")
    build = commit_builders.delete_records(on_root.state("orders").topic_id, {0: 1})
    on_root.commit("orders", build, "delete-records")
    on_root.clock.now_ms += 2 * DAY_MS
    waiting = json.loads(on_root.does("vacuum", "--json"))["topics"]["orders"]["waiting"]
    assert (waiting["files"], waiting["lastMs"]) == (2, None if is_damaged else ends_ms)
    assert ("Until: a lease is deleted" in on_root.does("vacuum")) == is_damaged
