"""The probe: passed by every store of the contract, and by none that ignores or races it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from klog.connector.store.contract import Put
from klog.connector.store.memory import MemoryStore
from klog.connector.store.probe import RACERS, RACES, probe
from klog.connector.store.schemes import writable_store_for
from klog.errors import KlogError
from tests.stores.fake_s3 import fake_s3
from tests.stores.places import Place, place_at


def test_every_store_passes(place: Place) -> None:
    probe(place.store, place.path)
    place.store.put(place.at("x"), [b"the directory"])
    assert [entry.name for entry in place.store.entries(place.path)] == ["x"]


def test_a_server_that_ignores_the_condition_is_refused() -> None:
    with fake_s3(ignores_conditions=True) as fake:
        store, path = writable_store_for("s3://bucket/root", fake.storage())
        words = rf"root/probe-\w+: {RACERS} of {RACERS} writers .* honours If-None-Match"
        with pytest.raises(KlogError, match=words):
            probe(store, path)


def test_a_server_that_keeps_it_passes() -> None:
    with fake_s3() as fake:
        store, path = writable_store_for("s3://bucket/root", fake.storage())
        probe(store, path)
        assert len(fake.requests) == RACES * (RACERS + 3)


class ChecksThenWrites(MemoryStore):
    """What a generic `mode="create"` does."""

    def put_if_absent(self, path: str, data: bytes) -> Put:
        try:
            self.read(path)
        except FileNotFoundError:
            time.sleep(0.01)
            self.put(path, [data])
            return Put.CREATED
        return Put.EXISTS


class TakesTheLate(MemoryStore):
    """Serial where writers race and blind to what is there: the last one wins."""

    def __init__(self, told: Callable[[int], Put]) -> None:
        super().__init__()
        self._told, self._calls = told, 0

    def put_if_absent(self, path: str, data: bytes) -> Put:
        self._calls += 1
        self.put(path, [data])
        return self._told(self._calls)


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (ChecksThenWrites(), f"of {RACERS} writers of one name were told"),
        (TakesTheLate(lambda call: Put.EXISTS), f"0 of {RACERS} writers"),
        (TakesTheLate(lambda call: Put.UNKNOWN), "did not answer when writers raced"),
        (
            TakesTheLate(lambda call: Put.CREATED if call in (1, RACERS + 1) else Put.EXISTS),
            f"2 of {RACERS} writers",
        ),
        (
            TakesTheLate(lambda call: Put.CREATED if call == 1 else Put.EXISTS),
            "kept the bytes of another",
        ),
    ],
)
def test_stores_that_are_refused(store: MemoryStore, words: str) -> None:
    with pytest.raises(KlogError, match=words):
        probe(store, "/probed")
    for entry in store.entries("/probed"):
        store.delete(entry.path)


class NeverDeletes(MemoryStore):
    def delete(self, path: str) -> None:
        raise KlogError(f"{path}: not deleted: forbidden")


def test_a_writer_that_may_not_delete() -> None:
    place = place_at("memory://probed/by/writer")
    probe(NeverDeletes(), place.path)
    left = place.store.entries(place.path)
    assert [entry.name[:6] for entry in left] == ["probe-"] * RACES
    for entry in left:
        place.store.delete(entry.path)
