"""The probe: every store of the contract passes it, and no store with a race does."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from klog.connector.store.memory_store import MemoryStore
from klog.connector.store.store_for_url import writable_store_for
from klog.connector.store.store_probe import RACERS, RACES, probe_put_if_absent
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError
from tests.connector.store.fake_s3 import fake_s3
from tests.connector.store.store_roots import StoreRoot, store_root_at


def test_every_store_passes_the_probe(root: StoreRoot) -> None:
    probe_put_if_absent(root.store, root.path)
    root.store.put(root.at("x"), [b"the directory"])
    assert [entry.name for entry in root.store.entries(root.path)] == ["x"]


def test_server_that_ignores_the_condition_is_refused() -> None:
    with fake_s3(ignores_conditions=True) as fake:
        store, path = writable_store_for("s3://bucket/root", fake.storage())
        message = rf"root/probe-\w+: {RACERS} of {RACERS} writers .* honours If-None-Match"
        with pytest.raises(KlogError, match=message):
            probe_put_if_absent(store, path)


def test_server_that_honours_the_condition_passes() -> None:
    with fake_s3() as fake:
        store, path = writable_store_for("s3://bucket/root", fake.storage())
        probe_put_if_absent(store, path)
        assert len(fake.requests) == RACES * (RACERS + 3)


class ChecksThenWrites(MemoryStore):
    """Does what a generic `mode="create"` does."""

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        try:
            self.read(path)
        except FileNotFoundError:
            time.sleep(0.01)
            self.put(path, [data])
            return PutResult.CREATED
        return PutResult.EXISTS


class LastWriterWins(MemoryStore):
    """Writes over an existing file: the last writer wins."""

    def __init__(self, result_of: Callable[[int], PutResult]) -> None:
        super().__init__()
        self._result_of, self._calls = result_of, 0

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        self._calls += 1
        self.put(path, [data])
        return self._result_of(self._calls)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (ChecksThenWrites(), f"of {RACERS} writers of one name were told"),
        (LastWriterWins(lambda call: PutResult.EXISTS), f"0 of {RACERS} writers"),
        (LastWriterWins(lambda call: PutResult.UNKNOWN), "did not answer when writers raced"),
        (
            LastWriterWins(
                lambda call: PutResult.CREATED if call in (1, RACERS + 1) else PutResult.EXISTS
            ),
            f"2 of {RACERS} writers",
        ),
        (
            LastWriterWins(lambda call: PutResult.CREATED if call == 1 else PutResult.EXISTS),
            "has the bytes of another",
        ),
    ],
)
def test_store_with_more_or_fewer_winners_is_refused(store: MemoryStore, message: str) -> None:
    with pytest.raises(KlogError, match=message):
        probe_put_if_absent(store, "/probed")
    for entry in store.entries("/probed"):
        store.delete(entry.path)


class NeverDeletes(MemoryStore):
    def delete(self, path: str) -> None:
        raise KlogError(f"{path}: not deleted: forbidden")


def test_writer_that_may_not_delete_leaves_the_names() -> None:
    root = store_root_at("memory://probed/by/writer")
    probe_put_if_absent(NeverDeletes(), root.path)
    entries = root.store.entries(root.path)
    assert [entry.name[:6] for entry in entries] == ["probe-"] * RACES
    for entry in entries:
        root.store.delete(entry.path)
