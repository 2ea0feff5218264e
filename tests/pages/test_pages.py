"""Every code block of the site runs, and prints what its page says that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pages.page_run import DOCS, RUNNABLE, run_page
from tests.support.page_blocks import blocks_of
from tests.support.project import PROJECT

RUN_ELSEWHERE = {
    "tutorial.md": "tests/test_tutorial.py",
    "tutorial-tables.md": "tests/delta/test_tutorial_tables.py",
    "format.md": "tests/test_format_doc.py",
    "tables.md": "tests/delta/test_pages_of_tables.py",
    "from-delta.md": "tests/delta/test_pages_of_tables.py",
}
"""Pages whose blocks another test runs, as they need a process or a server of their own."""
BLOCKS = {path.name: blocks_of(path.read_text()) for path in sorted(DOCS.glob("*.md"))}
HERE = [name for name, blocks in BLOCKS.items() if blocks and name not in RUN_ELSEWHERE]


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_says_what_it_is(name: str) -> None:
    """A block that nobody runs is `text`: output, syntax, a plan."""
    languages = {block.language for block in BLOCKS[name]}
    assert languages <= (RUNNABLE if name in HERE else RUNNABLE | {"hex"})


@pytest.mark.parametrize("name", RUN_ELSEWHERE)
def test_pages_run_elsewhere_have_a_test_that_names_them(name: str) -> None:
    assert name in (PROJECT / RUN_ELSEWHERE[name]).read_text()


@pytest.mark.spark
@pytest.mark.parametrize("name", HERE)
def test_the_blocks_run(name: str, tmp_path: Path, spark: SparkSession) -> None:
    run_page(name, tmp_path, spark)
