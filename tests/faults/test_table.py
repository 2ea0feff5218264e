"""The table of faults names tests that exist, and has each test of this folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tests.faults

HERE = Path(__file__).parent
NAMED = re.findall(r"(\S+\.py)::(\w+)", tests.faults.__doc__ or "")


def file_of(name: str) -> Path:
    return HERE.parent / name if "/" in name else HERE / name


def names_in(file: Path) -> list[str]:
    return re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("file", "test"), NAMED, ids=lambda value: value)
def test_the_table_names_existing_tests(file: str, test: str) -> None:
    assert any(name.startswith(test) for name in names_in(file_of(file)))


def test_each_test_of_a_fault_is_in_the_table() -> None:
    beginnings = [(file_of(file), test) for file, test in NAMED]
    for file in HERE.glob("test_*.py"):
        for name in names_in(file):
            if re.match(r"test_f\d\d_", name):
                assert any(file == known and name.startswith(test) for known, test in beginnings), (
                    name
                )


def test_faults_are_in_order() -> None:
    """A number that is missing here is in neither list by mistake."""
    numbers = [
        int(number) for number in re.findall(r"^    F(\d+)  ", tests.faults.__doc__ or "", re.M)
    ]
    last = 34
    first, second = numbers[: numbers.index(last) + 1], numbers[numbers.index(last) + 1 :]
    assert first == [1, 2, 3, 4, *range(6, 15), 16, 17, 18, 21, 24, 28, 29, 31, 32, 33, 34]
    assert second == [26]
