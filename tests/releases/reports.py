"""The values that two plays of a scene share, and that a later play must keep.

The rule: a report keeps its keys, their types and every value that two plays of the same release
share. It may have more keys, and lists of names may have another order. For times, prose and
`engine`, only types are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.releases.scenes import Step

VARIES = "#varies"
"""The only key of an object that stands for a value which differs between plays: its type."""
NOT_COMPARED = frozenset(
    {"seconds", "engine", "what", "nextStep", "error", "message", "left", "note"}
)
"""Keys whose values may differ in each release."""


def common(first: Any, second: Any) -> Any:
    """Return the output of two plays, with a mark for each value that differs."""
    if isinstance(first, dict) and isinstance(second, dict):
        assert first.keys() == second.keys(), first.keys() ^ second.keys()
        return {key: common(first[key], second[key]) for key in first}
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [
            common(first_element, second_element)
            for first_element, second_element in zip(first, second, strict=True)
        ]
    assert type(first) is type(second), (first, second)
    return first if first == second else {VARIES: type(first).__name__}


def step_differences(old: Step, new: Step) -> Iterator[str]:
    """Yield the differences of a step from its old play, a line each."""
    command = " ".join(old["run"])
    if old["code"] != new["code"]:
        yield f"{command}: exit code {new['code']}, was {old['code']}"
    for difference in differences(old["output"], new["output"], ""):
        yield f"{command}: {difference}"


def differences(old: Any, new: Any, path: str, key: str = "") -> Iterator[str]:
    """Yield the differences of a value from the old one; `key` is the last one on its path."""
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
    if all(isinstance(element, str) for element in [*old, *new]):
        old, new = sorted(old), sorted(new)
    for number, (old_element, new_element) in enumerate(zip(old, new, strict=False)):
        yield from differences(old_element, new_element, f"{path}[{number}]", key)
