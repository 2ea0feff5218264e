"""The tutorial is true: its blocks run one after another, and print what it says they print.

The rule: the blocks of a Python session run in one process. Step 4 starts a session of its own, as
Delta's jars must be there when Spark starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.delta_jars import delta_jars
from tests.support.page_blocks import (
    PYTHON,
    SHELL,
    Block,
    blocks_of,
    link_project,
    project_with_settings,
    run_blocks,
)
from tests.support.project import PROJECT

PAGE = (PROJECT / "docs" / "tutorial.md").read_text()
INTRODUCTION, *STEPS = (blocks_of(part) for part in re.split(r"^## (?=\d)", PAGE, flags=re.M))
READ, STREAM, COMPACT, COPY_TO_DELTA, UNDO = STEPS
FROM_MAVEN = '"spark.jars.packages", "io.delta:delta-spark_4.2_2.13:4.4.0"'
"""tests/delta/test_tutorial_tables.py downloads this package, as a reader does."""

SETTINGS = "spark.databricks.delta.snapshotPartitions 2\n"
"""Delta's own number, 50, is for tables of many files."""


def test_there_is_something_to_run() -> None:
    blocks = [block for step in STEPS for block in step]
    assert not INTRODUCTION
    assert {block.language for block in blocks} == {PYTHON, SHELL}
    assert sum(block.prints is not None for block in blocks) > len(blocks) / 2


@pytest.mark.spark
def test_the_steps_without_delta_run_as_pasted(tmp_path: Path) -> None:
    link_project(tmp_path)
    run_blocks(tmp_path, [*READ, *STREAM, *COMPACT, *UNDO])


@pytest.mark.delta
@pytest.mark.full  # CI runs the pages of tables (tests/delta/test_pages_of_tables.py).
def test_the_steps_with_delta_run(tmp_path: Path) -> None:
    """As pasted, but for the jars of Delta: they are those that tests have already."""
    folder, conf = project_with_settings(tmp_path, SETTINGS)
    run_blocks(folder, [*READ, *STREAM, *COMPACT])
    run_blocks(folder, _with_local_jars(COPY_TO_DELTA), SPARK_CONF_DIR=str(conf))
    run_blocks(folder, UNDO)


def _with_local_jars(blocks: Sequence[Block]) -> list[Block]:
    assert any(FROM_MAVEN in block.code for block in blocks)
    local = f'"spark.jars", "{",".join(map(str, delta_jars()))}"'
    return [block._replace(code=block.code.replace(FROM_MAVEN, local)) for block in blocks]
