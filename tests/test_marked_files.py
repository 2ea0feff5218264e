"""Files without a test that an expression selects are left out, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import PROJECT
from tools.marked_files import FileMarks, read_file_marks


@pytest.mark.parametrize(
    ("text", "expression", "is_possible"),
    [
        ("", "spark", False),
        ("", "not spark", True),
        ("@pytest.mark.spark", "spark", True),
        ("@pytest.mark.spark", "not spark", True),
        ("pytestmark = pytest.mark.spark", "not spark", False),
        ("pytestmark = [pytest.mark.spark, pytest.mark.slow]", "spark and not slow", False),
        ("pytestmark = [pytest.mark.spark]\nmark.slow", "spark and not slow", True),
        ("pytestmark = [pytest.mark.spark]\nmark.slow", "(spark and slow) or package", True),
        ("pytestmark = pytest.mark.package", "(spark and slow) or package", True),
        ("pytestmark = pytest.mark.spark", "(spark and slow) or package", False),
    ],
)
def test_a_file_is_read(tmp_path: Path, text: str, expression: str, is_possible: bool) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(text)
    assert read_file_marks(path).can_match(expression) is is_possible


@pytest.mark.parametrize("name", ["helper.py", "conftest.py"])
def test_marks_of_helpers_count(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("pytest.param(1, marks=pytest.mark.slow)")
    path = tmp_path / "test_x.py"
    path.write_text("pytestmark = pytest.mark.spark")
    assert read_file_marks(path).can_match("spark and slow")


@pytest.mark.parametrize(
    ("marks", "is_allowed"),
    [
        ({"spark"}, True),
        ({"spark", "slow"}, True),
        ({"slow"}, False),
        ({"spark", "delta"}, False),
    ],
)
def test_other_marks_are_refused(marks: set[str], is_allowed: bool) -> None:
    of_file = FileMarks(frozenset({"spark"}), frozenset({"spark", "slow"}))
    assert of_file.allows(frozenset(marks)) is is_allowed


def test_a_file_that_is_left_out_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tools.marked_files import pytest_ignore_collect, pytest_itemcollected\n"
    )
    (tmp_path / "test_left_out.py").write_text("raise AssertionError")
    (tmp_path / "test_kept.py").write_text("import pytest\n@pytest.mark.spark\ndef test_x(): ...")
    command = [sys.executable, "-m", "pytest", "-q", "-m", "spark", "-o", "markers=spark"]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", "/dev/null", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
