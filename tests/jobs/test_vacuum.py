"""Vacuums of topics that are named: what is refused, and that naming one costs no further load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.errors import OptionError
from klog.jobs import vacuum
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    root = WrittenRoot(str(tmp_path / "root"))
    root.create("t", 1)
    return root


def test_a_topic_that_is_named_is_loaded_as_often_as_one_among_all(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = TopicLog.load

    def counted(log: TopicLog, *given: Any) -> State:
        loads.append(log.paths.topic)
        return load(log, *given)

    loads: list[str] = []
    monkeypatch.setattr(TopicLog, "load", counted)
    vacuum.run(None, root.given)
    of_all = len(loads)
    vacuum.run(None, root.given, ["t", "t"])
    assert len(loads) == 2 * of_all > 0


def test_one_that_never_was_is_refused_before_anything_goes(root: WrittenRoot) -> None:
    """A folder without a commit is no topic either."""
    version = root.state("t").version
    with pytest.raises(OptionError, match="there is no topic nothere"):
        vacuum.run(None, root.given, ["t", "nothere"], dry_run=False, grace_ms=0)
    assert root.state("t").version == version
    Path(root.given, "_klog/topics/begun").mkdir()
    with pytest.raises(OptionError, match="there is no topic begun"):
        vacuum.run(None, root.given, "begun")
    assert [one.topic for one in vacuum.run(None, root.given).topics] == ["t"]
