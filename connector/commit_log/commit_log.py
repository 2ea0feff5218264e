"""A topic's commit log on a store: put one commit on top of a state of it.

The rule (docs/commit-protocol.md): commits are create-only files without gaps in their numbers, and
the one that creates a number is the one that counts. Whoever does not know whether theirs did reads
the number back and looks for its write id. The boundary is read after each put, as a number at or
below it may have been another's before. Nothing is put at a number beyond which there is one, nor
on top of a state that has gone on by number for long: a commit below may be lost.
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
from klog.connector.commit_log.put_outcome import PutOutcome, commit_state_unknown, put_commit
from klog.connector.commit_log.state_replay import replay
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
)

MAX_COMMITS = 200
"""Others may win the number so often before a commit gives up."""
MAX_UNLISTED_COMMITS = 100
"""A writer that has put so many commits since the last listing loads from a checkpoint."""


@dataclass(frozen=True, slots=True)
class CommitLog(CommitLogReader):
    """The commit log of one topic.

    `wait` is called with the number of tries before each further one; it sleeps a while that grows
    and differs between writers.
    """

    wait: Callable[[int], None]

    def commit(self, state: TopicState, build: CommitBuilder, attempt: CommitInfo) -> TopicState:
        """Put a commit on top of the log, anew on top of what others commit meanwhile.

        Gives the state that has it, or the one in which `build` finds it done. Raises what `build`
        raises, `CommitConflictError` when others won every number, and `CommitStateUnknownError`
        when the store does not say whether the commit landed.
        """
        for tries in range(MAX_COMMITS):
            if self._is_cold_commit_due(state):
                state = self.load_cold(state)
            if attempt.write_id in state.writes:
                return state
            actions = build(state)
            if actions is None:
                return state
            made = Commit(
                version=state.version + 1,
                write_id=attempt.write_id,
                previous_write_id=state.last_write_id,
                timestamp_ms=max(self.clock(), state.timestamp_ms + 1),
                operation=attempt.operation,
                engine=attempt.engine,
                actions=actions,
            )
            made, beside = with_sidecar_if_large(made)
            after = replay(state, [made])  # Before it is written: what it says has to follow.
            if self._is_one_above(made.version):
                # The state is an old one, or its next number is lost: the load tells which.
                state = self.load_cold(state)
                continue
            if beside is not None:
                commit_sidecar.decode_sidecar(
                    made, *beside, self.paths.topic
                )  # As `put_commit` does.
                self.store.put(self.paths.sidecar(beside[0]), [beside[1]])
            outcome = put_commit(self, made, self.wait)
            if outcome is PutOutcome.LANDED:
                return replace(after, own_commits=state.own_commits + 1)
            # First the wait: a state that was loaded before it is an old one after it.
            self.wait(tries + 1)
            state = self._reload(state, attempt, outcome)
            if attempt.write_id in state.writes:
                return state
            if not state.remembers(made.version):
                raise commit_state_unknown(
                    self, made, "too many commits came behind it to be remembered"
                )
        raise CommitConflictError(
            f"{self.paths.directory}: others committed {MAX_COMMITS} times before this "
            f"{attempt.operation}; run it again when fewer write"
        )

    def load_to_commit(self, cached: TopicState | None) -> TopicState:
        """Return the state for a commit that follows at once; raises as `load` does.

        A load from a checkpoint that `commit` would make is made here, and nothing before it.
        """
        if cached is not None and self._is_cold_commit_due(cached):
            return self.load_cold(cached)
        return self.load(cached)

    def _is_cold_commit_due(self, state: TopicState) -> bool:
        """Return whether a commit on top of a state has to load from a checkpoint first."""
        return self.is_cold_load_due(state) or state.own_commits >= MAX_UNLISTED_COMMITS

    def _is_one_above(self, version: int) -> bool:
        """Tell whether there is a commit above a number that is about to be put."""
        return self.read_without_sidecar(version + 1) is not None

    def _reload(self, state: TopicState, attempt: CommitInfo, outcome: PutOutcome) -> TopicState:
        """Load what others committed; where mine may be among it, not to know that is an error."""
        try:
            return self.load_to_commit(state)
        except (KlogError, OSError) as exc:
            if outcome is PutOutcome.TAKEN:
                raise
            raise CommitStateUnknownError(
                f"{self.paths.directory}: cannot tell whether {attempt.operation} "
                f"{attempt.write_id} landed: {exc}. Look for it with `klog history` before it is "
                "tried again; delete nothing"
            ) from exc
