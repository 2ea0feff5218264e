"""The README is short and true: its blocks run as pasted, and print what it says they print.

`page_blocks.py` says how blocks run. Tests do not run `make` commands, as `make` runs the tests;
they check that the tasks exist.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.page_blocks import PYTHON, SHELL, blocks_of, link_project, run_blocks
from tests.support.project import PROJECT
from tests.support.waiting import TIMEOUT_SECONDS

README = (PROJECT / "README.md").read_text()
BLOCKS = blocks_of(README)
MAX_LINES = 149
"""What does not fit has its place in docs/."""
MAKE_LINES = [
    line
    for block in BLOCKS
    if block.language == SHELL
    for line in block.code.splitlines()
    if line.startswith("make ")
]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MAX_LINES


def test_there_is_something_to_run() -> None:
    assert {block.language for block in BLOCKS} == {PYTHON, SHELL}
    assert MAKE_LINES == ["make demo", "make test"]
    assert sum(block.prints is not None for block in BLOCKS) >= 2


@pytest.mark.parametrize("line", MAKE_LINES)
def test_make_commands_are_tasks(line: str) -> None:
    listed = subprocess.run(
        ["make", "help"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    assert " ".join(line.split()[:2]) in {
        " ".join(task.split()[:2]) for task in listed.stdout.splitlines()
    }


@pytest.mark.spark
def test_blocks_run_as_pasted(tmp_path: Path) -> None:
    """Run them in one session: a command reads what the Python blocks before it have written."""
    link_project(tmp_path)
    run_blocks(tmp_path, [block for block in BLOCKS if not block.code.startswith("make ")])


def test_every_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(targets) > 20
    for target in targets:
        assert target.startswith("http") or (PROJECT / target).exists(), target
