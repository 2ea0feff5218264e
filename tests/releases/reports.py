"""What two plays of a scene have in common, and what a later play has to keep of it.

The rule: a report keeps its keys, their types and every value that two plays of the same release
give alike. It may have more keys, and a list of names another order. Times, prose and who wrote are
not compared, only their types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.releases.scenes import Step

VARIES = "#varies"
"""The one key of what stands for a value that differs from play to play: its type."""
NOT_COMPARED = frozenset(
    {"seconds", "engine", "what", "nextStep", "error", "message", "left", "note"}
)
"""Keys whose texts and numbers may be others in each release."""


def common(first: Any, second: Any) -> Any:
    """Return what two plays gave, with a mark in the place of each value that differs."""
    if isinstance(first, dict) and isinstance(second, dict):
        assert first.keys() == second.keys(), first.keys() ^ second.keys()
        return {key: common(first[key], second[key]) for key in first}
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [common(one, other) for one, other in zip(first, second, strict=True)]
    assert type(first) is type(second), (first, second)
    return first if first == second else {VARIES: type(first).__name__}


def step_differences(old: Step, new: Step) -> Iterator[str]:
    """Yield what the play of a step lacks of an old one, a line each."""
    command = " ".join(old["run"])
    if old["code"] != new["code"]:
        yield f"{command}: exit code {new['code']}, was {old['code']}"
    for difference in differences(old["output"], new["output"], ""):
        yield f"{command}: {difference}"


def differences(old: Any, new: Any, path: str, key: str = "") -> Iterator[str]:
    """Yield where a value is not what it was; `key` is the last one on the path to it."""
    if isinstance(old, dict) and old.keys() == {VARIES}:
        if type(new).__name__ != old[VARIES]:
            yield f"{path} is {new!r}, was of type {old[VARIES]}"
    elif type(old) is not type(new):
        yield f"{path} is {new!r}, was {old!r}"
    elif isinstance(old, dict):
        yield from (f"{path}.{name} is missing" for name in old.keys() - new.keys())
        for name in old.keys() & new.keys():
            yield from differences(old[name], new[name], f"{path}.{name}", name)
    elif isinstance(old, list):
        yield from _list_differences(old, new, path, key)
    elif old != new and key not in NOT_COMPARED:
        yield f"{path} is {new!r}, was {old!r}"


def _list_differences(old: list[Any], new: list[Any], path: str, key: str) -> Iterator[str]:
    if len(old) != len(new):
        yield f"{path} has {len(new)} elements, had {len(old)}: {new!r}, {old!r}"
    if all(isinstance(one, str) for one in [*old, *new]):
        old, new = sorted(old), sorted(new)
    for number, (one, other) in enumerate(zip(old, new, strict=False)):
        yield from differences(one, other, f"{path}[{number}]", key)
