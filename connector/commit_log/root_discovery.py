"""Find or create a klog root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from klog.connector.commit_log import format_description
from klog.connector.commit_log.commit_log_paths import KLOG, TOPICS
from klog.connector.commit_log.file_size_limits import MAX_SMALL_FILE_BYTES
from klog.connector.commit_log.format_description import FormatDescription
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.store.readable_store import small_file_exists
from klog.connector.store.store_for_url import log_store_for, writable_store_for
from klog.connector.store.store_probe import probe_put_if_absent
from klog.connector.store.writable_store import WritableStore
from klog.connector.topic_partition import MAX_PARTITIONS
from klog.errors import KlogError, OptionError, UnsupportedFormatError
from klog.logformat.broker_files.file_names import parse_partition_directory

ADOPTING = "adopting.json"
"""The name in `_klog/` of what says that the directory is a broker's until it is adopted."""
FORMAT_FILE = f"{KLOG}/format.json"
_OF_A_BROKER = frozenset(
    {
        "meta.properties", "cleaner-offset-checkpoint", "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    }
)  # fmt: skip
"""Names that a broker's log directory has besides its partitions."""


def find_root(given: str, storage: StorageOptions = NO_STORAGE_OPTIONS) -> KlogRoot | None:
    """Find the klog root at a path or URL; None where a directory is raw Kafka: one read.

    Raises `UnsupportedFormatError` for a root of a newer klog.
    """
    return _read_root(given, *log_store_for(given, storage))


def find_root_to_repair(
    given: str,
    cluster_id: Callable[[WritableStore, str], str],
    storage: StorageOptions = NO_STORAGE_OPTIONS,
) -> tuple[KlogRoot, bytes] | None:
    """Find the klog root at a path or URL, also one that has lost its `format.json`.

    Returns with it the bytes of that file if it is lost, with the cluster id that the function
    makes; None where a directory is raw Kafka. Writes nothing.
    """
    store, path = log_store_for(given, storage)
    if not _has_lost_format(store, path):
        found = _read_root(given, store, path)
        return None if found is None else (found, b"")
    data = format_description.encode_description(new_root_fields(cluster_id(store, path)))
    file = f"{path}/{FORMAT_FILE}"
    return _root_of(given, store, path, format_description.decode_description(file, data)), data


def new_root_fields(cluster_id: str, num_partitions: int = 1) -> dict[str, Any]:
    """Return what the `format.json` of a new root says."""
    return {"clusterId": cluster_id, "config": {"num.partitions": str(num_partitions)}}


def find_or_create_root(
    given: str,
    new_id: str,
    storage: StorageOptions = NO_STORAGE_OPTIONS,
    num_partitions: int = 1,
) -> KlogRoot:
    """Find the klog root at a path or URL, or make it, with a cluster id if it is new.

    The store is probed first: a root is made only where of several writers one wins. Raises
    `OptionError` for a store that klog does not write to, and for a broker's log directory.
    """
    store, path = writable_store_for(given, storage)
    found = _read_root(given, store, path)
    if found is not None:
        return found
    _refuse_raw(given, store, path)
    probe_put_if_absent(store, f"{path}/{KLOG}")
    said = new_root_fields(new_id, num_partitions)
    store.put_if_absent(f"{path}/{FORMAT_FILE}", format_description.encode_description(said))
    # Read back: another may have been first, and what is used is what is there.
    found = _read_root(given, store, path)
    if found is None:
        raise KlogError(f"{path}/{FORMAT_FILE}: the store did not say whether it was made; again")
    return found


def _refuse_raw(given: str, store: WritableStore, path: str) -> None:
    """Raise `OptionError` for a broker's log directory: nothing is ever written there."""
    try:
        entries = store.entries(path)
    except FileNotFoundError:
        return
    except NotADirectoryError as exc:
        raise OptionError(f"{given} is a file; give a directory, where klog makes a root") from exc
    for entry in entries:
        if entry.name in _OF_A_BROKER or (
            entry.is_directory and parse_partition_directory(entry.name) is not None
        ):
            raise OptionError(
                f"{given} has a broker's files ({entry.name}): klog reads such a directory and "
                "writes nothing there. Give a directory of its own, where klog makes a root"
            )


def _read_root(given: str, store: WritableStore, path: str) -> KlogRoot | None:
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
    return _root_of(given, store, path, format_description.decode_description(file, data))


def _root_of(given: str, store: WritableStore, path: str, found: FormatDescription) -> KlogRoot:
    file = found.path
    cluster_id, config = found.fields.get("clusterId"), found.fields.get("config")
    if not isinstance(cluster_id, str):
        raise UnsupportedFormatError(f"{file}: its clusterId is {str(cluster_id)[:100]!r}")
    return KlogRoot(given, store, path, cluster_id, _num_partitions(file, config), found)


def _has_lost_format(store: WritableStore, path: str) -> bool:
    """Tell topics of klog's whose root has lost its format: one listing.

    A directory that is being adopted has no format yet, and says so.
    """
    try:
        names = {entry.name for entry in store.entries(f"{path}/{KLOG}")}
    except (FileNotFoundError, NotADirectoryError):
        return False
    if TOPICS not in names or ADOPTING in names:
        return False
    return not small_file_exists(store, f"{path}/{FORMAT_FILE}")


def _num_partitions(file: str, config: object) -> int:
    said = config.get("num.partitions", "1") if isinstance(config, Mapping) else "1"
    if isinstance(said, str) and said.isascii() and said.isdecimal() and len(said) < 10:
        number = int(said)
        if 1 <= number <= MAX_PARTITIONS:
            return number
    raise UnsupportedFormatError(
        f"{file}: its num.partitions is {str(said)[:100]!r}, not a number from 1 to "
        f"{MAX_PARTITIONS}"
    )
