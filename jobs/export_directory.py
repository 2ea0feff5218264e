"""The directory that an export goes to: a broker's log directory, or what will be one.

The rule: what a broker would mount appears whole. A partition is written under the name of one that
is about to be deleted, which a broker that meets it deletes, and whose bytes and names are synced
before it gets its own; by then the checkpoints beside it say its log start. While an export runs it
holds the directory's `.lock`, as a broker does.

An export that is killed leaves directories that the next one of the same partitions knows for its
own: by their name, and those that have their final name already by `klog-export.unfinished`. It has
a checkpoint's form, and says how many bytes the logs of a partition had. If that is not what is
there, or it has another topic's id, a broker has been there since, and it is not touched. An export
is done when that file no longer speaks of its partitions: one rename, or removal, for all of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from klog.connector.log.beside import max_bytes_of
from klog.connector.log.partition import TopicPartition
from klog.connector.log.paths import KLOG
from klog.connector.store.local import (
    LocalStore,
    in_words,
    make_directories,
    open_regular,
    sync_directory,
)
from klog.connector.store.schemes import check_path, scheme_of
from klog.errors import CorruptRecordError, InvalidFileError, KlogError, OptionError
from klog.logformat.checkpoint import decode_offset_checkpoint, encode_offset_checkpoint
from klog.logformat.handover import Piece
from klog.logformat.metadata import read_topic_id
from klog.logformat.names import deleted_directory

CLEANED = "cleaner-offset-checkpoint"
UNFINISHED = "klog-export.unfinished"
LOG_START, RECOVERY_POINT, HIGH_WATERMARK = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What the checkpoints say of a partition; no `log_start` where its first segment says it.

    `size_bytes` is that of its logs.
    """

    log_start: int | None
    log_end: int
    size_bytes: int


