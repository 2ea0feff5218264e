"""Files without a test that an expression selects are left out, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.marked_files import check_marks, read_file_marks

if TYPE_CHECKING:
    from pathlib import Path


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


def test_marks_of_helpers_count(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("pytest.param(1, marks=pytest.mark.slow)")
    path = tmp_path / "test_x.py"
    path.write_text("pytestmark = pytest.mark.spark")
    assert read_file_marks(path).can_match("spark and slow")


def test_another_mark_is_refused(request: pytest.FixtureRequest) -> None:
    request.node.add_marker("delta")
    with pytest.raises(pytest.UsageError, match=r"delta.*Write them there"):
        check_marks(request.node)
