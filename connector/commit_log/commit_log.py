"""A topic's commit log on a store: put one commit on top of a state of it.

The rule (docs/commit-protocol.md, Commit): commits are create-only files without gaps in their
numbers, and the one that creates a number is the one that counts. A writer that does not know
whether its commit did reads the number back and looks for its write id. The last expired version is
read after each put, as a number at or below it may have been another's before. No commit is put at
a number below an existing one, nor on top of a state that was long followed by number alone: a
commit below may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from klog.connector.commit_log import commit_sidecar
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log_reader import CommitLogReader
from klog.connector.commit_log.commit_sidecar import with_sidecar_if_large
from klog.connector.commit_log.put_outcome import PutOutcome, commit_state_unknown_error, put_commit
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
)

MAX_COMMITS = 200
"""A commit gives up after others have won the number so often."""
MAX_UNLISTED_COMMITS = 100
"""A writer that has put so many commits since the last listing loads from a checkpoint."""


@dataclass(frozen=True, slots=True)
class CommitLog(CommitLogReader):
    """The commit log of one topic.

    `wait` is called before each further try with the number of tries. It sleeps for a time that
    grows and differs between writers.
    """

    wait: Callable[[int], None]

    def commit(
        self, state: TopicState, build: CommitBuilder, commit_info: CommitInfo
    ) -> TopicState:
        """Put a commit on top of the log; build it again on top of others' commits.

        Args:
            state: The state to start at.
            build: The builder of the commit. What it raises ends the commit.
            commit_info: The write id, operation and engine.

        Returns:
            The state that has the commit, or the one that `build` makes no commit for.

        Raises:
            CommitConflictError: Others won every number.
            CommitStateUnknownError: The store does not say whether the commit landed.
        """
        for tries in range(MAX_COMMITS):
            if self._is_cold_commit_due(state):
                state = self.load_cold(state)
            if commit_info.write_id in state.writes:
                return state
            actions = build(state)
            if actions is None:
                return state
            commit = Commit(
                version=state.version + 1,
                write_id=commit_info.write_id,
                previous_write_id=state.last_write_id,
                timestamp_ms=max(self.clock(), state.timestamp_ms + 1),
                operation=commit_info.operation,
                engine=commit_info.engine,
                actions=actions,
            )
            commit, sidecar = with_sidecar_if_large(commit)
            after = replay(state, [commit])  # Before it is written: it has to be valid.
            if self._has_later_commit(commit.version):
                # The state is old, or its next number is lost: the load tells which.
                state = self.load_cold(state)
                continue
            if sidecar is not None:
                # As `put_commit` does.
                commit_sidecar.decode_sidecar(commit, sidecar.name, sidecar.data, self.paths.topic)
                self.store.put(self.paths.sidecar(sidecar.name), [sidecar.data])
            outcome = put_commit(self, commit, self.wait)
            if outcome is PutOutcome.LANDED:
                return replace(after, own_commits=state.own_commits + 1)
            # The wait comes first: a state that was loaded before it is old after it.
            self.wait(tries + 1)
            state = self._reload(state, commit_info, outcome)
            if commit_info.write_id in state.writes:
                return state
            if not state.remembers(commit.version):
                raise commit_state_unknown_error(
                    self, commit, "too many commits came after it to be remembered"
                )
        raise CommitConflictError(
            f"{self.paths.directory}: others committed {MAX_COMMITS} times before this "
            f"{commit_info.operation}; run it again when there are fewer writers"
        )

    def load_to_commit(self, cached: TopicState | None) -> TopicState:
        """Return the state for a commit that follows at once; raises as `load` does.

        A load from a checkpoint that `commit` would do is done here.

        Args:
            cached: A state that was loaded before; None if there is none.
        """
        if cached is not None and self._is_cold_commit_due(cached):
            return self.load_cold(cached)
        return self.load(cached)

    def _is_cold_commit_due(self, state: TopicState) -> bool:
        """Return whether a commit on top of a state has to load from a checkpoint first."""
        return self.is_cold_load_due(state) or state.own_commits >= MAX_UNLISTED_COMMITS

    def _has_later_commit(self, version: int) -> bool:
        """Return whether there is a commit above a number that is about to be put."""
        return self.read_without_sidecar(version + 1) is not None

    def _reload(
        self, state: TopicState, commit_info: CommitInfo, outcome: PutOutcome
    ) -> TopicState:
        """Load others' commits; if this commit may be among them, a failed load is an error."""
        try:
            return self.load_to_commit(state)
        except (KlogError, OSError) as exc:
            if outcome is PutOutcome.TAKEN:
                raise
            raise CommitStateUnknownError(
                f"{self.paths.directory}: cannot tell whether {commit_info.operation} "
                f"{commit_info.write_id} was committed: {exc}. Look for it with `klog history` "
                "before you try it again; delete nothing"
            ) from exc
