"""The README is true: its blocks run as pasted, and print what it says they print.

`page_blocks.py` says how blocks run. Tests do not run `make` commands, as `make` runs the tests;
they check that the tasks exist.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from klog.connector.options.option import Use
from klog.connector.options.option_table import OPTION_TABLE
from tests.support.page_blocks import (
    PYTHON,
    SHELL,
    blocks_of,
    link_project,
    run_blocks,
    run_in,
)
from tests.support.project import PROJECT

README = (PROJECT / "README.md").read_text()
BLOCKS = blocks_of(README)
COMMANDS = [
    (line, block.prints)
    for block in BLOCKS
    if block.language == SHELL
    for line in block.code.splitlines()
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    link_project(tmp_path)
    return tmp_path


def test_there_is_something_to_run() -> None:
    assert {block.language for block in BLOCKS} == {PYTHON, SHELL}
    assert {line.split()[0] for line, _ in COMMANDS} == {"make", "klog"}
    assert any(block.prints for block in BLOCKS)


def test_klog_commands_print_what_the_readme_says(folder: Path) -> None:
    """Run them in order: some need the files of earlier ones."""
    klog = str(Path(sys.executable).with_name("klog"))
    for line, prints in COMMANDS:
        if line.startswith("klog "):
            printed = run_in(folder, klog, *shlex.split(line)[1:])
            assert printed == (printed if prints is None else prints), line


@pytest.mark.parametrize("line", [line for line, _ in COMMANDS if line.startswith("make ")])
def test_make_commands_are_tasks(line: str) -> None:
    listed = subprocess.run(
        ["make", "help"], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=True
    )
    assert " ".join(line.split()[:2]) in {
        " ".join(task.split()[:2]) for task in listed.stdout.splitlines()
    }


@pytest.mark.spark
def test_python_blocks_run_as_pasted(folder: Path) -> None:
    run_blocks(folder, [block for block in BLOCKS if block.language == PYTHON])


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (PROJECT / target).exists(), target


@pytest.mark.parametrize(("use", "kind"), [(Use.READ, "read"), (Use.WRITE, "write")])
def test_options_are_those_of_the_table(use: Use, kind: str) -> None:
    (row,) = [row for row in README.splitlines() if row.startswith(f"| options of a {kind} |")]
    names = {option.name for option in OPTION_TABLE if option.use is use and option.is_supported}
    without_row = {"path", "paths"}  # What load() and save() have.
    if use is Use.WRITE:
        without_row.add("includeHeaders")  # It has no effect.
    levels = {name for name in names if name.endswith(".level")}
    assert set(re.findall(r"`([\w.]+)`", row)) == names - without_row - levels
