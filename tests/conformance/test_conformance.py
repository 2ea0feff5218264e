"""Every case of `ids.txt` is in a table, and klog answers as Kafka does."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from tests.conformance import tables
from tests.conformance.case import Case, NotApplicable, Refused

_MODULES = [
    importlib.import_module(f"{tables.__name__}.{module.name}")
    for module in pkgutil.iter_modules(tables.__path__)
]
CASES: list[Case] = [case for module in _MODULES for case in module.CASES]
NOT_APPLICABLE: list[NotApplicable] = [row for module in _MODULES for row in module.NOT_APPLICABLE]
IDS = (Path(__file__).parent / "ids.txt").read_text().splitlines()
SHORTEST_REASON = 20


def _name(case: Case) -> str:
    return f"{case.id} {case.label}".strip()


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_case(case: Case) -> None:
    if isinstance(case.expect, Refused):
        with pytest.raises(case.expect.error) as caught:
            case.run(*case.args)
        assert case.expect.words in str(caught.value)
    else:
        assert case.run(*case.args) == case.expect


def test_no_case_is_missing() -> None:
    """Each id is tried or excused, never both, and no other id is."""
    tried = {case.id for case in CASES}
    excused = [row.id for row in NOT_APPLICABLE]
    assert sorted(tried | set(excused)) == sorted(IDS)
    assert not tried & set(excused)
    assert len(excused) == len(set(excused))


def test_row_names_are_unique() -> None:
    """So that the name of a failing row finds it."""
    names = [_name(case) for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", NOT_APPLICABLE, ids=lambda row: row.id)
def test_excused_cases_have_a_reason(row: NotApplicable) -> None:
    """The reason is a sentence."""
    assert len(row.why) >= SHORTEST_REASON
    assert row.why.endswith(".")
