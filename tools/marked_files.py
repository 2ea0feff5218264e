"""Collect only the test files that the expression of `-m` can select.

To import all files takes 25 s of CPU, and each step of a run (tools/run_suites.py) would do so.

The rule: a mark of a test is written in its file, in a helper in the same folder, or in a conftest
of a folder above; a mark of a whole file is the line `pytestmark = ...`. `check_marks` refuses a
test that has another mark. It sees each test, because the steps together select every file.
A file that is named on the command line is always collected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

_MARK = re.compile(r"\bmark\.(\w+)")
_FILE_MARKS = re.compile(r"^pytestmark = .*$", re.MULTILINE)
_TESTS = Path(__file__).resolve().parent.parent / "tests"


@dataclass(frozen=True, slots=True)
class FileMarks:
    """The marks that each test of a file has, and those that a test may have."""

    always: frozenset[str]
    possible: frozenset[str]

    def can_match(self, expression: str) -> bool:
        """Return whether a test of the file may match an expression of `-m`."""
        names = set(re.findall(r"\w+", expression)) - {"and", "or", "not"}
        undecided = names & (self.possible - self.always)
        return any(
            _is_match(expression, names, self.always.union(chosen))
            for chosen in _subsets(undecided)
        )


def read_file_marks(path: Path) -> FileMarks:
    """Return the marks of a test file."""
    text = path.read_text()
    always = frozenset(mark for line in _FILE_MARKS.findall(text) for mark in _MARK.findall(line))
    return FileMarks(always, always.union(_MARK.findall(text), _folder_marks(path.parent)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a test file that has no test to select."""
    if (
        config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        or not collection_path.name.startswith("test_")
        or collection_path.suffix != ".py"
    ):
        return None
    expression = config.getoption("markexpr")
    if not expression or read_file_marks(collection_path).can_match(expression):
        return None
    return True


def check_marks(item: pytest.Item) -> None:
    """Raise pytest.UsageError for a test whose marks are not those that its file may have."""
    marks = {mark.name for mark in item.iter_markers()}
    of_file = _cached_marks(item.path)
    if not (of_file.always <= marks <= of_file.possible):
        raise pytest.UsageError(
            f"{item.nodeid} has the marks {sorted(marks)}, and its file may have "
            f"{sorted(of_file.possible)} by the rule of tools/marked_files.py. Write them there"
        )


_cached_marks = cache(read_file_marks)


@cache
def _folder_marks(folder: Path) -> frozenset[str]:
    """Return the marks in helpers of this folder, and in the conftests of it and those above."""
    files = [path for path in folder.glob("*.py") if not path.name.startswith("test_")]
    files += [above / "conftest.py" for above in folder.parents if above.is_relative_to(_TESTS)]
    texts = (path.read_text() for path in files if path.exists())
    return frozenset(mark for text in texts for mark in _MARK.findall(text))


def _is_match(expression: str, names: Iterable[str], marks: frozenset[str]) -> bool:
    values = {name: name in marks for name in names}
    return bool(eval(expression, {"__builtins__": {}}, values))  # noqa: S307 - from a developer


def _subsets(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    ordered = sorted(names)
    return (chosen for count in range(len(ordered) + 1) for chosen in combinations(ordered, count))
