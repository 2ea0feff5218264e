"""A klog root on local disk for the commands, with a clock that a test sets."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from klog.connector.commit_log import append_commit
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.topic_state import TopicState
from tests.connector.commit_log.memory_logs import (
    Clock,
)
from tests.support.segment_entry import entry_of

if TYPE_CHECKING:
    from tests.support.klog_command import CommandResult, Klog


class Root:
    """A root in a directory of its own, and the commands on it."""

    def __init__(self, klog: Klog, path: Path, clock: Clock) -> None:
        self.path, self.clock = path, clock
        self._klog, self._ids = klog, count()

    def run(self, *arguments: str) -> CommandResult:
        """Run `klog VERB...` on the root."""
        return self._klog(*arguments, "--root", str(self.path))

    def does(self, *arguments: str) -> str:
        """Run a command that must succeed without a warning; return its output."""
        result = self.run(*arguments)
        assert (result.code, result.err) == (0, "")
        return result.out.decode()

    def refuses(self, *arguments: str, code: int = 1) -> str:
        """Run a command that must fail, in one line unless it is wrong usage; return its error."""
        result = self.run(*arguments)
        assert (result.code, result.out) == (code, b"")
        assert result.err.startswith("klog: " if code == 1 else "usage: klog ")
        assert code == 2 or result.err.count("\n") == 1
        return result.err

    def stage(self, topic: str, partition: int, records: int) -> append_commit.StagedSegments:
        """Stage a segment of 7 bytes per record and an index of 8 bytes; do not commit them."""
        state = self.state(topic)
        end = state.log_end[partition]
        path = SegmentPath(topic, partition, end, state.version, f"{next(self._ids):08x}")
        file = self.path / str(path)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"record\n" * records)
        file.with_suffix(".index").write_bytes(bytes(8))
        sizes = {"record_count": records, "size_bytes": 7 * records, "index_bytes": 8}
        segment = {**entry_of(str(path), partition, end, end + records), **sizes}
        return append_commit.StagedSegments(state.topic_id, state.version, [segment])

    def append(
        self, topic: str, partition: int, records: int, writer: append_commit.Writer | None = None
    ) -> None:
        """Stage a segment and commit it."""
        build = append_commit.append(self.stage(topic, partition, records), writer)
        self.commit(topic, build, "append")

    def commit(self, topic: str, build: CommitBuilder, operation: str) -> None:
        """Commit what a builder returns."""
        root = find_root(str(self.path))
        assert root is not None
        log = root.log(topic)
        commit_info = CommitInfo(f"write {next(self._ids)}", operation, "a test")
        log.commit(log.load(), build, commit_info)

    def state(self, topic: str) -> TopicState:
        """Load a topic."""
        root = find_root(str(self.path))
        assert root is not None
        return root.log(topic).load()

    def files(self) -> set[str]:
        """Return the path of every file, relative to the root."""
        return {str(file.relative_to(self.path)) for file in self.path.rglob("*") if file.is_file()}
