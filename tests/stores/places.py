"""Where the contract is tried: an empty root on each store."""

from __future__ import annotations

from dataclasses import dataclass

from klog.connector.store.contract import WritableStore
from klog.connector.store.schemes import writable_store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage


@dataclass(frozen=True, slots=True)
class Place:
    """An empty root: its store, and its path as the store spells it."""

    url: str
    storage: Storage
    store: WritableStore
    path: str

    def at(self, name: str) -> str:
        return f"{self.path}/{name}"


def place_at(url: str, storage: Storage = NOTHING_GIVEN) -> Place:
    return Place(url, storage, *writable_store_for(url, storage))
