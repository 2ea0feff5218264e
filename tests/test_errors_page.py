"""docs/errors.md describes the conditions of `klog.errors`, all of them and no other."""

from __future__ import annotations

import re

import pytest

from klog import errors
from klog.errors import KlogError, OutOfOrderSequenceError
from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "errors.md").read_text()
CLASSES = [
    error_class
    for error_class in vars(errors).values()
    if isinstance(error_class, type)
    and issubclass(error_class, KlogError)
    and error_class is not OutOfOrderSequenceError
]
"""In the order of the module; one of them is no longer raised."""
PARTS = ("**Meaning.** ", "**Causes.**", "**What to do.**", "```text\n")


def sections() -> dict[str, str]:
    """Return the text of each section that is about a condition."""
    parts = re.split(r"^## (KLOG_\w+)\n", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_conditions_differ() -> None:
    assert len({error_class.condition for error_class in CLASSES}) == len(CLASSES)


def test_the_table_has_each_class() -> None:
    rows = re.findall(r"^\| \[`(KLOG_\w+)`\]\(#(\w+)\) \| `(\w+)` \| (\w+) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (
            error_class.condition,
            error_class.condition.lower(),
            error_class.__name__,
            "yes" if error_class.is_retryable else "no",
        )
        for error_class in CLASSES
    ]


def test_each_condition_has_a_section() -> None:
    assert list(sections()) == [error_class.condition for error_class in CLASSES]


@pytest.mark.parametrize("condition", sections())
def test_a_section_says_what_it_means_and_what_to_do(condition: str) -> None:
    text = sections()[condition]
    places = [text.find(part) for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)


def test_the_class_that_is_no_longer_raised_is_named() -> None:
    assert f"`{OutOfOrderSequenceError.__name__}`" in PAGE
    assert f"`{OutOfOrderSequenceError.condition}`" in PAGE
