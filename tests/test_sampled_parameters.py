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


@pytest.mark.parametrize(("options", "count"), [([], 9), (["--parameter-sets=2"], 2)])
def test_pytest_runs_so_many(tmp_path: Path, options: list[str], count: int) -> None:
    (tmp_path / "test_x.py").write_text(
        "import pytest\n@pytest.mark.parametrize('number', range(9))\ndef test_it(number): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tools.sampled_parameters", *options, "."]
    printed = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(PROJECT)}, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    left = f", {9 - count} deselected" if count < 9 else ""
    assert f"{count} passed{left} in" in printed
