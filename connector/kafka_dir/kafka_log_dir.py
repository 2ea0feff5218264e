"""One of a broker's log directories: its partitions, and what its checkpoint files say.

The rule: a checkpoint file that is missing or malformed says nothing, as for a broker that starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from klog.connector.kafka_dir.broker_lock import is_locked_by_broker
from klog.connector.kafka_dir.companion_files import read_companion_file
from klog.connector.kafka_dir.log_bounds import RecoveryPoint
from klog.connector.root_files import FORMAT_FILE, KLOG, is_adoption_under_way
from klog.connector.store.local_store import LocalStore
from klog.connector.store.readable_store import DirectoryEntry, ReadableStore
from klog.errors import OptionError, UnsupportedFormatError
from klog.logformat.broker_files.checkpoint_files import parse_offset_checkpoint
from klog.logformat.broker_files.file_names import parse_partition_directory
from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class KafkaLogDir:
    """A log directory as of one listing.

    Attributes:
        root: The path or URL as the user wrote it.
        path: The same as its store spells it.
        store: The store that has it.
        partition_dirs: The directory of each partition.
        log_start_offsets: From `log-start-offset-checkpoint`.
        high_watermarks: From `replication-offset-checkpoint`.
        recovery_points: From `recovery-point-offset-checkpoint`.
        is_cleanly_shut_down: Whether `.kafka_cleanshutdown` is there.
        is_locked_by_broker: Whether a broker runs on it.
    """

    root: str
    path: str
    store: ReadableStore
    partition_dirs: Mapping[TopicPartition, DirectoryEntry]
    log_start_offsets: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    recovery_points: Mapping[TopicPartition, int]
    is_cleanly_shut_down: bool
    is_locked_by_broker: bool

    def recovery_point(self, name: TopicPartition) -> RecoveryPoint:
        """Return what the broker promises of one partition.

        Args:
            name: The partition.
        """
        offsets = self.high_watermarks if self.is_locked_by_broker else self.recovery_points
        return RecoveryPoint(
            offsets.get(name, 0), self.is_cleanly_shut_down, self.is_locked_by_broker
        )


def read_log_dir(
    root: str, store: ReadableStore, path: str, *, allow_klog_state: bool = False
) -> KafkaLogDir:
    """List a log directory and read its checkpoint files.

    Args:
        root: The path or URL as the user wrote it.
        store: Its store.
        path: The path as the store spells it.
        allow_klog_state: Whether the directory may be a klog root, as for `klog adopt`.

    Raises:
        OptionError: If it is not a directory.
        UnsupportedFormatError: If it is what is left of a klog root.
    """
    entries = _list(root, store, path)
    if not allow_klog_state:
        _refuse_klog_state(root, store, path, entries)
    files = {
        entry.name: entry.path for entry in entries if not entry.is_directory and not entry.special
    }

    def checkpoint(name: str) -> dict[TopicPartition, int]:
        data = read_companion_file(store, files[name]) if name in files else None
        return (None if data is None else parse_offset_checkpoint(data)) or {}

    return KafkaLogDir(
        root=root,
        path=path,
        store=store,
        partition_dirs=_partition_dirs(entries),
        log_start_offsets=checkpoint("log-start-offset-checkpoint"),
        high_watermarks=checkpoint("replication-offset-checkpoint"),
        recovery_points=checkpoint("recovery-point-offset-checkpoint"),
        is_cleanly_shut_down=".kafka_cleanshutdown" in files,
        is_locked_by_broker=isinstance(store, LocalStore) and is_locked_by_broker(path),
    )


def _list(root: str, store: ReadableStore, path: str) -> list[DirectoryEntry]:
    try:
        return store.entries(path)
    except FileNotFoundError:
        raise OptionError(f"path: there is no directory {root}; give one that exists") from None
    except NotADirectoryError:
        raise OptionError(f"path: {root} is a file; give the log directory itself") from None


def _refuse_klog_state(
    root: str, store: ReadableStore, path: str, entries: list[DirectoryEntry]
) -> None:
    """Refuse a directory whose commit logs have lost what makes it a klog root."""
    has_state = any(entry.name == KLOG and entry.is_directory for entry in entries)
    if has_state and not is_adoption_under_way(store, path):
        raise UnsupportedFormatError(
            f"{root} has {KLOG}, but no {FORMAT_FILE}: it is neither a klog root nor a broker's "
            f"directory. Restore that file from a copy, or move {KLOG} away"
        )


def _partition_dirs(entries: list[DirectoryEntry]) -> dict[TopicPartition, DirectoryEntry]:
    directories: dict[TopicPartition, DirectoryEntry] = {}
    for entry in entries:
        name = parse_partition_directory(entry.name) if entry.is_directory else None
        if name is not None:
            directories[name] = entry
    return directories
