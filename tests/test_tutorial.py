"""The tutorial is true: its blocks run one after another, and print what it says they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.page_blocks import PYTHON, SHELL, blocks_of, link_project, run_blocks
from tests.support.project import PROJECT

BLOCKS = blocks_of((PROJECT / "docs" / "tutorial.md").read_text())


def test_there_is_something_to_run() -> None:
    assert {block.language for block in BLOCKS} == {PYTHON, SHELL}
    assert sum(block.prints is not None for block in BLOCKS) > len(BLOCKS) / 2


@pytest.mark.spark
def test_the_blocks_run_as_pasted(tmp_path: Path) -> None:
    link_project(tmp_path)
    run_blocks(tmp_path, BLOCKS)
