"""Wrong ways to put a file if absent, with two winners or none: section 1 of the protocol.

The rule: each is what a known client or file system does (docs/stores.md), and replaces the
simulated store's own code during a run.
"""

from __future__ import annotations

from typing import Any

import pytest

from klog.connector.store.writable_store import PutResult
from tests.simulation.simulated_disk import Disk
from tests.simulation.simulated_store import SimulatedStore


def exists_then_write(patch: pytest.MonkeyPatch) -> None:
    """Check whether the name is free, then write it, as fsspec does on local disk."""

    def put_if_absent(store: Any, path: str, data: bytes) -> PutResult:
        try:
            store.read(path)
        except FileNotFoundError:
            store._world.request("put", lambda: _overwrite(store._disk, path, data))
            return PutResult.CREATED
        return PutResult.EXISTS

    patch.setattr(SimulatedStore, "put_if_absent", put_if_absent)


def renamed_over(patch: pytest.MonkeyPatch) -> None:
    """Name a finished file by a rename that replaces, or put it without the condition's header."""
    patch.setattr(Disk, "create", _overwrite)


def created_and_filled(patch: pytest.MonkeyPatch) -> None:
    """Create the file under its name, then write it: a killed writer leaves it torn."""
    usual = SimulatedStore.put_if_absent

    def put_if_absent(store: Any, path: str, data: bytes) -> PutResult:
        result = usual(store, path, data[: len(data) // 2])
        if result is PutResult.CREATED:
            store._world.request("put", lambda: _overwrite(store._disk, path, data))
        return result

    patch.setattr(SimulatedStore, "put_if_absent", put_if_absent)


def answer_dropped(patch: pytest.MonkeyPatch) -> None:
    """Ignore the answer of a rename that does not replace: each caller believes it won."""
    usual = SimulatedStore.put_if_absent

    def put_if_absent(store: Any, path: str, data: bytes) -> PutResult:
        usual(store, path, data)
        return PutResult.CREATED

    patch.setattr(SimulatedStore, "put_if_absent", put_if_absent)


def not_synced(patch: pytest.MonkeyPatch) -> None:
    """Answer before the folder is synced."""
    patch.setattr(SimulatedStore, "_sync", lambda store, path: None)


def _overwrite(disk: Disk, path: str, data: bytes) -> PutResult:
    disk.put(path, data)
    disk.created.append((path, data))
    return PutResult.CREATED
