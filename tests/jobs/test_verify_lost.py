"""`verify` tells of lost commits and a lost description, and goes on with other topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.log import cleaning
from klog.connector.log.root import find_root
from klog.jobs import verify
from tests.corpus.clients import Sent
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    """Make two topics of versions 0 to 4."""
    written = WrittenRoot(str(tmp_path / "root"))
    for topic in ("orders", "payments"):
        written.create(topic, 1)
        for number in range(4):
            written.append(topic, [Sent(None, b"%d" % number)])
    return written


def test_lost_commits_are_told_where_the_log_cannot_be_loaded(root: WrittenRoot) -> None:
    log = root.root.log("orders")
    for version in (1, 2):
        Path(log.paths.commit(version)).unlink()
    report = verify.run(None, root.given)
    (finding,) = report.findings
    assert (finding.topic, finding.kind) == ("orders", "lost")
    assert finding.file == log.paths.commit(1)
    assert "commits 1 to 2 are lost" in finding.what
    assert "klog repair" in finding.next_step
    assert report.versions == {"payments": 4}


def test_lost_commits_are_told_where_a_checkpoint_stands_for_them(root: WrittenRoot) -> None:
    found = find_root(root.given)
    assert found is not None
    log = found.log("orders")
    cleaning.write_checkpoint(log, log.load())
    Path(log.paths.commit(2)).unlink()
    report = verify.run(None, root.given)
    assert [one.kind for one in report.findings] == ["lost"]
    assert report.versions == {"orders": 4, "payments": 4}


def test_a_lost_description_is_told_and_other_topics_are_verified(root: WrittenRoot) -> None:
    Path(root.root.log("orders").paths.description).unlink()
    report = verify.run(None, root.given)
    (finding,) = report.findings
    assert finding.kind == "log"
    assert "topic.json: this file is lost" in finding.what
    assert report.versions == {"payments": 4}
