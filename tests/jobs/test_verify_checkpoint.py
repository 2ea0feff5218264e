"""`verify` reports a checkpoint without which versions that were kept cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from klog.connector.commit_log import checkpoint_parts, checkpoint_writer
from klog.connector.commit_log.checkpoint_store import read_last_expiration
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.past_versions import load_version
from klog.errors import OptionError
from klog.jobs import verify
from tests.connector.commit_log import memory_logs
from tests.corpus.clients import Sent
from tests.jobs.written_root import WrittenRoot


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


@pytest.fixture
def log(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> CommitLog:
    """Make versions 0 to 9. Commits up to 6 expired: its checkpoint has parts, that of 9 none."""
    monkeypatch.setattr(checkpoint_parts, "PART_ROWS", 2)
    root.create("orders", 1)
    log = root.root.log_to_write("orders")
    for number in range(8):
        root.append("orders", [Sent(None, b"%d" % number)])
        if number == 6:
            assert memory_logs.checkpoint_and_expire(log) == 6
    root.delete_records("orders", {0: 6})
    checkpoint_writer.write_checkpoint(log, log.load())
    return log


def expired_checkpoint(log: CommitLog) -> Path:
    """Return the path of the checkpoint that the last expired version rests on."""
    name = read_last_expiration(log).checkpoint
    assert name is not None
    return Path(log.paths.checkpoint(name))


def delete(log: CommitLog) -> None:
    expired_checkpoint(log).unlink()


def damage(log: CommitLog) -> None:
    path = expired_checkpoint(log)
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def delete_part(log: CommitLog) -> None:
    part, *_ = Path(log.paths.parts).iterdir()
    part.unlink()


def test_an_intact_root_has_no_finding(log: CommitLog) -> None:
    assert verify.run(None, log.paths.root).findings == ()
    assert load_version(log, 6, log.load()).version == 6


@pytest.mark.parametrize("lose", [delete, damage, delete_part])
def test_an_incomplete_checkpoint_is_reported(
    log: CommitLog, lose: Callable[[CommitLog], None]
) -> None:
    lose(log)
    report = verify.run(None, log.paths.root)
    (finding,) = report.findings
    assert (finding.kind, finding.file) == ("checkpoint", str(expired_checkpoint(log)))
    assert "commits up to version 6 have expired" in finding.reason
    assert "the oldest version that can be read is 9" in finding.reason
    assert report.exit_code == 1
    assert report.versions == {"orders": 9}
    with pytest.raises(OptionError, match="version 7 of topic orders has expired"):
        load_version(log, 7, log.load())


def test_the_next_expiration_ends_the_finding(root: WrittenRoot, log: CommitLog) -> None:
    delete(log)
    root.append("orders", [Sent(None, b"8")])
    assert memory_logs.checkpoint_and_expire(log) == 9
    assert verify.run(None, log.paths.root).findings == ()
