"""Gives each test of the contract an empty root on each store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from tests.stores.places import Place, place_at


def on_local(request: pytest.FixtureRequest) -> Place:
    folder: Path = request.getfixturevalue("tmp_path")
    return place_at(str(folder / "root"))


def on_memory(request: pytest.FixtureRequest) -> Place:
    request.addfinalizer(fsspec.filesystem("memory").store.clear)
    return place_at("memory://root/of/it")


STORES: dict[str, Callable[[pytest.FixtureRequest], Place]] = {
    "local": on_local,
    "memory": on_memory,
}


@pytest.fixture(params=list(STORES))
def place(request: pytest.FixtureRequest) -> Place:
    return STORES[request.param](request)
