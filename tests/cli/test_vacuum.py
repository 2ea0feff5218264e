"""`klog vacuum`: a dry run unless told otherwise, and then just what the dry run said."""

from __future__ import annotations

import json

import pytest

from klog.connector.log import cleaning, operations
from klog.connector.log.root import find_root
from klog.connector.store.temporary import temporary_path
from klog.jobs.vacuum import duration_ms
from tests.cli.klog_root import Root
from tests.commits.logs import DAY_MS


@pytest.fixture
def littered(on_root: Root) -> Root:
    """Give a root whose topic has live files and one each of what may go, two days old."""
    on_root.does("topics", "create", "--topic", "orders", "--partitions", "2")
    on_root.append("orders", 0, 2)
    on_root.stage("orders", 1, 3)  # Its writer was killed,
    killed = temporary_path(f"orders-1/{0:020d}-{1:010d}-00000009.log", lambda: "0" * 16)
    (on_root.path / killed).write_bytes(b"12345")  # and so was this one's.
    on_root.clock.now_ms += 1000
    on_root.append("orders", 0, 1)
    topic_id = on_root.state("orders").topic_id
    on_root.commit("orders", operations.delete_records(topic_id, {0: 2}), "delete-records")
    on_root.clock.now_ms += 2 * DAY_MS
    return on_root


def test_a_dry_run_tells_and_writes_nothing(littered: Root) -> None:
    before = littered.files()
    removed, live = (f"orders-0/{n:020d}-{n and 1:010d}-" for n in (0, 2))
    said = littered.does("vacuum")
    assert littered.files() == before
    head, *rows, total = said.splitlines()
    assert head == "Topic: orders\tFiles: 5\tBytes: 56"
    assert [row.split("\t")[2:] for row in rows] == [
        ["Bytes: 8", "Kind: removed"],
        ["Bytes: 14", "Kind: removed"],
        ["Bytes: 8", "Kind: orphan"],
        ["Bytes: 21", "Kind: orphan"],
        ["Bytes: 5", "Kind: leftover"],
    ]
    assert rows[0].startswith(f"\tFile: {removed}")
    assert live not in said
    assert total == (
        "Would delete 5 files, 56 bytes. This was a dry run: give --execute to delete them."
    )
    assert littered.does("vacuum", "--dry-run", "--topic", "orders") == said


def test_it_deletes_what_it_said(littered: Root) -> None:
    told = json.loads(littered.does("vacuum", "--json"))
    assert (told["dryRun"], told["graceMs"]) == (True, DAY_MS)
    before = littered.files()
    done = json.loads(littered.does("vacuum", "--execute", "--json"))
    assert done["topics"] == told["topics"]
    gone = before - littered.files()
    assert gone == done["topics"]["orders"]["files"].keys()
    assert done["topics"]["orders"]["bytes"] == 56
    assert littered.does("vacuum") == "There is nothing to delete.\n"
    assert littered.state("orders").log_end == (3, 0)
    assert littered.does("vacuum", "--execute") == "Deleted 0 files, 0 bytes.\n"
    history = littered.does("history", "--topic", "orders")
    assert "\tOperation: vacuum\t" in history


def test_the_grace_decides(littered: Root) -> None:
    assert littered.does("vacuum", "--grace", "3d") == "There is nothing to delete.\n"
    assert "Would delete 5 files" in littered.does("vacuum", "--grace", "47h")
    said = littered.does("vacuum", "--execute", "--grace", "72h")
    assert said == "Deleted 0 files, 0 bytes.\n"
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
    (littered.path / "_klog" / "topics" / "begun").mkdir()  # Its maker was killed, or is at it.
    said = littered.run("vacuum", "--execute")
    assert (said.code, said.err) == (1, "")
    assert said.out.decode().startswith("Topic: broken\tError: commit ")
    assert said.out.decode().endswith("Deleted 5 files, 56 bytes.\n")
    assert "its format is None" in littered.refuses("vacuum", "--topic", "broken")
    for topic in ("begun", "nope"):
        assert f"there is no topic {topic}" in littered.refuses("vacuum", "--topic", topic)


@pytest.mark.parametrize(
    ("text", "expect"),
    [("24h", DAY_MS), ("1d", DAY_MS), ("90m", 5_400_000), ("30s", 30_000), ("5ms", 5), ("0h", 0)],
)
def test_a_grace_is_read(text: str, expect: int) -> None:
    assert duration_ms(text) == expect


@pytest.mark.parametrize("text", ["24", "", "-1h", "1.5h", "1w", "h", "9" * 13 + "h"])
def test_a_grace_that_is_none(on_root: Root, text: str) -> None:
    assert "is no time such as" in on_root.refuses("vacuum", f"--grace={text}", code=2)


def test_both_at_once_are_wrong_usage(on_root: Root) -> None:
    assert "not allowed with" in on_root.refuses("vacuum", "--execute", "--dry-run", code=2)


def test_commits_go_that_a_checkpoint_stands_for(on_root: Root) -> None:
    on_root.does("topics", "create", "--topic", "orders")
    for _ in range(5):
        on_root.append("orders", 0, 1)
        on_root.clock.now_ms += 1000
    found = find_root(str(on_root.path))
    assert found is not None
    log = found.log("orders")
    cleaning.write_checkpoint(log, log.load())
    on_root.append("orders", 0, 1)
    assert on_root.does("vacuum") == "There is nothing to delete.\n"
    on_root.clock.now_ms += 40 * DAY_MS
    said = "Topic: orders\tCommits: 6\n"
    assert on_root.does("vacuum").startswith(f"{said}Would delete 0 files, 0 bytes, 6 commits.")
    assert on_root.does("vacuum", "--log-retention", "50d") == "There is nothing to delete.\n"
    history = on_root.does("history", "--topic", "orders")
    assert on_root.does("vacuum", "--execute") == f"{said}Deleted 0 files, 0 bytes, 6 commits.\n"
    assert on_root.state("orders").log_end == (6,)
    assert len(on_root.does("history", "--topic", "orders").splitlines()) < len(
        history.splitlines()
    )
