"""The README is true: its blocks run as pasted, and print what it says they print.

A `text` block is the output of the block above it. Blocks run in their own folder, with links to
the repository's files. Tests do not run `make` commands, as `make` runs the tests; they check that
the tasks exist.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from klog.connector.options.option import Use
from klog.connector.options.option_table import OPTION_TABLE
from tests.support.project import PROJECT

README = (PROJECT / "README.md").read_text()
PYTHON, SHELL, TEXT = "python", "sh", "text"


class Block(NamedTuple):
    language: str
    code: str
    prints: str | None


def blocks() -> list[Block]:
    matches = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    following = [*matches[1:], ("", "")]
    return [
        Block(language, code, text if after == TEXT else None)
        for (language, code), (after, text) in zip(matches, following, strict=True)
        if language != TEXT
    ]


BLOCKS = blocks()
COMMANDS = [
    (line, block.prints)
    for block in BLOCKS
    if block.language == SHELL
    for line in block.code.splitlines()
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with links to the repository's files, and its own `build`."""
    for path in PROJECT.iterdir():
        if path.name != "build":
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_there_is_something_to_run() -> None:
    assert {block.language for block in BLOCKS} == {PYTHON, SHELL}
    assert {line.split()[0] for line, _ in COMMANDS} == {"make", "klog"}
    assert any(block.prints for block in BLOCKS)


def test_klog_commands_print_what_the_readme_says(folder: Path) -> None:
    """Run them in order: some need the files of earlier ones."""
    klog = str(Path(sys.executable).with_name("klog"))
    for line, prints in COMMANDS:
        if line.startswith("klog "):
            printed = run(folder, klog, *shlex.split(line)[1:])
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
    python = [block for block in BLOCKS if block.language == PYTHON]
    mark = "---- next block"
    script = f"\nprint({mark!r}, flush=True)\n".join(block.code for block in python)
    printed = run(folder, sys.executable, "-c", script).split(mark)
    assert len(printed) == len(python)
    for block, output in zip(python, printed, strict=True):
        assert output.strip()
        if block.prints is not None:
            assert block.prints.strip() in output


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
