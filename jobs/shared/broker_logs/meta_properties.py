"""The cluster id of a broker's log directory, from its `meta.properties`."""

from __future__ import annotations

from klog.connector.store.readable_store import MAX_SMALL_FILE_BYTES, ReadableStore
from klog.errors import CorruptRecordError
from klog.logformat.broker_files.java_properties import decode_properties


def read_cluster_id(store: ReadableStore, path: str) -> str:
    """Return the cluster id of a log directory; empty if no file has one.

    Args:
        store: The store of the directory.
        path: The path of the directory, as the store spells it.
    """
    try:
        properties = decode_properties(store.read(f"{path}/meta.properties", MAX_SMALL_FILE_BYTES))
    except (FileNotFoundError, CorruptRecordError):
        return ""
    return properties.get("cluster.id", "")
