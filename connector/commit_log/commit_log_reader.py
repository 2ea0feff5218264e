"""Load a topic's state: choose the files of its commit log that lead to it, and replay them.

The rule (docs/commit-protocol.md, Load): a load begins with a state or the newest complete
checkpoint, and reads commits by number. Commits at or below the last expired version may be gone,
so a free number there proves nothing: this version is read after the tail, and if it is above the
start, the load starts again from a checkpoint. A load that begins without a state lists the
commits, and so does one whose last listing is a minute old: a commit that was lost at rest is an
error, never the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from klog.connector.commit_log.cached_state import check_not_replaced, is_of_another_log
from klog.connector.commit_log.commit import REPAIR, Commit
from klog.connector.commit_log.commit_log_files import CommitLogFiles
from klog.connector.commit_log.commit_tail import Tail, read_by_number, read_listed
from klog.connector.commit_log.lost_commit_errors import (
    THIS_PROCESS,
    Evidence,
    ForkedCommit,
    forked_commit_error,
    lost_commit_error,
)
from klog.connector.commit_log.state_replay import compacted, replay
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import small_file_exists
from klog.errors import KlogError

MAX_LOADS = 8
"""A load starts again when commits expire meanwhile; so often in a row means an error."""
LISTING_INTERVAL_MS = 60_000
"""A state that is followed by number for longer lists the commits: one may be lost."""


@dataclass(frozen=True, slots=True)
class CommitLogReader(CommitLogFiles):
    """The commit log of one topic, for reading.

    `clock` returns milliseconds since the epoch. `has_description` says that `topic.json` is known
    to exist; if not, each load that begins without a state looks for it.
    """

    clock: Callable[[], int]
    has_description: bool = field(default=True, kw_only=True)

    def load(self, cached: TopicState | None = None) -> TopicState:
        """Return the topic's state as of its last commit.

        Args:
            cached: The state of an earlier load; None if there is none.

        Returns:
            The state. Version -1 means that there is no such topic.

        Raises:
            LostCommitError: A commit is missing though a later one exists.
            KlogError: A commit or a checkpoint is damaged. The error names the file.
        """
        if cached is None:
            return self.load_cold(None)
        if self.is_listing_due(cached):
            return self._list_again(cached)
        tail = read_by_number(self.read, cached.version + 1)
        # After the tail: a number that was read, or was free, may have expired.
        if self.last_expired_version() > cached.version:
            return self.load_cold(cached)
        if not tail:
            return cached
        if not tail[0].is_on_top_of(cached.last_write_id):
            return self.load_cold(cached)  # Of another log, or its commit was lost and replaced.
        return self.replay_tail(cached, tail) if not _is_repaired(tail) else self.load_cold(cached)

    def is_listing_due(self, state: TopicState) -> bool:
        """Return whether commits may have been lost unseen for too long; a clock may go back.

        Args:
            state: A state that was loaded before.
        """
        return self._is_old(state.listed_ms)

    def is_cold_load_due(self, state: TopicState) -> bool:
        """Return whether commits below a state may have been lost unseen for too long.

        A listing that starts at a state does not show them, so it does not count.

        Args:
            state: A state that was loaded before.
        """
        return self._is_old(state.loaded_ms)

    def _is_old(self, time_ms: int) -> bool:
        return time_ms < 0 or not 0 <= self.clock() - time_ms < LISTING_INTERVAL_MS

    def _list_again(self, cached: TopicState) -> TopicState:
        """Load from a state, and list the commits from its own version on."""
        now_ms, evidence = self.clock(), _evidence_of(cached)
        start = max(cached.version, 0)
        tail = read_listed(self.store, self.paths, self.read, start, evidence)
        if tail.lost_version is not None or self.last_expired_version() > cached.version:
            return self.load_cold(cached)
        commits = tail.commits
        if cached.version >= 0:
            if cached.writes.get(commits[0].write_id) != cached.version:
                return self.load_cold(cached)  # Of another log, or it was lost and replaced.
            commits = commits[1:]
        if _is_repaired(commits):
            return self.load_cold(cached)
        state = self.replay_tail(cached, commits) if commits else cached
        if any(name.version > state.version for name in self.checkpoint_names()):
            return self.load_cold(cached)  # The last commits may be lost.
        return replace(state, listed_ms=now_ms)

    def load_cold(self, cached: TopicState | None) -> TopicState:
        """Load from the newest checkpoint, or from nothing.

        A log that was created again by hand is loaded as a new one.

        Args:
            cached: The state that this process has loaded before; None if there is none.

        Raises:
            LostCommitError: A commit is lost, such as the last one of `cached`.
            KlogError: The checkpoint of the last expired version cannot be read.
        """
        for _ in range(MAX_LOADS):
            now_ms = self.clock()
            state = self.newest_checkpoint()
            evidence = None if cached is None else _evidence_of(cached)
            tail = read_listed(self.store, self.paths, self.read, state.version + 1, evidence)
            last_commit = None if tail.commits else self._read_last_commit(state)
            # After the tail: a number that was read, or was free, may have expired.
            last_expired = self.last_expired_version()
            if last_expired > state.version:
                continue
            if (
                cached is not None
                and tail.lost_version is not None
                and self._is_another(cached, state, tail)
            ):
                return self.load_cold(None)
            self._refuse_lost(tail)
            if not tail.commits and last_expired < state.version:
                self._refuse_alone(state, last_commit)
            state = self.replay_tail(state, tail.commits) if tail.commits else state
            self._refuse_lost_description(state)
            if cached is not None:
                check_not_replaced(self.paths, cached, state)
            return replace(state, listed_ms=now_ms, loaded_ms=now_ms, own_commits=0)
        raise KlogError(
            f"{self.paths.directory}: no checkpoint at or above version "
            f"{self.last_expired_version()} can be read, and the commits up to it have expired. "
            f"Restore the newest file of {self.paths.checkpoints}, or those of {self.paths.parts} "
            "that it names"
        )

    def _is_another(self, cached: TopicState, state: TopicState, tail: Tail) -> bool:
        """Return whether a log that lacks a cached version is not the cached one."""
        return is_of_another_log(cached, self.replay_tail(state, tail.commits))

    def _refuse_lost(self, tail: Tail) -> None:
        """Raise `LostCommitError` if the tail ends at a lost commit."""
        if tail.lost_version is None or tail.evidence is None:
            return
        raise lost_commit_error(self.paths, tail.lost_version, tail.evidence)

    def _refuse_lost_description(self, state: TopicState) -> None:
        """Raise `KlogError` if a topic has commits and no `topic.json`, which is created first."""
        if self.has_description or state.version < 0:
            return
        path = self.paths.description
        if not small_file_exists(self.store, path):
            raise KlogError(
                f"{path}: this file is lost: the topic has commits up to version {state.version}. "
                "Restore it from a copy, or run `klog repair`"
            )

    def _read_last_commit(self, state: TopicState) -> Commit | None:
        """Read the last commit of a state, twice if it is missing."""
        if state.version < 0:
            return None
        return self.read_without_sidecar(state.version) or self.read_without_sidecar(state.version)

    def _refuse_alone(self, state: TopicState, last_commit: Commit | None) -> None:
        """Raise if no commit follows a checkpoint, and its own commit is missing or another one.

        Later commits may have been lost with it without a trace.
        """
        assert state.checkpoint is not None  # No other state is loaded without a commit.
        path = self.paths.checkpoint(state.checkpoint)
        if last_commit is None:
            self._refuse_lost(Tail([], state.version, Evidence(state.version, path)))
        elif state.writes.get(last_commit.write_id) != state.version:
            raise KlogError(
                f"{path}: this checkpoint is not one of these commits: one of them was lost and "
                "another was put in its place, or they came from another topic. Restore "
                f"{self.paths.commits} from a copy; `klog verify` names such commits"
            )

    def _has_last_commit_of(self, state: TopicState) -> bool:
        """Return whether the last commit of a state is that of this log: one read.

        Args:
            state: A state that was loaded before.
        """
        if state.version < 0:
            return True
        commit = self.read_without_sidecar(state.version)
        return commit is not None and state.writes.get(commit.write_id) == state.version

    def follow(self, state: TopicState) -> TopicState | None:
        """Return the state that the commits after another one lead to, for planning.

        The last expired version is not read, so it may be an old state of this log, on which a
        commit would lose its number or be built again.

        Args:
            state: A state that was loaded before.

        Returns:
            The new state; None if the log does not have the last commit of `state`, or was
            repaired.
        """
        if not self._has_last_commit_of(state):
            return None
        tail = read_by_number(self.read, state.version + 1)
        if _is_repaired(tail):
            return None
        return self.replay_tail(state, tail) if tail else state

    def replay_tail(self, state: TopicState, tail: list[Commit]) -> TopicState:
        """Return the state that commits after another state lead to.

        Args:
            state: The state.
            tail: The commits after it, at least one.

        Raises:
            LostCommitError: A commit follows another write than the one below it.
            KlogError: The commits do not fit the state.
        """
        try:
            return compacted(replay(state, tail))
        except KlogError as exc:
            self._refuse_forked(state, tail)
            raise KlogError(
                f"{self.paths.commits}: {exc}. A program other than klog changed this log: restore "
                "it from a copy"
            ) from exc

    def _refuse_forked(self, state: TopicState, tail: list[Commit]) -> None:
        """Raise `LostCommitError` for the commit below one that was put on top of another write.

        That other write is the lost one, unless the file below is not that of the state: then the
        state's write is lost.
        """
        below, write_id = None, state.last_write_id
        for commit in tail:
            if commit.is_on_top_of(write_id):
                below, write_id = commit, commit.write_id
                continue
            if commit.version == 0 or not commit.previous_write_id:
                return  # klog does not write such a commit.
            path, number = self.paths.commit(commit.version), commit.version - 1
            below = below or self.read_without_sidecar(number)
            if below is None:
                raise lost_commit_error(self.paths, number, Evidence(commit.version, path))
            expected, source = commit.previous_write_id, path
            if below.write_id != write_id:
                expected, source = write_id, self._source(state)
            file = self.paths.commit(number)
            raise forked_commit_error(ForkedCommit(file, below, expected, source))

    def _source(self, state: TopicState) -> str:
        """Return what shows the last commit of a state."""
        name = state.checkpoint
        is_checkpoint = name is not None and name.version == state.version
        return self.paths.checkpoint(name) if name and is_checkpoint else THIS_PROCESS


def _evidence_of(state: TopicState) -> Evidence:
    return Evidence(state.version, THIS_PROCESS)


def _is_repaired(commits: Iterable[Commit]) -> bool:
    """Return whether the log below these commits is not the one that a process has loaded."""
    return any(commit.operation == REPAIR for commit in commits)
