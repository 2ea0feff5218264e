"""docs/renames.md maps old names to new ones: every new name on the page exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "renames.md").read_text(encoding="utf-8")

_NAME = re.compile(r"`(\w+)`(?: → `([\w.]+)`)?(?: \([^,`]*\))?")
_NOTE = re.compile(r" \([^)]*\)")


def tables() -> dict[str, list[list[str]]]:
    """Return the cells of each row of the page, by the heading above; "" is above the first."""
    heading = ""
    rows: dict[str, list[list[str]]] = {}
    for line in PAGE.splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| `"):
            cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
            rows.setdefault(heading, []).append(cells)
    return rows


def new_names(cell: str) -> list[str]:
    """Return the new name of each name in a cell."""
    matches = [(part, _NAME.fullmatch(part)) for part in cell.split(", ")]
    malformed = [part for part, match in matches if match is None]
    assert not malformed, f"neither `a` nor `a` → `b`: {malformed}"
    return [match[2] or match[1] for _, match in matches if match]


def module_names() -> list[tuple[str, str]]:
    """Return each pair of a module and a public name in it that the page has as new."""
    pairs = []
    for package, rows in tables().items():
        for _, now, names in rows if package else []:
            module = now.strip("`")
            if not module.startswith("klog."):
                module = f"{package}.{module}"
            pairs += [(module, name) for name in new_names(names)]
    return pairs


def report_names() -> list[tuple[str, str]]:
    """Return each pair of a class and an attribute that the first table has as new."""
    pairs = []
    for class_cell, names in tables()[""]:
        classes = re.findall(r"`(\w+)`", _NOTE.sub("", class_cell).rpartition("→")[2])
        pairs += [(name, attribute) for name in classes for attribute in new_names(names)]
    return pairs


def members(class_def: ast.ClassDef) -> set[str]:
    """Return the names of a class's methods and fields."""
    names = set()
    for node in class_def.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


@cache
def definitions(path: Path) -> dict[str, set[str]]:
    """Return what a module defines: the members of each class, no members for other names."""
    names: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names[node.name] = members(node)
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = set()
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            stored = [name for target in targets for name in ast.walk(target)]
            names |= {name.id: set() for name in stored if isinstance(name, ast.Name)}
    return names


def has_name(module: str, name: str) -> bool:
    """Return whether a module defines a name, or a class in it the member `Class.member`."""
    path = (PROJECT / "src" / module.replace(".", "/")).with_suffix(".py")
    if not path.is_file():
        return False
    defined = definitions(path)
    owner, _, member = name.partition(".")
    return owner in defined and (not member or member in defined[owner])


def test_new_names_are_in_the_modules_that_the_page_gives() -> None:
    pairs = module_names()

    assert len(pairs) > 500
    assert [f"{module}: {name}" for module, name in pairs if not has_name(module, name)] == []


def test_new_attributes_are_in_the_classes_that_the_page_gives() -> None:
    known: dict[str, set[str]] = {}
    for package in ("connector", "jobs"):
        for path in (PROJECT / package).rglob("*.py"):
            for name, names in definitions(path).items():
                known.setdefault(name, set()).update(names)

    pairs = report_names()

    assert len(pairs) > 20
    wrong = [pair for pair in pairs if pair[1] not in known.get(pair[0], ())]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("klog.connector.snapshot", "Snapshot", True),
        ("klog.connector.snapshot", "Look", False),
        ("klog.connector.no_module", "Snapshot", False),
        ("klog.connector.commit_log.klog_root", "KlogRoot.segment_path", True),
        ("klog.connector.commit_log.klog_root", "KlogRoot.no_method", False),
    ],
)
def test_wrong_names_are_found(module: str, name: str, expected: bool) -> None:
    assert has_name(module, name) is expected
