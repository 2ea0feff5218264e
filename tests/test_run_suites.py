"""The runs of tools/run_suites.py: each test is in one step, and a failed step fails the run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.support.project import PROJECT
from tools import run_suites
from tools.run_suites import CI, FULL, TEST, Run, Step
from tools.suite_times import SUITES

MARKERS = [*SUITES, "minio", "full"]
SETTINGS = (PROJECT / "pyproject.toml").read_text()


def steps_with(steps: Sequence[Step], markers: tuple[str, ...]) -> int:
    """Return how many steps run a test with these markers."""
    return sum(
        Expression.compile(step[1]).evaluate(lambda name, /, **_: name in markers)
        for step in steps
        if step[0] == "pytest"
    )


def test_each_marker_is_a_suite_or_part_of_one() -> None:
    (block,) = re.findall(r"^markers = \[$(.*?)^\]$", SETTINGS, re.DOTALL | re.MULTILINE)
    assert {*MARKERS} == set(re.findall(r'^  "(\w+): ', block, re.MULTILINE))


@pytest.mark.parametrize("size", range(len(MARKERS) + 1))
def test_each_test_is_in_one_step(size: int) -> None:
    for markers in combinations(MARKERS, size):
        if "delta" in markers and {"spark", "package"} & {*markers}:
            continue  # No test has both: the sessions have other jars.
        if "minio" in markers and "full" not in markers:
            continue  # No test has one alone: to build MinIO takes minutes.
        assert steps_with(FULL, markers) == 1
        assert steps_with(CI, markers) == ("full" not in markers)
        assert steps_with(TEST, markers) == ("full" not in markers)


def test_a_failed_step_fails_the_run_and_ends_no_other(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path)
    steps = [("make", "no-such-task"), *[("make", "help")] * run_suites.WORKERS]
    assert not run.run(steps)
    assert sorted((step.name, step.is_passed) for step in run.steps) == [
        *[("make help", True)] * run_suites.WORKERS,
        ("make no-such-task", False),
    ]
    assert "no-such-task" in capfd.readouterr().out


def test_a_step_that_cannot_be_started_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Run(tmp_path / "absent").run([("make", "help")])


def test_seconds_of_steps_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"unit": [3, 1.5]}')
    (tmp_path / "b.json").write_text('{"unit": [1, 0.5], "spark": [2, 60.0]}')
    assert Run(tmp_path).suites() == {"unit": (4, 2.0), "spark": (2, 60.0)}


def test_a_run_ends_with_its_table(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(run_suites.RUNS, "test", ([("make", "help")], ""))
    assert run_suites.main("test") == 0
    *_, steps, suites, total = capfd.readouterr().out.splitlines()
    assert steps.endswith("s  make help")
    assert suites == "== seconds of each suite"
    assert total.endswith("s  all of it")


def test_a_run_that_fails_ends_with_what_failed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(run_suites.RUNS, "test", ([("make", "no-such-task")], ""))
    assert run_suites.main("test") == 1
    _, end = capfd.readouterr().out.split("== the end of make no-such-task\n")
    error, total = end.splitlines()
    assert "no-such-task" in error
    assert total.endswith("s  all of it")
