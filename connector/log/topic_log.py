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
from enum import Enum

from klog.connector.log import commit as commits
from klog.connector.log import sidecar
from klog.connector.log.commit import Commit
from klog.connector.log.log_reader import LogReader
from klog.connector.log.paths import SidecarName
from klog.connector.log.state import Build, State, fold
from klog.connector.store.contract import Put
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    KlogError,
    UnsupportedFormatError,
)

MAX_COMMITS = 200
"""Others may win the number so often before a commit gives up."""
MAX_PUTS = 10
"""So often the same bytes are put at the same number while the store does not answer."""
MAX_UNLISTED_COMMITS = 100
"""A writer that has put so many commits since the last listing loads from a checkpoint."""


class _Outcome(Enum):
    LANDED = "landed"
    TAKEN = "taken"
    """Another's commit had the number, so that this one is not in the log."""
    OVERTAKEN = "overtaken"
    """The number was cleaned meanwhile, or before, or may have been between two tries: whose it
    was, only the state can tell."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What all tries of one commit have in common."""

    write_id: str
    operation: str
    engine: str


@dataclass(frozen=True, slots=True)
class TopicLog(LogReader):
    """The commit log of one topic.

    `wait` is called with the number of tries before each further one; it sleeps a while that grows
    and differs between writers.
    """

    wait: Callable[[int], None]

    def commit(self, state: State, build: Build, attempt: Attempt) -> State:
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
            made, beside = with_sidecar(made)
            after = fold(state, [made])  # Before it is written: what it says has to follow.
            if self._is_one_above(made.version):
                # The state is an old one, or its next number is lost: the load tells which.
                state = self.load_cold(state)
                continue
            if beside is not None:
                sidecar.decode(made, *beside, self.paths.topic)  # As `_put` does.
                self.store.put(self.paths.sidecar(beside[0]), [beside[1]])
            outcome = self._put(made)
            if outcome is _Outcome.LANDED:
                return replace(after, own_commits=state.own_commits + 1)
            # First the wait: a state that was loaded before it is an old one after it.
            self.wait(tries + 1)
            state = self._reload(state, attempt, outcome)
            if attempt.write_id in state.writes:
                return state
            if not state.remembers(made.version):
                raise self._unknown(made, "too many commits came behind it to be remembered")
        raise CommitConflictError(
            f"{self.paths.directory}: others committed {MAX_COMMITS} times before this "
            f"{attempt.operation}; run it again when fewer write"
        )

    def load_to_commit(self, cached: State | None) -> State:
        """Return the state for a commit that follows at once; raises as `load` does.

        A load from a checkpoint that `commit` would make is made here, and nothing before it.
        """
        if cached is not None and self._is_cold_commit_due(cached):
            return self.load_cold(cached)
        return self.load(cached)

    def _is_cold_commit_due(self, state: State) -> bool:
        """Return whether a commit on top of a state has to load from a checkpoint first."""
        return self.is_cold_load_due(state) or state.own_commits >= MAX_UNLISTED_COMMITS

    def _is_one_above(self, version: int) -> bool:
        """Tell whether there is a commit above a number that is about to be put."""
        return self.read_alone(version + 1) is not None

    def _put(self, made: Commit) -> _Outcome:
        """Put a commit at its number until it is known who has it."""
        path, data = self.paths.commit(made.version), commits.encode(made)
        # What no reader would take, once it is there, ends the topic for everybody.
        commits.decode(data, self.paths.topic, made.version)
        may_have_landed = False
        for tries in range(MAX_PUTS):
            try:
                put = self.store.put_if_absent(path, data)
                # What exists may be one's own too: some clients send a request twice.
                may_have_landed = True
                if put is not Put.CREATED:
                    found = self.read_alone(made.version)
                    if found is None:
                        # Cleaned, or never there: below the boundary it was another's or mine.
                        if self.boundary() >= made.version:
                            return _Outcome.OVERTAKEN
                        self.wait(tries + 1)
                        continue
                    if found.write_id != made.write_id:
                        # Who is not told at once may have had the number before it was cleaned.
                        at_once = put is Put.EXISTS and tries == 0
                        return _Outcome.TAKEN if at_once else _Outcome.OVERTAKEN
                    if put is Put.UNKNOWN:
                        # There, but maybe not after a loss of power: that it exists, the store
                        # has to say itself.
                        self.wait(tries + 1)
                        continue
                # A number at or below the boundary was another's before it was free.
                return _Outcome.OVERTAKEN if self.boundary() >= made.version else _Outcome.LANDED
            except UnsupportedFormatError:
                # What was put can be read: this is another's, of a newer klog or of none.
                raise
            except (KlogError, OSError) as exc:
                if may_have_landed:
                    raise self._unknown(made, str(exc)) from exc
                raise
        raise self._unknown(made, f"it was asked {MAX_PUTS} times")

    def _reload(self, state: State, attempt: Attempt, outcome: _Outcome) -> State:
        """Load what others committed; where mine may be among it, not to know that is an error."""
        try:
            return self.load_to_commit(state)
        except (KlogError, OSError) as exc:
            if outcome is _Outcome.TAKEN:
                raise
            raise CommitStateUnknownError(
                f"{self.paths.directory}: cannot tell whether {attempt.operation} "
                f"{attempt.write_id} landed: {exc}. Look for it with `klog history` before it is "
                "tried again; delete nothing"
            ) from exc

    def _unknown(self, made: Commit, why: str) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"{self.paths.commit(made.version)}: the store did not say whether this "
            f"{made.operation} (write id {made.write_id}) landed: {why}. Look for it with `klog "
            "history` before it is tried again; delete nothing"
        )


def with_sidecar(made: Commit) -> tuple[Commit, tuple[SidecarName, bytes] | None]:
    """Give a commit with its size, and its sidecar if it is too large to be without."""
    data = commits.encode(made)
    if len(data) <= sidecar.MOST_JSON_BYTES:
        return replace(made, size_bytes=len(data)), None
    name, beside = sidecar.encode(made)
    return replace(made, sidecar=name, size_bytes=len(beside)), (name, beside)
