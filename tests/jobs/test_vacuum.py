"""Vacuums: topics that are named, the load that each costs, and the report on lost commits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from klog.cli import main
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import OptionError
from klog.jobs import vacuum
from tests.corpus.clients import Sent
from tests.jobs.written_root import WrittenRoot
from tests.support.project import PROJECT

JOBS_PAGE = PROJECT / "docs" / "jobs.md"


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    root = WrittenRoot(str(tmp_path / "root"))
    root.create("t", 1)
    return root


def test_a_topic_that_is_named_is_loaded_as_often_as_one_among_all(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = CommitLog.load

    def counted(log: CommitLog, *args: Any) -> TopicState:
        loads.append(log.paths.topic)
        return load(log, *args)

    loads: list[str] = []
    monkeypatch.setattr(CommitLog, "load", counted)
    vacuum.run(None, root.location)
    of_all = len(loads)
    vacuum.run(None, root.location, ["t", "t"])
    assert len(loads) == 2 * of_all > 0


def test_one_that_never_was_is_refused_before_anything_goes(root: WrittenRoot) -> None:
    """A folder without a commit is no topic either."""
    version = root.state("t").version
    with pytest.raises(OptionError, match="there is no topic nothere"):
        vacuum.run(None, root.location, ["t", "nothere"], dry_run=False, grace_ms=0)
    assert root.state("t").version == version
    Path(root.location, "_klog/topics/begun").mkdir()
    with pytest.raises(OptionError, match="there is no topic begun"):
        vacuum.run(None, root.location, "begun")
    assert [topic.topic for topic in vacuum.run(None, root.location).topics] == ["t"]


def on_the_page() -> list[str]:
    """Return the keys of a topic's object, as the page lists them."""
    text = JOBS_PAGE.read_text().split("\n### The report as JSON\n", 1)[1]
    return re.findall(r"^\| `(\w+)` \|", text.split("\n### ", 1)[0], re.M)


@pytest.mark.parametrize(
    ("words", "is_refused"),
    [([], False), (["--execute"], True), (["--execute", "--discard-lost"], False)],
)
def test_lost_last_commits_are_in_the_report_as_the_page_says(
    root: WrittenRoot, words: list[str], is_refused: bool, capsysbinary: Any
) -> None:
    for number in range(3):
        root.append("t", [Sent(b"k", b"v", 1_700_000_000_000 + number)])
    (last,) = root.state("t").segments["file"].to_pylist()[-1:]
    for version in (2, 3):
        Path(root.location, f"_klog/topics/t/log/{version:020}.json").unlink()
    assert main(["vacuum", "--root", root.location, "--json", *words]) == 1
    topic = json.loads(capsysbinary.readouterr().out)["topics"]["t"]
    assert topic["aboveLastCommit"] == {last: 2}
    assert ("error" in topic) is is_refused
    assert {"error", *topic} == set(on_the_page())
    assert Path(root.location, last).exists()
