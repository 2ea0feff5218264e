"""The directory of an export: a broker's log directory, or one that becomes it.

The rule: a broker sees a complete partition or none. A partition is written to a directory that is
named as one that waits for deletion, which a broker deletes when it finds it. Its files and names
are synced and the checkpoints have its log start before it gets its own name. A running export has
the directory's `.lock`, as a broker does.

The next export of the same partitions recognizes what a killed one left: staged directories by
their name, published ones by `klog-export.unfinished`. That file has the form of a checkpoint, with
the bytes of each partition's logs. If a partition has other bytes or another topic id, a broker has
used it since, and klog does not touch it. An export is done when the file no longer has its
partitions: one rename, or one deletion, for all of them.
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

from klog.connector.kafka_dir.companion_files import max_companion_bytes
from klog.connector.root_files import KLOG
from klog.connector.root_urls import expand_home, is_on_local_disk, url_scheme
from klog.connector.store.durable_directories import make_directories, sync_directory
from klog.connector.store.local_errors import translate_errors
from klog.connector.store.local_store import LocalStore
from klog.connector.store.regular_files import open_regular
from klog.connector.store.store_for_url import check_path
from klog.errors import CorruptRecordError, InvalidFileError, KlogError, OptionError
from klog.logformat.broker_files.checkpoint_files import (
    decode_offset_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.broker_files.file_names import deleted_directory_name
from klog.logformat.broker_files.metadata_files import parse_topic_id
from klog.logformat.segments.partition_exporter import FileChunk
from klog.logformat.topic_partition import TopicPartition

CLEANER = "cleaner-offset-checkpoint"
UNFINISHED = "klog-export.unfinished"
LOG_START, RECOVERY_POINT, HIGH_WATERMARK = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A partition's values in the checkpoints.

    `log_start` is None if the partition's first segment begins there. `size_bytes` are the bytes of
    its logs.
    """

    log_start: int | None
    log_end: int
    size_bytes: int


