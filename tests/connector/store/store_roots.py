"""Roots on stores that tests use, and the storage options to open them."""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    StorageOptions,
    parse_storage_options,
)
from klog.connector.store.store_for_url import writable_store_for
from klog.connector.store.writable_store import WritableStore


@dataclass(frozen=True, slots=True)
class StoreRoot:
    """An empty root: its store, and its path as the store spells it."""

    url: str
    storage: StorageOptions
    store: WritableStore
    path: str

    def at(self, name: str) -> str:
        return f"{self.path}/{name}"


def storage_options(**texts: str) -> StorageOptions:
    """Return storage options, named without `storage.`."""
    return parse_storage_options({f"storage.{name}": text for name, text in texts.items()})


def store_root_at(url: str, storage: StorageOptions = NO_STORAGE_OPTIONS) -> StoreRoot:
    return StoreRoot(url, storage, *writable_store_for(url, storage))
