"""A pytest plugin (`-p tools.sampled_parameters`): run a few of each test's parameter sets.

The rule: `--parameter-sets N` leaves at most N of them to a test: those whose ids have the smallest
checksums. So every run of the same files takes the same ones, they mix the values of several
parameters, and a new set replaces at most one other. Where it is not given, all run.
"""

from __future__ import annotations

import zlib
from collections import defaultdict

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that says how many."""
    parser.addoption("--parameter-sets", type=int, help="run so many parameter sets of each test")


@pytest.hookimpl(trylast=True)  # After -m has deselected tests.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the other parameter sets of each test."""
    count = config.getoption("--parameter-sets")
    if count is None:
        return
    kept = ids_to_run([item.nodeid for item in items], count)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def ids_to_run(names: list[str], count: int) -> frozenset[str]:
    """Return at most so many of the ids of each test."""
    sets: dict[str, list[str]] = defaultdict(list)
    for name in names:
        sets[name.partition("[")[0]].append(name)
    return frozenset(
        name for of_test in sets.values() for name in sorted(of_test, key=_checksum)[:count]
    )


def _checksum(name: str) -> int:
    return zlib.crc32(name.encode())
