"""The pages about Delta tables are true: their blocks run, and print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pages.page_run import PageRun
from tests.pages.page_scene import scene_of
from tests.support.page_blocks import blocks_of, prints
from tests.support.project import PROJECT

PAGES = ("tables.md", "from-delta.md")


@pytest.mark.delta
@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_run(name: str, tmp_path: Path, delta_spark: SparkSession) -> None:
    page = PageRun(tmp_path, delta_spark, scene_of(name, tmp_path, delta_spark))
    for block in blocks_of((PROJECT / "docs" / name).read_text()):
        printed = page.run(block)
        if block.prints is not None:
            assert prints(printed, block.prints), (block.code, printed)
