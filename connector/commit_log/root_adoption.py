"""How a broker's log directory becomes a klog root: `_klog/` grows in it, and counts in the end.

    _klog/adopting.json    the directory is being adopted, and is a broker's until that is done

The rule: `_klog/adopting.json` is there before anything else of `_klog/`, each topic gets its whole
log in one commit, and `_klog/format.json` comes last. Until then readers see the broker's directory
as it lies, from then on the adopted topics, and never a part. What is killed is run again: topics
that have their commit are left. `adopting.json` goes when it is done; one that is left behind
`format.json` says nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress

from klog.connector.commit_log import format_description
from klog.connector.commit_log.commit_log_paths import KLOG
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import (
    ADOPTING,
    FORMAT_FILE,
    find_root,
    new_root_fields,
)
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.store.readable_store import ReadableStore, small_file_exists
from klog.connector.store.store_for_url import log_store_for, writable_store_for
from klog.connector.store.store_probe import probe_put_if_absent
from klog.connector.store.writable_store import WritableStore
from klog.errors import KlogError

ADOPTING_FILE = f"{KLOG}/{ADOPTING}"


def begin_adoption(
    given: str, cluster_id: str, storage: StorageOptions = NO_STORAGE_OPTIONS
) -> KlogRoot:
    """Find the klog root at a path or URL, or begin to make one of a broker's directory.

    The store is probed first. Raises `OptionError` for a store that klog does not write to.
    """
    found = find_root(given, storage)
    if found is not None:
        return found
    store, path = writable_store_for(given, storage)
    store.put_if_absent(f"{path}/{ADOPTING_FILE}", json.dumps({"clusterId": cluster_id}).encode())
    probe_put_if_absent(store, f"{path}/{KLOG}")
    return _root_to_be(given, store, path, cluster_id)


def preview_adoption(
    given: str, cluster_id: str, storage: StorageOptions = NO_STORAGE_OPTIONS
) -> KlogRoot:
    """Return the klog root at a path or URL, or the one that `begin_adoption` would make.

    Nothing is written.

    It can be looked at for what an adoption that was killed has done.
    """
    found = find_root(given, storage)
    if found is not None:
        return found
    return _root_to_be(given, *log_store_for(given, storage), cluster_id)


def _root_to_be(given: str, store: WritableStore, path: str, cluster_id: str) -> KlogRoot:
    root = format_description.FormatDescription(f"{path}/{FORMAT_FILE}")
    return KlogRoot(given, store, path, cluster_id, 1, root)


def finish_adoption(root: KlogRoot, storage: StorageOptions = NO_STORAGE_OPTIONS) -> None:
    """Make it a klog root, which it may be already."""
    data = format_description.encode_description(new_root_fields(root.cluster_id))
    root.store.put_if_absent(f"{root.path}/{FORMAT_FILE}", data)
    if find_root(root.location, storage) is None:
        raise KlogError(
            f"{root.path}/{FORMAT_FILE}: the store did not say whether it was made; run it again"
        )
    with suppress(KlogError):  # Who may not delete leaves it, where it says nothing any more.
        root.store.delete(f"{root.path}/{ADOPTING_FILE}")


def is_adoption_under_way(store: ReadableStore, path: str) -> bool:
    """Tell whether a directory that has `_klog/` is still a broker's.

    Raises `KlogError` for one that has become a klog root just now.
    """
    if small_file_exists(store, f"{path}/{ADOPTING_FILE}"):
        return True
    if not small_file_exists(store, f"{path}/{FORMAT_FILE}"):
        return False
    raise KlogError(
        f"{path} was a broker's directory when it was opened, and has been adopted: it is a klog "
        "root now. Begin to read it again"
    )
