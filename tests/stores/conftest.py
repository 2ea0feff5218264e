"""Gives each test of the contract an empty root on each store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stores.places import Place, place_at


def on_local(request: pytest.FixtureRequest) -> Place:
    folder: Path = request.getfixturevalue("tmp_path")
    return place_at(str(folder / "root"))


STORES: dict[str, Callable[[pytest.FixtureRequest], Place]] = {"local": on_local}


@pytest.fixture(params=list(STORES))
def place(request: pytest.FixtureRequest) -> Place:
    return STORES[request.param](request)
