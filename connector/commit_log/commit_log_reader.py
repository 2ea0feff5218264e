"""Reading a topic's commit log: its files, and the state that they lead to.

The rule (docs/commit-protocol.md, Load): a load begins with a state or the newest checkpoint that
is whole, and reads commits by number. Commits at or below a boundary may be gone, so a number that
is free there proves nothing: the boundary is read after the tail, and what it overtakes is loaded
again from a checkpoint. A load that begins with no state lists the commits, and so does one whose
last listing is a minute old: a commit that was lost at rest is an error, never the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from klog.connector.commit_log import commit_json, commit_sidecar, state_checkpoint
from klog.connector.commit_log.cached_state import check_not_replaced, is_of_another_log
from klog.connector.commit_log.commit import REPAIR, Commit
from klog.connector.commit_log.commit_log_paths import (
    CheckpointName,
    SidecarName,
    TopicPaths,
    parse_checkpoint_name,
    parse_expiration_version,
)
from klog.connector.commit_log.commit_tail import Tail, read_by_number, read_listed
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES, read_named
from klog.connector.commit_log.lost_commit_errors import (
    THIS_PROCESS,
    Evidence,
    ForkedCommit,
    forked_commit_error,
    lost_commit_error,
)
from klog.connector.commit_log.state_checkpoint import IncompleteCheckpointError
from klog.connector.commit_log.state_replay import compacted, replay
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import DirectoryEntry, small_file_exists
from klog.connector.store.writable_store import WritableStore
from klog.errors import InvalidFileError, KlogError, UnsupportedFormatError

MAX_LOADS = 8
"""A load is begun again when cleaning overtakes it; so often in a row means something is wrong."""
LISTING_INTERVAL_MS = 60_000
"""A state that goes on by number for longer lists the commits: one of them may be lost."""


@dataclass(frozen=True, slots=True)
class CommitLogReader:
    """The commit log of one topic, as it is read.

    `clock` gives milliseconds since the epoch. `is_described` says that `topic.json` is there: it
    was just looked for or made. If not, each load that begins without a state looks for it.
    """

    store: WritableStore
    paths: TopicPaths
    clock: Callable[[], int]
    has_description: bool = field(default=True, kw_only=True)

    def load(self, cached: TopicState | None = None) -> TopicState:
        """Give the topic's state as of its last commit, from one of an earlier load or from none.

        A state of version -1 means that there is no such topic. Raises `LostCommitError` for a
        commit that is not there though a later one was made, and `KlogError` that names the file
        for a commit or a checkpoint that is not what it should be.
        """
        if cached is None:
            return self.load_cold(None)
        if self.is_listing_due(cached):
            return self._list_again(cached)
        tail = read_by_number(self.read, cached.version + 1)
        # After the tail: a number that was read, or found free, may be a cleaned one.
        if self.last_expired_version() > cached.version:
            return self.load_cold(cached)
        if not tail:
            return cached
        if not tail[0].is_on_top_of(cached.last_write_id):
            return self.load_cold(cached)  # Of another log, or its commit was lost and replaced.
        return self._folded(cached, tail) if not _is_repaired(tail) else self.load_cold(cached)

    def is_listing_due(self, state: TopicState) -> bool:
        """Tell whether commits may have been lost unseen for too long; a clock may go back."""
        return self._is_old(state.listed_ms)

    def is_cold_load_due(self, state: TopicState) -> bool:
        """Tell whether commits below a state may have been lost unseen for too long.

        A listing from a state on shows nothing of them, so it does not count.
        """
        return self._is_old(state.loaded_ms)

    def _is_old(self, time_ms: int) -> bool:
        return time_ms < 0 or not 0 <= self.clock() - time_ms < LISTING_INTERVAL_MS

    def _list_again(self, cached: TopicState) -> TopicState:
        """Load from a state, and list the commits from its own on."""
        now_ms, known = self.clock(), _known(cached)
        start = max(cached.version, 0)
        tail = read_listed(self.store, self.paths, self.read, start, known)
        if tail.lost_version is not None or self.last_expired_version() > cached.version:
            return self.load_cold(cached)
        commits = tail.commits
        if cached.version >= 0:
            if cached.writes.get(commits[0].write_id) != cached.version:
                return self.load_cold(cached)  # Of another log, or it was lost and replaced.
            commits = commits[1:]
        if _is_repaired(commits):
            return self.load_cold(cached)
        state = self._folded(cached, commits) if commits else cached
        if any(name.version > state.version for name in self._checkpoint_names()):
            return self.load_cold(cached)  # The last commits may be lost, and this be what is left.
        return replace(state, listed_ms=now_ms)

    def load_cold(self, known: TopicState | None) -> TopicState:
        """Load from the newest checkpoint, or from nothing; `known` is what a process has seen.

        Raises `LostCommitError` where the log does not have the last commit of `known`, and
        loads a log that was made again by hand as what it is.
        """
        for _ in range(MAX_LOADS):
            now_ms = self.clock()
            state = self.newest_checkpoint()
            evidence = None if known is None else _known(known)
            tail = read_listed(self.store, self.paths, self.read, state.version + 1, evidence)
            own = None if tail.commits else self._own_commit(state)
            # After the tail: a number that was read, or found free, may be a cleaned one.
            boundary = self.last_expired_version()
            if boundary > state.version:
                continue
            if (
                known is not None
                and tail.lost_version is not None
                and self._is_another(known, state, tail)
            ):
                return self.load_cold(None)
            self._refuse_lost(tail)
            if not tail.commits and boundary < state.version:
                self._refuse_alone(state, own)
            state = self._folded(state, tail.commits) if tail.commits else state
            self._refuse_lost_description(state)
            if known is not None:
                check_not_replaced(self.paths, known, state)
            return replace(state, listed_ms=now_ms, loaded_ms=now_ms, own_commits=0)
        raise KlogError(
            f"{self.paths.directory}: no checkpoint at or above version "
            f"{self.last_expired_version()} can be read, and the commits up to it have expired. "
            f"Restore the newest file of {self.paths.checkpoints}, or those of {self.paths.parts} "
            "that it names"
        )

    def _is_another(self, known: TopicState, state: TopicState, tail: Tail) -> bool:
        """Return whether a log in which a known version is absent is not the known one."""
        return is_of_another_log(known, self._folded(state, tail.commits))

    def _refuse_lost(self, tail: Tail) -> None:
        """Raise `LostCommitError` where the boundary, listed after the reads, is below the loss."""
        if tail.lost_version is None or tail.evidence is None:
            return
        raise lost_commit_error(self.paths, tail.lost_version, tail.evidence)

    def _refuse_lost_description(self, state: TopicState) -> None:
        """Raise `KlogError` where a topic has commits and no `topic.json`, which comes first."""
        if self.has_description or state.version < 0:
            return
        path = self.paths.description
        if not small_file_exists(self.store, path):
            raise KlogError(
                f"{path}: this file is lost: the topic has commits up to version {state.version}. "
                "Restore it from a copy, or run `klog repair`"
            )

    def _own_commit(self, state: TopicState) -> Commit | None:
        """Read the last commit of a state, twice where it is absent."""
        if state.version < 0:
            return None
        return self.read_without_sidecar(state.version) or self.read_without_sidecar(state.version)

    def _refuse_alone(self, state: TopicState, own: Commit | None) -> None:
        """Raise where a checkpoint has no commits behind it, and its own is not there either.

        Others may have been lost with it, of which nothing else is left.
        """
        assert state.checkpoint is not None  # Nothing else gives a state without a commit.
        path = self.paths.checkpoint(state.checkpoint)
        if own is None:
            self._refuse_lost(Tail([], state.version, Evidence(state.version, path)))
        elif state.writes.get(own.write_id) != state.version:
            raise KlogError(
                f"{path}: this checkpoint does not stand for these commits: one of them was lost "
                "and another was put in its place, or they came from another topic. Restore "
                f"{self.paths.commits} from a copy; `klog verify` names such commits"
            )

    def has_last_commit_of(self, state: TopicState) -> bool:
        """Tell whether the last commit of a state is that of this log: one read."""
        if state.version < 0:
            return True
        found = self.read_without_sidecar(state.version)
        return found is not None and state.writes.get(found.write_id) == state.version

    def follow(self, state: TopicState) -> TopicState | None:
        """Give the state that the commits behind one lead to; None if the log does not hold it.

        For those who plan: the boundary is not looked at, so it may be an old state of this log,
        on which a commit would lose its number or be built anew.
        """
        if not self.has_last_commit_of(state):
            return None
        tail = read_by_number(self.read, state.version + 1)
        if _is_repaired(tail):
            return None
        return self._folded(state, tail) if tail else state

    def _folded(self, state: TopicState, tail: list[Commit]) -> TopicState:
        try:
            return compacted(replay(state, tail))
        except KlogError as exc:
            self._refuse_forked(state, tail)
            raise KlogError(
                f"{self.paths.commits}: {exc}. Something else than klog changed this log: restore "
                "it from a copy"
            ) from exc

    def _refuse_forked(self, state: TopicState, tail: list[Commit]) -> None:
        """Raise `LostCommitError` for the commit below one that was put on top of another write.

        That write is the lost one, unless the file below is not the state's: then the state's is.
        """
        below, write_id = None, state.last_write_id
        for commit in tail:
            if commit.is_on_top_of(write_id):
                below, write_id = commit, commit.write_id
                continue
            if commit.version == 0 or not commit.previous_write_id:
                return  # No klog puts such a commit.
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

    def last_expired_version(self) -> int:
        """Give the highest version at or below which commits may be gone; -1 if there is none."""
        found = (parse_expiration_version(name) for name in self.names(self.paths.expirations))
        return max((version for version in found if version is not None), default=-1)

    def read(self, version: int) -> Commit | None:
        """Read one commit, with its sidecar; None if it is not there."""
        found = self.read_without_sidecar(version)
        if found is None or found.sidecar is None:
            return found
        return self._with_sidecar(found, found.sidecar)

    def read_without_sidecar(self, version: int) -> Commit | None:
        """Read one commit's own file, without its sidecar; None if it is not there."""
        path = self.paths.commit(version)
        try:
            data = self.store.read(path, MAX_COMMIT_BYTES)
        except FileNotFoundError:
            return None
        try:
            return commit_json.decode_commit(data, self.paths.topic, version)
        except UnsupportedFormatError as exc:
            raise UnsupportedFormatError(f"commit {path}: {exc.reason}") from exc

    def _with_sidecar(self, found: Commit, name: SidecarName) -> Commit | None:
        """Read what a commit's sidecar says; None if both were cleaned meanwhile."""
        path = self.paths.sidecar(name)
        try:
            data = read_named(self.store, path, name)
            return commit_sidecar.decode_sidecar(found, name, data, self.paths.topic)
        except FileNotFoundError as exc:
            if self.last_expired_version() >= found.version:
                return None
            raise KlogError(
                f"{path}: it is not there, and commit {found.version} needs it. Restore it from a "
                "copy"
            ) from exc
        except UnsupportedFormatError as exc:
            raise UnsupportedFormatError(f"sidecar {path}: {exc.reason}") from exc

    def newest_checkpoint(self) -> TopicState:
        """Read the newest checkpoint that is whole; none is the state before the first commit.

        They are found by listing: a hint may be older than the boundary.
        """
        for name in sorted(self._checkpoint_names(), reverse=True):
            path = self.paths.checkpoint(name)
            try:
                data = read_named(self.store, path, name)
            except (FileNotFoundError, InvalidFileError):
                continue
            if not state_checkpoint.is_intact(name, data):
                continue
            try:
                found = state_checkpoint.decode_checkpoint(data, self.read_part, self.paths.topic)
            except IncompleteCheckpointError:
                continue
            except UnsupportedFormatError as exc:
                raise UnsupportedFormatError(f"checkpoint {path}: {exc.reason}") from exc
            if found.version != name.version:
                raise UnsupportedFormatError(
                    f"checkpoint {path}: it is of version {found.version}. Take it away"
                )
            return replace(found, checkpoint=name)
        return TopicState()

    def _checkpoint_names(self) -> list[CheckpointName]:
        found = map(parse_checkpoint_name, self.names(self.paths.checkpoints))
        return [name for name in found if name is not None]

    def read_part(self, name: CheckpointName) -> bytes:
        """Read a part of a checkpoint."""
        try:
            return read_named(self.store, self.paths.part(name), name)
        except InvalidFileError:
            return b""  # As torn as a longer one, for all who check it.

    def names(self, directory: str) -> list[str]:
        """List the names in a folder; one that is not there has none."""
        return [entry.name for entry in self.entries(directory)]

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """List a folder; one that is not there has nothing."""
        try:
            return self.store.entries(directory)
        except FileNotFoundError:
            return []


def _known(state: TopicState) -> Evidence:
    return Evidence(state.version, THIS_PROCESS)


def _is_repaired(commits: Iterable[Commit]) -> bool:
    """Return whether the log below these commits is not the one that a process has loaded."""
    return any(commit.operation == REPAIR for commit in commits)
