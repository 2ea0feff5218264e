"""Collect only the test files that the expression of `-m` can select.

To import all files takes 20 to 25 s of CPU. A run (tools/run_suites.py) has eight steps with tests,
and without this each of them imports all files.

The rule: a mark of a test is written in its file, in a helper in the same folder, or in a conftest
there; a mark of a whole file is the line `pytestmark = ...`. A test with other marks is
refused. `make full` checks every file. No hook may add a mark that selects tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

_MARK = re.compile(r"\bmark\.(\w+)")
_FILE_MARKS = re.compile(r"^pytestmark = .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileMarks:
    """The marks that each test of a file has, and those that a test may have."""

    always: frozenset[str]
    possible: frozenset[str]

    def allows(self, marks: frozenset[str]) -> bool:
        """Return whether a test of the file may have exactly these marks."""
        return self.always <= marks <= self.possible

    def can_match(self, expression: str) -> bool:
        """Return whether a test of the file may match an expression of `-m`."""
        compiled = Expression.compile(expression)
        undecided = (self.possible - self.always).intersection(re.findall(r"\w+", expression))

        def matches(marks: frozenset[str]) -> bool:
            return compiled.evaluate(lambda name, /, **_: name in marks)

        return any(matches(self.always.union(chosen)) for chosen in _subsets(undecided))


@cache
def read_file_marks(path: Path) -> FileMarks:
    """Return the marks of a test file."""
    text = path.read_text()
    always = frozenset(mark for line in _FILE_MARKS.findall(text) for mark in _MARK.findall(line))
    return FileMarks(always, always.union(_MARK.findall(text), _helper_marks(path.parent)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a test file that has no test to select, unless the command line names it."""
    expression = config.getoption("markexpr")
    is_test_file = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    if not expression or not is_test_file:
        return None
    return None if read_file_marks(collection_path).can_match(expression) else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Raise pytest.UsageError for a test whose marks are not those that its file may have."""
    marks = frozenset(mark.name for mark in item.iter_markers())
    of_file = read_file_marks(item.path)
    if not of_file.allows(marks):
        raise pytest.UsageError(
            f"{item.nodeid} has the marks {sorted(marks)}. By the rule of tools/marked_files.py "
            f"each test of its file has {sorted(of_file.always)}, and may have "
            f"{sorted(of_file.possible)}. Write its marks there"
        )


@cache
def _helper_marks(folder: Path) -> frozenset[str]:
    """Return the marks in the files of a folder that are not tests."""
    helpers = (path for path in folder.glob("*.py") if not path.name.startswith("test_"))
    return frozenset(mark for path in helpers for mark in _MARK.findall(path.read_text()))


def _subsets(names: frozenset[str]) -> Iterator[tuple[str, ...]]:
    return (chosen for count in range(len(names) + 1) for chosen in combinations(names, count))