class ExportDirectory:
    """One directory, by a local path."""

    def __init__(self, path: Path) -> None:
        """Take the path; nothing is looked at yet."""
        self.path = path

    def check(self, partitions: Mapping[TopicPartition, str]) -> None:
        """Raise `OptionError` where partitions, with their topics' ids, cannot go; name them.

        Raises `CorruptFileError` for a checkpoint that could not be added to.
        """
        if (self.path / KLOG).exists():
            raise OptionError(
                f"{self.path} is a klog root, and no broker starts there; give another directory"
            )
        if self.path.exists() and not self.path.is_dir():
            raise OptionError(f"{self.path} is a file; give a directory")
        for file in (LOG_START, RECOVERY_POINT, HIGH_WATERMARK):
            self._checkpoint(file)
        unfinished = self._checkpoint(UNFINISHED)
        taken = [
            str(name)
            for name, topic_id in partitions.items()
            if (self.path / str(name)).exists()
            and not self._is_left(name, topic_id, unfinished.get((name.topic, name.partition)))
        ]
        if taken:
            more = f" and {len(taken) - 5} more" if len(taken) > 5 else ""
            raise OptionError(
                f"{self.path} has {', '.join(taken[:5])}{more} already, and nothing there is "
                "overwritten; take these directories away, or export to another directory"
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the directory and hold its lock. Raises `KlogError` where a broker has it."""
        with in_words(str(self.path), "written"):
            if not self.path.is_dir():
                make_directories(str(self.path))
            lock = open_regular(str(self.path / ".lock"), os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                raise KlogError(
                    f"{self.path}: a broker runs on it, or another export; stop the broker first"
                ) from exc
            yield
        finally:
            os.close(lock)

    def stage(self, name: TopicPartition, pieces: Iterable[Piece]) -> int:
        """Write and sync a partition that no broker would mount yet; gives the bytes of its logs.

        What an earlier export left of it is removed first.
        """
        staged = self._staged(name)
        with in_words(str(self.path / str(name)), "written"):
            if (self.path / str(name)).exists():  # `check` found it to be unfinished.
                shutil.rmtree(staged, ignore_errors=True)
                (self.path / str(name)).rename(staged)
            if staged.exists():
                with _locked(staged):
                    shutil.rmtree(staged)
            staged.mkdir()
        with _locked(staged):
            size_bytes = _write(staged, pieces)
            with in_words(str(staged), "written"):
                sync_directory(str(staged))
        return size_bytes

    def publish(self, staged: Mapping[TopicPartition, Checkpointed]) -> None:
        """Give staged partitions their names, once the checkpoints speak of them."""
        starts = {name: one.log_start for name, one in staged.items() if one.log_start is not None}
        ends = {name: one.log_end for name, one in staged.items()}
        sizes = {name: one.size_bytes for name, one in staged.items()}
        for file, offsets in (
            (LOG_START, starts),
            (RECOVERY_POINT, ends),
            (HIGH_WATERMARK, ends),
            (UNFINISHED, sizes),
        ):
            self._put_checkpoint(file, staged, offsets)
        if (self.path / CLEANED).exists():
            # What an earlier partition of the name was cleaned up to says nothing of this one.
            self._put_checkpoint(CLEANED, staged, {})
        with in_words(str(self.path), "written"):
            for name in staged:
                self._staged(name).rename(self.path / str(name))
            sync_directory(str(self.path))
        self._put_checkpoint(UNFINISHED, staged, {})

    def discard(self, names: Iterable[TopicPartition]) -> None:
        """Remove what was staged and is not to be published; what cannot be stays."""
        for name in names:
            shutil.rmtree(self._staged(name), ignore_errors=True)

    def _is_left(self, name: TopicPartition, topic_id: str, size_bytes: int | None) -> bool:
        """Tell whether a partition that is there is what a killed export left, unchanged."""
        directory = self.path / str(name)
        try:
            said = read_topic_id(_read(directory / "partition.metadata"))
            found_bytes = sum(log.stat().st_size for log in directory.glob("*.log"))
        except (FileNotFoundError, NotADirectoryError, InvalidFileError):
            return False
        return said == topic_id and found_bytes == size_bytes

    def _staged(self, name: TopicPartition) -> Path:
        unique = hashlib.blake2b(f"klog export-log {name}".encode(), digest_size=16).hexdigest()
        return self.path / deleted_directory(name.topic, name.partition, unique)

    def _put_checkpoint(
        self,
        file: str,
        changed: Iterable[TopicPartition],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Say offsets of the changed partitions, and keep what is said of others."""
        said = self._checkpoint(file)
        for name in changed:
            said.pop((name.topic, name.partition), None)
        said |= {(name.topic, name.partition): offset for name, offset in offsets.items()}
        path = self.path / file
        with in_words(str(path), "written"):
            if file == UNFINISHED and not said:
                path.unlink(missing_ok=True)
            else:
                temporary = path.with_name(f"{file}.tmp")
                temporary.unlink(missing_ok=True)
                _write(self.path, [Piece(temporary.name, encode_offset_checkpoint(said))])
                temporary.replace(path)
            sync_directory(str(self.path))

    def _checkpoint(self, file: str) -> dict[tuple[str, int], int]:
        path = self.path / file
        try:
            return decode_offset_checkpoint(_read(path))
        except FileNotFoundError:
            return {}
        except CorruptRecordError as exc:
            raise exc.in_file(str(path), file) from exc


def export_directory(given: str) -> ExportDirectory:
    """Give the directory of a local path. Raises `OptionError` for what is none."""
    scheme = scheme_of(given)
    check_path(given)
    path = given.removeprefix("file:") if scheme == "file" else given
    if scheme not in ("", "file") or not path:
        raise OptionError(
            f"an export goes to a directory on this machine, not to {given!r}: a broker reads no "
            "other. Export to a local path, and copy it to where the broker is"
        )
    return ExportDirectory(Path("/" + path.lstrip("/") if scheme else path).absolute())


def _read(path: Path) -> bytes:
    """Read a broker's file whole."""
    return LocalStore().read(str(path), max_bytes_of(path.name))


@contextmanager
def _locked(staged: Path) -> Iterator[None]:
    """Hold a partition that is being written: a task may outlive the export that it is of."""
    directory = os.open(staged, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise KlogError(
                f"{staged}: a task of an export that was killed still writes there; run it again "
                "when that has ended"
            ) from exc
        yield
    finally:
        os.close(directory)


def _write(directory: Path, pieces: Iterable[Piece]) -> int:
    """Write the pieces to their files and sync each; gives the bytes of logs."""
    size_bytes = 0
    for name, own in groupby(pieces, lambda piece: piece.name):
        path = directory / name
        with in_words(str(path), "written"), path.open("xb") as file:
            for piece in own:
                file.write(piece.data)
            file.flush()
            os.fsync(file.fileno())
            size_bytes += file.tell() if name.endswith(".log") else 0
    return size_bytes
