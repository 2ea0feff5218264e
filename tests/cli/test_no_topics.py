"""The errors of verbs in a root whose topics are all deleted, and in one that never had a topic.

The rule: an error says whether a topic was deleted or never existed, and never sends the user to
another directory: the root is the right one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.embedded import open_log
from tests.support.klog_command import Klog

OF_ONE_TOPIC = [
    ["consume"], ["consume", "--partition", "0"], ["configs"], ["produce"], ["verify"], ["compact"],
    ["merge"], ["retain"], ["topics", "describe"], ["topics", "alter", "--partitions", "3"],
    ["topics", "delete"], ["delete-records", "--partition", "0", "--offset", "1"],
    ["export-log", "--to", "/nowhere/at/all"], ["verifiable-producer"], ["verifiable-consumer"],
]  # fmt: skip
OF_ALL = [
    ["topics", "list"], ["topics", "describe"], ["verify"], ["compact"], ["merge"], ["retain"],
    ["vacuum"],
]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    open_log(str(tmp_path / "root"), {}).create_topic("t")
    return tmp_path / "root"


@pytest.fixture
def deleted(root: Path) -> str:
    open_log(str(root), {}).delete_topic("t")
    return str(root)


@pytest.fixture
def empty(tmp_path: Path, root: Path) -> str:
    (tmp_path / "empty" / "_klog").mkdir(parents=True)
    (tmp_path / "empty" / "_klog" / "format.json").write_bytes(
        (root / "_klog" / "format.json").read_bytes()
    )
    return str(tmp_path / "empty")


@pytest.mark.parametrize("command", OF_ONE_TOPIC, ids=" ".join)
def test_a_topic_that_was_deleted(klog: Klog, deleted: str, command: list[str]) -> None:
    result = klog(*command, "--topic", "t", "--root", deleted)
    assert result.code == 1
    assert "topic t" in result.err
    assert "was deleted" in result.err
    assert "klog history --topic t" in result.err
    assert "give the root itself" not in result.err
    if command[0] == "consume":
        assert f"{deleted} has no topics. Create one with `klog topics create`" in result.err


@pytest.mark.parametrize("command", OF_ONE_TOPIC, ids=" ".join)
def test_a_topic_of_a_root_without_any(klog: Klog, empty: str, command: list[str]) -> None:
    result = klog(*command, "--topic", "t", "--root", empty)
    assert result.code == 1
    assert "no topic" in result.err
    assert "has no topics. Create one with `klog topics create`" in result.err
    assert "give the root itself" not in result.err


@pytest.mark.parametrize("command", OF_ALL, ids=" ".join)
def test_all_topics_are_none(klog: Klog, deleted: str, empty: str, command: list[str]) -> None:
    for root in (deleted, empty):
        result = klog(*command, "--root", root)
        assert (result.code, result.err) == (0, "")


def test_a_deleted_topic_is_not_what_was_meant(klog: Klog, deleted: str) -> None:
    log = open_log(deleted, {})
    log.create_topic("orders")
    log.create_topic("order")
    log.delete_topic("order")
    result = klog("verify", "--topic", "orderz", "--root", deleted)
    assert "did you mean orders?" in result.err
    log.delete_topic("orders")
    result = klog("verify", "--topic", "orderz", "--root", deleted)
    assert "did you mean" not in result.err


def test_a_brokers_directory_without_partitions(klog: Klog, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    result = klog("consume", "--topic", "t", "--root", str(tmp_path / "raw"))
    assert "give the root itself, or the broker's log directory" in result.err
