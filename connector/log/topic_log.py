"""A topic's commit log on a store: load the state, and put one commit on top of it.

The rule (docs/commit-protocol.md): commits are create-only files without gaps in their numbers, and
the one that creates a number is the one that counts. Whoever does not know whether theirs did reads
the number back and looks for its write id. Commits at or below a boundary may be gone, so a number
that is free there proves nothing: the boundary is read after the tail and after each put, and what
it overtakes is loaded anew from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from klog.connector.log import checkpoint, sidecar
from klog.connector.log import commit as commits
from klog.connector.log.checkpoint import NotWholeError
from klog.connector.log.commit import Commit
from klog.connector.log.paths import (
    CheckpointName,
    SidecarName,
    TopicPaths,
    boundary_version,
    checkpoint_name,
)
from klog.connector.log.state import Build, State, fold, tidied
from klog.connector.store.contract import Put, WritableStore
from klog.connector.store.files import Entry
from klog.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FileTooLargeError,
    KlogError,
    UnsupportedFormatError,
)

MOST_COMMIT_BYTES = 64 << 20
"""What klog writes has 1 MiB at most and a sidecar beside it; others need not have one."""
MAX_LOADS = 8
"""A load is begun again when cleaning overtakes it; so often in a row means something is wrong."""
MAX_COMMITS = 200
"""Others may win the number so often before a commit gives up."""
MAX_PUTS = 10
"""So often the same bytes are put at the same number while the store does not answer."""


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
class TopicLog:
    """The commit log of one topic.

    `clock` gives milliseconds since the epoch. `wait` is called with the number of tries before
    each further one; it sleeps a while that grows and differs between writers.
    """

    store: WritableStore
    paths: TopicPaths
    clock: Callable[[], int]
    wait: Callable[[int], None]

    def load(self, cached: State | None = None) -> State:
        """Give the topic's state as of its last commit, from one of an earlier load or from none.

        A state of version -1 means that there is no such topic. Raises `KlogError` that names the
        file for a commit or a checkpoint that is not what it should be.
        """
        begin = cached
        for _ in range(MAX_LOADS):
            state = begin if begin is not None else self._newest_checkpoint()
            tail = list(self._commits_from(state.version + 1))
            is_tip = bool(tail) or begin is not None or self.holds(state)
            # After the tail: a number that was read, or found free, may be a cleaned one.
            boundary = self.boundary()
            if boundary > state.version:
                begin = None
                continue
            if not is_tip and boundary < state.version:
                raise KlogError(
                    f"{self.paths.checkpoints}/{state.version:020d}-*: this checkpoint does not "
                    "stand for these commits: some were lost, or it came from another topic. "
                    f"Restore {self.paths.commits}, or take the checkpoint away"
                )
            return self._folded(state, tail) if tail else state
        raise KlogError(
            f"{self.paths.directory}: no checkpoint at or above boundary {self.boundary()} can be "
            f"read, and the commits before it are gone. Restore a file of {self.paths.checkpoints}"
        )

    def holds(self, state: State) -> bool:
        """Tell whether the last commit of a state is that of this log: one read."""
        if state.version < 0:
            return True
        found = self.read_alone(state.version)
        return found is not None and state.writes.get(found.write_id) == state.version

    def follow(self, state: State) -> State | None:
        """Give the state that the commits behind one lead to; None if the log does not hold it.

        For those who plan: the boundary is not looked at, so it may be an old state of this log,
        on which a commit would lose its number or be built anew.
        """
        if not self.holds(state):
            return None
        tail = list(self._commits_from(state.version + 1))
        return self._folded(state, tail) if tail else state

    def _folded(self, state: State, tail: list[Commit]) -> State:
        try:
            return tidied(fold(state, tail))
        except KlogError as exc:
            raise KlogError(
                f"{self.paths.commits}: {exc}. Something else than klog changed this log: restore "
                "it from a copy"
            ) from exc

    def commit(self, state: State, build: Build, attempt: Attempt) -> State:
        """Put a commit on top of the log, anew on top of what others commit meanwhile.

        Gives the state that has it, or the one in which `build` finds it done. Raises what `build`
        raises, `CommitConflictError` when others won every number, and `CommitStateUnknownError`
        when the store does not say whether the commit landed.
        """
        for tries in range(MAX_COMMITS):
            actions = build(state)
            if actions is None:
                return state
            made = Commit(
                version=state.version + 1,
                write_id=attempt.write_id,
                timestamp_ms=max(self.clock(), state.timestamp_ms + 1),
                operation=attempt.operation,
                engine=attempt.engine,
                actions=actions,
            )
            made, beside = _parted(made)
            after = fold(state, [made])  # Before it is written: what it says has to follow.
            if beside is not None:
                sidecar.decode(made, *beside, self.paths.topic)  # As `_put` does.
                self.store.put(self.paths.sidecar(beside[0]), [beside[1]])
            outcome = self._put(made)
            if outcome is _Outcome.LANDED:
                return after
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

    def boundary(self) -> int:
        """Give the highest version at or below which commits may be gone; -1 if there is none."""
        found = (boundary_version(name) for name in self.names(self.paths.boundaries))
        return max((version for version in found if version is not None), default=-1)

    def read(self, version: int) -> Commit | None:
        """Read one commit, with its sidecar; None if it is not there."""
        found = self.read_alone(version)
        if found is None or found.sidecar is None:
            return found
        return self._with_sidecar(found, found.sidecar)

    def read_alone(self, version: int) -> Commit | None:
        """Read one commit's own file, without its sidecar; None if it is not there."""
        path = self.paths.commit(version)
        try:
            data = self.store.read(path, MOST_COMMIT_BYTES)
        except FileNotFoundError:
            return None
        try:
            return commits.decode(data, self.paths.topic, version)
        except UnsupportedFormatError as exc:
            raise UnsupportedFormatError(f"commit {path}: {exc.reason}") from exc

    def _with_sidecar(self, found: Commit, name: SidecarName) -> Commit | None:
        """Read what a commit's sidecar says; None if both were cleaned meanwhile."""
        path = self.paths.sidecar(name)
        try:
            data = self.store.read(path, name.size_bytes)
            return sidecar.decode(found, name, data, self.paths.topic)
        except FileNotFoundError as exc:
            if self.boundary() >= found.version:
                return None
            raise KlogError(
                f"{path}: it is not there, and commit {found.version} needs it. Restore it from a "
                "copy"
            ) from exc
        except UnsupportedFormatError as exc:
            raise UnsupportedFormatError(f"sidecar {path}: {exc.reason}") from exc

    def _commits_from(self, version: int) -> Iterator[Commit]:
        while (found := self.read(version)) is not None:
            yield found
            version += 1

    def _newest_checkpoint(self) -> State:
        """Read the newest checkpoint that is whole; none is the state before the first commit.

        They are found by listing: a hint may be older than the boundary.
        """
        names = map(checkpoint_name, self.names(self.paths.checkpoints))
        for name in sorted((one for one in names if one is not None), reverse=True):
            path = self.paths.checkpoint(name)
            try:
                data = self.store.read(path, name.size_bytes)
            except (FileNotFoundError, FileTooLargeError):
                continue
            if not checkpoint.is_whole(name, data):
                continue
            try:
                found = checkpoint.decode(data, self.read_part, self.paths.topic)
            except NotWholeError:
                continue
            except UnsupportedFormatError as exc:
                raise UnsupportedFormatError(f"checkpoint {path}: {exc.reason}") from exc
            if found.version != name.version:
                raise UnsupportedFormatError(
                    f"checkpoint {path}: it is of version {found.version}. Take it away"
                )
            return replace(found, checkpoint=name)
        return State()

    def read_part(self, name: CheckpointName) -> bytes:
        """Read a part of a checkpoint."""
        try:
            return self.store.read(self.paths.part(name), name.size_bytes)
        except FileTooLargeError:
            return b""  # As torn as a longer one, for all who check it.

    def names(self, directory: str) -> list[str]:
        """List the names in a folder; one that is not there has none."""
        return [entry.name for entry in self.entries(directory)]

    def entries(self, directory: str) -> list[Entry]:
        """List a folder; one that is not there has nothing."""
        try:
            return self.store.entries(directory)
        except FileNotFoundError:
            return []

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
            return self.load(state)
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


def _parted(made: Commit) -> tuple[Commit, tuple[SidecarName, bytes] | None]:
    """Give a commit with its size, and its sidecar if it is too large to be without."""
    data = commits.encode(made)
    if len(data) <= sidecar.MOST_JSON_BYTES:
        return replace(made, size_bytes=len(data)), None
    name, beside = sidecar.encode(made)
    return replace(made, sidecar=name, size_bytes=len(beside)), (name, beside)
