"""A run that asks for a few parameter sets of each test takes the same ones each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import PROJECT
from tools.sampled_parameters import ids_to_run

NAMES = ["a.py::test_one", *(f"a.py::test_two[{number}-x[y]]" for number in range(9))]


@pytest.mark.parametrize("count", range(1, 11))
def test_each_test_has_so_many(count: int) -> None:
    kept = ids_to_run(NAMES, count)
    assert "a.py::test_one" in kept
    assert len(kept) == 1 + min(count, 9)


def test_a_new_set_replaces_one_set() -> None:
    kept = ids_to_run(NAMES, 4)
    for number in range(9, 200):
        assert len(kept - ids_to_run([*NAMES, f"a.py::test_two[{number}-x[y]]"], 4)) <= 1


def test_more_sets_contain_fewer() -> None:
    assert all(ids_to_run(NAMES, count) < ids_to_run(NAMES, count + 1) for count in range(1, 9))


def test_they_mix_the_values_of_two_parameters() -> None:
    ids = [f"a.py::test_it[{engine}-{case}]" for case in range(8) for engine in ("jvm", "python")]
    kept = [ids_to_run([each.replace("it", f"it{n}") for each in ids], 3) for n in range(100)]
    have_both = [{each.split("[")[1].split("-")[0] for each in names} for names in kept]
    assert sum(len(engines) == 2 for engines in have_both) > 60


TESTS = """
import pytest

@pytest.mark.parametrize("number", range(9))
def test_of_numbers(number):
    pass

ROWS = [pytest.param(n, marks=pytest.mark.slow if n % 3 else ()) for n in range(9)]
@pytest.mark.parametrize("row", ROWS)
def test_with_marks(row):
    pass
"""


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        ([], 12),
        (["--parameter-sets=2"], 4),
        (["--parameter-sets=3"], 6),
        (["--parameter-sets=4"], 7),
    ],
)
def test_pytest_runs_so_many_of_those_that_it_selects(
    tmp_path: Path, options: list[str], passed: int
) -> None:
    (tmp_path / "test_x.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    command = [sys.executable, "-m", "pytest", "-p", "tools.sampled_parameters", "-m", "not slow"]
    printed = subprocess.run(
        [*command, *options, "."], cwd=tmp_path, env={"PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert f"{passed} passed, {18 - passed} deselected in" in printed


def test_each_run_takes_the_same_ones() -> None:
    kept = ["a.py::test_one", *(f"a.py::test_two[{number}-x[y]]" for number in (3, 7, 8))]
    assert ids_to_run(NAMES, 3) == {*kept}