class ExportDirectory:
    """One local directory."""

    def __init__(self, path: Path) -> None:
        """Take the path; nothing is read yet."""
        self.path = path

    def check(self, topic_ids: Mapping[TopicPartition, str]) -> None:
        """Check that partitions can be exported to this directory.

        Args:
            topic_ids: The topic id of each partition.

        Raises:
            OptionError: The directory is a klog root or has one of the partitions, it is a file, or
                one of its checkpoints is malformed, so that nothing can be added to it.
        """
        if (self.path / KLOG).exists():
            raise OptionError(
                f"{self.path} is a klog root, and a broker does not start there; give another "
                "directory"
            )
        if self.path.exists() and not self.path.is_dir():
            raise OptionError(f"{self.path} is a file; give a directory")
        for file in (LOG_START, RECOVERY_POINT, HIGH_WATERMARK):
            self._checkpoint(file)
        unfinished = self._checkpoint(UNFINISHED)
        taken = [
            str(name)
            for name, topic_id in topic_ids.items()
            if (self.path / str(name)).exists()
            and not self._is_unfinished(name, topic_id, unfinished)
        ]
        if taken:
            more = f" and {len(taken) - 5} more" if len(taken) > 5 else ""
            raise OptionError(
                f"{self.path} has {', '.join(taken[:5])}{more} already, and an export overwrites "
                "nothing; move these directories away, or export to another directory"
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the directory and hold its lock during the block.

        Raises:
            KlogError: A broker or another export has the lock.
        """
        with translate_errors(str(self.path), "written"):
            if not self.path.is_dir():
                make_directories(str(self.path))
            lock_file = open_regular(str(self.path / ".lock"), os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.lockf(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                raise KlogError(
                    f"{self.path}: a broker runs on it, or another export; stop the broker first"
                ) from exc
            yield
        finally:
            os.close(lock_file)

    def stage(self, name: TopicPartition, chunks: Iterable[FileChunk]) -> int:
        """Write and sync a partition under a name that no broker mounts.

        What a killed export left of it is removed first.

        Args:
            name: The partition.
            chunks: The chunks of its files, those of one file in a row.

        Returns:
            The bytes of its logs.
        """
        directory = self._staged(name)
        with translate_errors(str(self.path / str(name)), "written"):
            if (self.path / str(name)).exists():  # Unfinished: see `check`.
                shutil.rmtree(directory, ignore_errors=True)
                (self.path / str(name)).rename(directory)
            if directory.exists():
                with _locked(directory):
                    shutil.rmtree(directory)
            directory.mkdir()
        with _locked(directory):
            size_bytes = _write_files(directory, chunks)
            with translate_errors(str(directory), "written"):
                sync_directory(str(directory))
        return size_bytes

    def publish(self, partitions: Mapping[TopicPartition, Checkpointed]) -> None:
        """Write the checkpoints, then give staged partitions their names.

        Args:
            partitions: The values for the checkpoints, by partition.
        """
        starts = {
            name: partition.log_start
            for name, partition in partitions.items()
            if partition.log_start is not None
        }
        ends = {name: partition.log_end for name, partition in partitions.items()}
        sizes = {name: partition.size_bytes for name, partition in partitions.items()}
        for file, offsets in (
            (LOG_START, starts),
            (RECOVERY_POINT, ends),
            (HIGH_WATERMARK, ends),
            (UNFINISHED, sizes),
        ):
            self._put_checkpoint(file, partitions, offsets)
        if (self.path / CLEANER).exists():
            # It may have the offset of an earlier partition of this name.
            self._put_checkpoint(CLEANER, partitions, {})
        with translate_errors(str(self.path), "written"):
            for name in partitions:
                self._staged(name).rename(self.path / str(name))
            sync_directory(str(self.path))
        self._put_checkpoint(UNFINISHED, partitions, {})

    def discard(self, names: Iterable[TopicPartition]) -> None:
        """Remove directory partitions that are not published, as far as that is possible.

        Args:
            names: The partitions.
        """
        for name in names:
            shutil.rmtree(self._staged(name), ignore_errors=True)

    def _is_unfinished(
        self, name: TopicPartition, topic_id: str, unfinished: Mapping[TopicPartition, int]
    ) -> bool:
        """Return whether a killed export left this partition and nothing changed it since."""
        directory = self.path / str(name)
        try:
            written_id = parse_topic_id(_read(directory / "partition.metadata"))
            size_bytes = sum(log.stat().st_size for log in directory.glob("*.log"))
        except (FileNotFoundError, NotADirectoryError, InvalidFileError):
            return False
        return written_id == topic_id and size_bytes == unfinished.get(name)

    def _staged(self, name: TopicPartition) -> Path:
        unique = hashlib.blake2b(f"klog export-log {name}".encode(), digest_size=16).hexdigest()
        return self.path / deleted_directory_name(name, unique)

    def _put_checkpoint(
        self,
        file: str,
        changed: Iterable[TopicPartition],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Write a checkpoint with new offsets for some partitions; those of others stay."""
        values = self._checkpoint(file)
        for name in changed:
            values.pop(name, None)
        values |= offsets
        path = self.path / file
        with translate_errors(str(path), "written"):
            if file == UNFINISHED and not values:
                path.unlink(missing_ok=True)
            else:
                temporary = path.with_name(f"{file}.tmp")
                temporary.unlink(missing_ok=True)
                _write_files(
                    self.path, [FileChunk(temporary.name, encode_offset_checkpoint(values))]
                )
                temporary.replace(path)
            sync_directory(str(self.path))

    def _checkpoint(self, file: str) -> dict[TopicPartition, int]:
        path = self.path / file
        try:
            return decode_offset_checkpoint(_read(path))
        except FileNotFoundError:
            return {}
        except CorruptRecordError as exc:
            raise OptionError(
                f"{path}: not a checkpoint: {exc}. Restore it, or export into another directory"
            ) from exc


def open_export_directory(path: str) -> ExportDirectory:
    """Return the directory of a local path.

    Args:
        path: An absolute or relative path, or a `file:` URL.

    Raises:
        OptionError: The path is not local.
    """
    scheme = url_scheme(path)
    check_path(path)
    local_path = path.removeprefix("file:") if scheme == "file" else expand_home(path)
    if not is_on_local_disk(path) or not local_path:
        raise OptionError(
            f"{path!r} is not a directory on this machine, and a broker reads no other. Export to "
            "a local path, and copy the result to the broker's machine"
        )
    return ExportDirectory(Path("/" + local_path.lstrip("/") if scheme else local_path).absolute())


def _read(path: Path) -> bytes:
    """Read a small file of a broker."""
    return LocalStore().read(str(path), max_companion_bytes(path.name))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a partition while it is written: a task may outlive its export."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise KlogError(
                f"{path}: a task of a killed export still writes there; run the export again "
                "when it has ended"
            ) from exc
        yield
    finally:
        os.close(directory)


def _write_files(directory: Path, chunks: Iterable[FileChunk]) -> int:
    """Write chunks to their files and sync each file; return the bytes of the logs."""
    size_bytes = 0
    for name, file_chunks in groupby(chunks, lambda chunk: chunk.name):
        path = directory / name
        with translate_errors(str(path), "written"), path.open("xb") as file:
            for chunk in file_chunks:
                file.write(chunk.data)
            file.flush()
            os.fsync(file.fileno())
            size_bytes += file.tell() if name.endswith(".log") else 0
    return size_bytes
