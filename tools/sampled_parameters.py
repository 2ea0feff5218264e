"""A pytest plugin (`-p tools.sampled_parameters`): run a few of each test's parameter sets.

The rule: `--parameter-sets N` leaves at most N of them to a test: those whose ids have the smallest
hashes. So every run of the same files takes the same ones, they mix the values of several
parameters, and a new set with an id of its own replaces at most one other. Without it, all run.
"""

from __future__ import annotations

import hashlib
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


def ids_to_run(ids: list[str], count: int) -> frozenset[str]:
    """Return at most `count` of the ids of each test."""
    by_test: dict[str, list[str]] = defaultdict(list)
    for each in ids:
        by_test[each.partition("[")[0]].append(each)
    return frozenset(
        each for of_a_test in by_test.values() for each in sorted(of_a_test, key=_hash)[:count]
    )


def _hash(test_id: str) -> bytes:
    # A checksum would not mix parameters: ids that differ in one digit have regular ones.
    return hashlib.sha256(test_id.encode()).digest()
