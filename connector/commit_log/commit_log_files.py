"""The files of a topic's commit log, read one by one.

The rule: what is read is checked against its name: a commit has the version of its name, a sidecar
and a checkpoint the length and the CRC-32C. A damaged commit or sidecar is an error that names the
file. A damaged checkpoint is skipped, as an older one or the commits replace it. Which files lead
to a state is the rule of `commit_log_reader.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from klog.connector.commit_log import (
    commit_json,
    commit_log_paths,
    commit_sidecar,
    state_checkpoint,
)
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_log_paths import (
    MAX_VERSION,
    CheckpointName,
    SidecarName,
    TopicPaths,
    parse_checkpoint_name,
    parse_expiration_version,
)
from klog.connector.commit_log.file_size_limits import MAX_COMMIT_BYTES, read_named
from klog.connector.commit_log.format_versions import unreadable_file_error
from klog.connector.commit_log.state_checkpoint import IncompleteCheckpointError
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.store.readable_store import DirectoryEntry
from klog.connector.store.writable_store import WritableStore
from klog.errors import InvalidFileError, KlogError, UnsupportedFormatError


@dataclass(frozen=True, slots=True)
class CommitLogFiles:
    """The files of one topic's commit log on a store."""

    store: WritableStore
    paths: TopicPaths

    def last_expired_version(self) -> int:
        """Return the highest version at or below which commits may be gone; -1 if there is none."""
        versions = (parse_expiration_version(name) for name in self.names(self.paths.expirations))
        return max((version for version in versions if version is not None), default=-1)

    def read(self, version: int) -> Commit | None:
        """Read one commit, with its sidecar; None if it is missing.

        Args:
            version: The version of the commit.

        Raises:
            UnsupportedFormatError: The commit or its sidecar is damaged, or needs a newer klog.
            KlogError: The sidecar is missing.
        """
        commit = self.read_without_sidecar(version)
        if commit is None or commit.sidecar is None:
            return commit
        return self._with_sidecar(commit, commit.sidecar)

    def read_without_sidecar(self, version: int) -> Commit | None:
        """Read one commit's own file, without its sidecar; None if it is missing.

        Args:
            version: The version of the commit.

        Raises:
            UnsupportedFormatError: The commit is damaged, or needs a newer klog.
        """
        path = self.paths.commit(version)
        try:
            data = self.store.read(path, MAX_COMMIT_BYTES)
        except FileNotFoundError:
            return None
        try:
            return commit_json.decode_commit(data, self.paths.topic, version)
        except UnsupportedFormatError as exc:
            raise unreadable_file_error(f"commit {path}", exc) from exc

    def _with_sidecar(self, commit: Commit, name: SidecarName) -> Commit | None:
        """Return the commit with the actions of its sidecar; None if both have expired."""
        path = self.paths.sidecar(name)
        try:
            data = read_named(self.store, path, name)
            return commit_sidecar.decode_sidecar(commit, name, data, self.paths.topic)
        except FileNotFoundError as exc:
            if self.last_expired_version() >= commit.version:
                return None
            raise KlogError(
                f"{path}: this sidecar is missing, and commit {commit.version} needs it. Restore "
                "it from a copy"
            ) from exc
        except UnsupportedFormatError as exc:
            raise unreadable_file_error(f"sidecar {path}", exc) from exc

    def newest_checkpoint(self, max_version: int = MAX_VERSION) -> TopicState:
        """Read the newest complete checkpoint; without one, return a state without commits.

        Checkpoints are listed: a hint may be older than the last expired version.

        Args:
            max_version: The highest version that the checkpoint may have.

        Raises:
            UnsupportedFormatError: A checkpoint needs a newer klog, or is not one of its version.
        """
        names = [name for name in self.checkpoint_names() if name.version <= max_version]
        for name in sorted(names, reverse=True):
            path = self.paths.checkpoint(name)
            try:
                data = read_named(self.store, path, name)
            except (FileNotFoundError, InvalidFileError):
                continue
            if not commit_log_paths.is_intact(name, data):
                continue
            try:
                state = state_checkpoint.decode_checkpoint(data, self.read_part, self.paths.topic)
            except IncompleteCheckpointError:
                continue
            except UnsupportedFormatError as exc:
                raise unreadable_file_error(f"checkpoint {path}", exc, "Move it away") from exc
            if state.version != name.version:
                raise UnsupportedFormatError(
                    f"checkpoint {path}: it is of version {state.version}. Move it away"
                )
            return replace(state, checkpoint=name)
        return TopicState()

    def checkpoint_names(self) -> list[CheckpointName]:
        """List the checkpoints; some may be damaged."""
        names = map(parse_checkpoint_name, self.names(self.paths.checkpoints))
        return [name for name in names if name is not None]

    def read_part(self, name: CheckpointName) -> bytes:
        """Read a part of a checkpoint.

        Args:
            name: The name of the part.

        Returns:
            The bytes, which the caller checks; empty if the file is larger than its name says.
        """
        try:
            return read_named(self.store, self.paths.part(name), name)
        except InvalidFileError:
            return b""  # A caller refuses it as damaged.

    def names(self, directory: str) -> list[str]:
        """List the names in a folder; a missing folder has none.

        Args:
            directory: The path of the folder.
        """
        return [entry.name for entry in self.entries(directory)]

    def entries(self, directory: str) -> list[DirectoryEntry]:
        """List the entries of a folder; a missing folder has none.

        Args:
            directory: The path of the folder.
        """
        try:
            return self.store.entries(directory)
        except FileNotFoundError:
            return []
