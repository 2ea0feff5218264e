"""Find or create a klog root.

The rule: `format.json` makes a directory a klog root. A root is never created among a broker's
files, and on a new store only after a probe showed that one writer wins a race for a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from klog.connector.commit_log import format_description
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES
from klog.connector.commit_log.format_description import FormatDescription
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.root_files import ADOPTING, FORMAT_FILE, KLOG, TOPICS
from klog.connector.store.readable_store import small_file_exists
from klog.connector.store.store_for_url import log_store_for, writable_store_for
from klog.connector.store.store_probe import probe_put_if_absent
from klog.connector.store.writable_store import WritableStore
from klog.errors import KlogError, OptionError, StoreError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import parse_partition_directory
from klog.logformat.topic_partition import MAX_PARTITIONS

_OF_A_BROKER = frozenset(
    {
        "meta.properties", "cleaner-offset-checkpoint", "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    }
)  # fmt: skip
"""Names that a broker's log directory has besides its partitions."""


def find_root(location: str, storage: StorageOptions = NO_STORAGE_OPTIONS) -> KlogRoot | None:
    """Find the klog root at a path or URL: one read.

    Args:
        location: The path or URL.
        storage: Options of the store.

    Returns:
        The root; None if the directory is raw Kafka.

    Raises:
        UnsupportedFormatError: The root needs a newer klog.
        KlogError: The root has lost its `format.json`.
    """
    return _read_root(location, *log_store_for(location, storage))


@dataclass(frozen=True, slots=True)
class RootToRepair:
    """A klog root, and the bytes of its lost `format.json`, empty if it is not lost."""

    root: KlogRoot
    lost_format: bytes


def find_root_to_repair(
    location: str,
    cluster_id: Callable[[WritableStore, str], str],
    storage: StorageOptions = NO_STORAGE_OPTIONS,
) -> RootToRepair | None:
    """Find the klog root at a path or URL, also one that has lost its `format.json`.

    Nothing is written.

    Args:
        location: The path or URL.
        cluster_id: Returns the cluster id of a root that has lost it, by its store and path.
        storage: Options of the store.

    Returns:
        The root; None if the directory is raw Kafka.
    """
    store, path = log_store_for(location, storage)
    if not _has_lost_format(store, path):
        root = _read_root(location, store, path)
        return None if root is None else RootToRepair(root, b"")
    data = format_description.encode_description(new_root_fields(cluster_id(store, path)))
    file = f"{path}/{FORMAT_FILE}"
    description = format_description.decode_description(file, data)
    return RootToRepair(_root_of(location, store, path, description), data)


def new_root_fields(cluster_id: str, num_partitions: int = 1) -> dict[str, Any]:
    """Return the fields of a new root's `format.json`.

    Args:
        cluster_id: The cluster id.
        num_partitions: The partitions of a topic that is created without a number.
    """
    return {"clusterId": cluster_id, "config": {"num.partitions": str(num_partitions)}}


def find_or_create_root(
    location: str,
    new_id: str,
    storage: StorageOptions = NO_STORAGE_OPTIONS,
    num_partitions: int = 1,
) -> KlogRoot:
    """Find the klog root at a path or URL, or create it.

    The store is probed first: a root is created only if one of several concurrent writers wins
    there.

    Args:
        location: The path or URL.
        new_id: The cluster id of a new root.
        storage: Options of the store.
        num_partitions: The partitions of a new root's topics that are created without a number.

    Raises:
        OptionError: klog does not write to this kind of store, or the directory is a broker's.
        StoreError: The store does not say whether the root was created.
    """
    store, path = writable_store_for(location, storage)
    root = _read_root(location, store, path)
    if root is not None:
        return root
    _refuse_raw(location, store, path)
    probe_put_if_absent(store, f"{path}/{KLOG}")
    fields = new_root_fields(new_id, num_partitions)
    store.put_if_absent(f"{path}/{FORMAT_FILE}", format_description.encode_description(fields))
    # Read back: another process may have created it first.
    root = _read_root(location, store, path)
    if root is None:
        raise StoreError(
            f"{path}/{FORMAT_FILE}: the store did not say whether it was created; try again"
        )
    return root


def _refuse_raw(location: str, store: WritableStore, path: str) -> None:
    """Raise `OptionError` for a broker's log directory: klog never writes there."""
    try:
        entries = store.entries(path)
    except FileNotFoundError:
        return
    except NotADirectoryError as exc:
        raise OptionError(
            f"{location} is a file; give a directory, where klog creates a root"
        ) from exc
    for entry in entries:
        if entry.name in _OF_A_BROKER or (
            entry.is_directory and parse_partition_directory(entry.name) is not None
        ):
            raise OptionError(
                f"{location} has a broker's files ({entry.name}): klog reads such a directory and "
                "writes nothing there. Give a directory of its own, where klog creates a root"
            )


def _read_root(location: str, store: WritableStore, path: str) -> KlogRoot | None:
    file = f"{path}/{FORMAT_FILE}"
    try:
        data = store.read(file, MAX_SMALL_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if _has_lost_format(store, path):
            raise KlogError(
                f"{file}: this file is lost: {path}/{KLOG}/{TOPICS} is there, so the directory is "
                "a klog root. Restore it from a copy, or run `klog repair`"
            ) from None
        return None
    return _root_of(location, store, path, format_description.decode_description(file, data))


def _root_of(
    location: str, store: WritableStore, path: str, description: FormatDescription
) -> KlogRoot:
    file = description.path
    cluster_id, config = description.fields.get("clusterId"), description.fields.get("config")
    if not isinstance(cluster_id, str):
        raise UnsupportedFormatError(
            f"{file}: its clusterId is {str(cluster_id)[:100]!r}, not a text. Restore it "
            "from a copy"
        )
    return KlogRoot(location, store, path, cluster_id, _num_partitions(file, config), description)


def _has_lost_format(store: WritableStore, path: str) -> bool:
    """Return whether a directory has klog's topics and no `format.json`: one listing.

    A directory that is being adopted has none yet, and `adopting.json` says so.
    """
    try:
        names = {entry.name for entry in store.entries(f"{path}/{KLOG}")}
    except (FileNotFoundError, NotADirectoryError):
        return False
    if TOPICS not in names or ADOPTING in names:
        return False
    return not small_file_exists(store, f"{path}/{FORMAT_FILE}")


def _num_partitions(file: str, config: object) -> int:
    text = config.get("num.partitions", "1") if isinstance(config, Mapping) else "1"
    if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10:
        number = int(text)
        if 1 <= number <= MAX_PARTITIONS:
            return number
    raise UnsupportedFormatError(
        f"{file}: its num.partitions is {str(text)[:100]!r}, not a number from 1 to "
        f"{MAX_PARTITIONS}. Restore it from a copy"
    )
