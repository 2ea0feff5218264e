"""How a broker's log directory becomes a klog root: `_klog/` is written, and counts at the end.

    _klog/adopting.json    the directory is being adopted, and is a broker's until then

The rule: `_klog/adopting.json` is created before any other file of `_klog/`, each topic gets its
whole log in one commit, and `_klog/format.json` comes last. Until then readers see the broker's
directory, from then on the adopted topics, and never a mixture. An adoption that was killed is run
again: topics that have their commit are left. `adopting.json` is deleted at the end; if it stays,
`format.json` makes it meaningless.
"""

from __future__ import annotations

import json
from contextlib import suppress

from klog.connector.commit_log import format_description
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import (
    find_root,
    new_root_fields,
)
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.connector.root_files import ADOPTING_FILE, FORMAT_FILE, KLOG
from klog.connector.store.store_for_url import log_store_for, writable_store_for
from klog.connector.store.store_probe import probe_put_if_absent
from klog.connector.store.writable_store import WritableStore
from klog.errors import KlogError, StoreError


def begin_adoption(
    location: str, cluster_id: str, storage: StorageOptions = NO_STORAGE_OPTIONS
) -> KlogRoot:
    """Find the klog root at a path or URL, or begin to turn a broker's directory into one.

    The store is probed first.

    Args:
        location: The path or URL.
        cluster_id: The cluster id of a new root.
        storage: Options of the store.

    Raises:
        OptionError: klog does not write to this kind of store.
    """
    root = find_root(location, storage)
    if root is not None:
        return root
    store, path = writable_store_for(location, storage)
    store.put_if_absent(f"{path}/{ADOPTING_FILE}", json.dumps({"clusterId": cluster_id}).encode())
    probe_put_if_absent(store, f"{path}/{KLOG}")
    return _root_to_be(location, store, path, cluster_id)


def preview_adoption(
    location: str, cluster_id: str, storage: StorageOptions = NO_STORAGE_OPTIONS
) -> KlogRoot:
    """Return the klog root at a path or URL, or the one that `begin_adoption` would create.

    Nothing is written. The root shows what an adoption that was killed has done.

    Args:
        location: The path or URL.
        cluster_id: The cluster id of a new root.
        storage: Options of the store.
    """
    root = find_root(location, storage)
    if root is not None:
        return root
    return _root_to_be(location, *log_store_for(location, storage), cluster_id)


def _root_to_be(location: str, store: WritableStore, path: str, cluster_id: str) -> KlogRoot:
    description = format_description.FormatDescription(f"{path}/{FORMAT_FILE}")
    return KlogRoot(location, store, path, cluster_id, 1, description)


def finish_adoption(root: KlogRoot, storage: StorageOptions = NO_STORAGE_OPTIONS) -> None:
    """Turn the directory into a klog root, unless it is one.

    Args:
        root: The root, as `begin_adoption` returned it.
        storage: Options of the store.

    Raises:
        StoreError: The store does not say whether `format.json` was created.
    """
    data = format_description.encode_description(new_root_fields(root.cluster_id))
    root.store.put_if_absent(f"{root.path}/{FORMAT_FILE}", data)
    if find_root(root.location, storage) is None:
        raise StoreError(
            f"{root.path}/{FORMAT_FILE}: the store did not say whether it was created; run it again"
        )
    with suppress(KlogError):  # Without the right to delete it stays, and has no meaning.
        root.store.delete(f"{root.path}/{ADOPTING_FILE}")
