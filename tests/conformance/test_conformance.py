"""Every case of Kafka's unit tests that klog knows of: none is missing, and each holds."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from tests.conformance import tables
from tests.conformance.case import Case, NotApplicable, Refused

_MODULES = [
    importlib.import_module(f"{tables.__name__}.{found.name}")
    for found in pkgutil.iter_modules(tables.__path__)
]
CASES: list[Case] = [case for module in _MODULES for case in module.CASES]
NOT_APPLICABLE: list[NotApplicable] = [row for module in _MODULES for row in module.NOT_APPLICABLE]
IDS = (Path(__file__).parent / "ids.txt").read_text().splitlines()
SHORTEST_REASON = 20


def _name(case: Case) -> str:
    return f"{case.id} {case.label}".strip()


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_case(case: Case) -> None:
    """Klog answers as Kafka does; what runs it holds kernels to what is read without them."""
    if isinstance(case.expect, Refused):
        with pytest.raises(case.expect.error) as caught:
            case.run(*case.given)
        assert case.expect.words in str(caught.value)
    else:
        assert case.run(*case.given) == case.expect


def test_none_is_missing() -> None:
    """Each case is tried or says why it is not; none is both, and none is made up."""
    tried = {case.id for case in CASES}
    excused = [row.id for row in NOT_APPLICABLE]
    assert sorted(tried | set(excused)) == sorted(IDS)
    assert not tried & set(excused)
    assert len(excused) == len(set(excused))


def test_rows_have_names_of_their_own() -> None:
    """A failing row can be found by its name."""
    names = [_name(case) for case in CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", NOT_APPLICABLE, ids=lambda row: row.id)
def test_a_case_that_is_not_tried_says_why(row: NotApplicable) -> None:
    """The reason is a sentence."""
    assert len(row.why) >= SHORTEST_REASON
    assert row.why.endswith(".")
