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


def test_troubleshooting_has_a_first_step_for_each_condition() -> None:
    page = (PROJECT / "docs" / "troubleshooting.md").read_text()
    rows = re.findall(r"^\| \[`(KLOG_\w+)`\]\(errors\.md#(\w+)\) \| .+ \|$", page, re.MULTILINE)
    conditions = [error_class.condition for error_class in CLASSES]
    assert rows == [(condition, condition.lower()) for condition in conditions]


def test_each_page_that_code_names_exists() -> None:
    sources = [
        path
        for folder in ("connector", "jobs", "logformat", "src", "jvm/src/main")
        for path in (PROJECT / folder).rglob("*")
        if path.suffix in (".py", ".scala")
    ]
    named = {
        name for path in sources for name in re.findall(r"\bdocs/([\w./-]+\.md)", path.read_text())
    }
    assert named
    assert [name for name in sorted(named) if not (PROJECT / "docs" / name).is_file()] == []


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
