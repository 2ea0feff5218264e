"""`klog topics delete`: it asks on a terminal, never elsewhere, and deletes nothing by half."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_root import Root
from tests.support.waiting import TIMEOUT_SECONDS

KLOG = Path(sys.executable).with_name("klog")


@pytest.fixture
def root(on_root: Root) -> Root:
    for topic in ("a", "b"):
        on_root.does("topics", "create", "--topic", topic, "--partitions", "2")
    on_root.append("a", 1, 1200)
    return on_root


def on_terminal(root: Root, answer: bytes, *arguments: str) -> tuple[int, bytes, str]:
    """Delete topics with a terminal as stdin and stderr; return code, output and terminal text."""
    controller, terminal = pty.openpty()
    os.write(controller, answer)
    with subprocess.Popen(
        [sys.executable, KLOG, "topics", "delete", "--root", root.path, *arguments],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        start_new_session=True,
    ) as process:
        os.close(terminal)
        out, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    text = b""
    try:
        while part := os.read(controller, 1 << 16):
            text += part
    except OSError:  # The terminal is closed, and all of its text was read.
        pass
    os.close(controller)
    return process.returncode, out, text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_it_asks_and_deletes(root: Root, answer: bytes) -> None:
    code, out, text = on_terminal(root, answer, "-t", "a")
    assert (code, out.startswith(b"Deleted topic a.")) == (0, True)
    assert "Topic a: 2 partitions, 1,200 records, 8,400 bytes.\nDelete it? [y/N] " in text
    assert root.does("topics", "list") == "b\n"


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"yess\n", b"\x04"])
def test_any_other_answer_deletes_nothing(root: Root, answer: bytes) -> None:
    code, out, text = on_terminal(root, answer, "-t", "a,b")
    assert (code, out) == (1, b"")
    assert "Topic b: 2 partitions, 0 records, 0 bytes.\nDelete these 2 topics? [y/N] " in text
    assert text.endswith("Nothing was deleted.\n")
    assert root.does("topics", "list") == "a\nb\n"


def test_yes_does_not_ask(root: Root) -> None:
    code, out, text = on_terminal(root, b"", "-t", "a", "-t", "b", "--yes")
    assert (code, text) == (0, "")
    assert [line.split(".")[0] for line in out.decode().splitlines()] == [
        "Deleted topic a",
        "Deleted topic b",
    ]
    assert root.does("topics", "list") == ""


def test_a_missing_topic_needs_no_answer(root: Root) -> None:
    code, out, text = on_terminal(root, b"", "-t", "zzz", "--if-exists")
    assert (code, out, text) == (0, b"There is no topic zzz.\n", "")


def test_a_script_is_not_asked(root: Root) -> None:
    with subprocess.Popen(
        [sys.executable, KLOG, "topics", "delete", "--root", root.path, "-t", "a"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        # Its stdin is still open: it waited for no line.
        assert process.wait(timeout=TIMEOUT_SECONDS) == 0
    assert root.does("topics", "list") == "b\n"


def test_several_topics(root: Root) -> None:
    lines = root.does("topics", "delete", "-t", "a, b", "--json").splitlines()
    assert [json.loads(line)["topic"] for line in lines] == ["a", "b"]
    assert root.does("topics", "list") == ""


def test_a_wrong_name_deletes_nothing(root: Root) -> None:
    assert "there is no topic c" in root.refuses("topics", "delete", "-t", "a", "-t", "c")
    assert root.does("topics", "list") == "a\nb\n"
    lines = root.does("topics", "delete", "-t", "a", "-t", "c", "--if-exists").splitlines()
    assert lines[1] == "There is no topic c."
    assert root.does("topics", "list") == "b\n"


def test_undelete(root: Root) -> None:
    before = root.state("a")
    deleted = root.does("topics", "delete", "-t", "a")
    assert deleted.endswith("until then `klog topics undelete --topic a` restores it.\n")
    assert "`klog topics undelete` restores it while" in root.refuses("configs", "-t", "a")
    back = root.does("topics", "undelete", "-t", "a")
    assert back == "Topic a is back: 2 partitions, 1,200 records, 8,400 bytes.\n"
    state = root.state("a")
    assert (state.topic_id, state.log_end) == (before.topic_id, before.log_end)
    line = root.does("history", "-t", "a", "--limit", "1")
    assert "\tOperation: undelete-topic\t" in line
    assert f"\tTopicId: {before.topic_id}\tPartitionCount: 2\t" in line
    assert f"\tRestored: {before.version}\t" in line


def test_undelete_as_json(root: Root) -> None:
    before = root.state("b")
    root.does("topics", "delete", "-t", "b")
    row = json.loads(root.does("topics", "undelete", "-t", "b", "--json"))
    assert row == {
        "topic": "b",
        "topicId": before.topic_id,
        "version": before.version + 2,
        "partitionCount": 2,
        "configs": {},
    }


def test_what_is_not_undeleted(root: Root) -> None:
    undelete = ("topics", "undelete", "-t", "a")
    assert "topic a exists, with id " in root.refuses(*undelete)
    assert "there is no topic c" in root.refuses("topics", "undelete", "-t", "c")
    file = root.state("a").segments["file"].to_pylist()[0]
    root.does("topics", "delete", "-t", "a")
    root.clock.now_ms += 3 * 86_400_000
    root.does("vacuum", "--execute")
    error = root.refuses(*undelete)
    assert f"topic a: vacuum has deleted, or is about to delete, {file}: the topic cannot" in error
    root.does("topics", "create", "-t", "a")
    root.does("topics", "delete", "-t", "a")
    assert "Topic a is back: 1 partition, 0 records" in root.does(*undelete)


def test_undelete_where_a_name_collides(root: Root) -> None:
    root.does("topics", "create", "-t", "x.y")
    root.does("topics", "delete", "-t", "x.y")
    root.does("topics", "create", "-t", "x_y")
    assert "topic x.y collides with topic x_y" in root.refuses("topics", "undelete", "-t", "x.y")
