"""The pages about Delta tables are true: their blocks run, and print what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pages.page_run import run_page

PAGES = ("tables.md", "from-delta.md")


@pytest.mark.delta
@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_run(name: str, tmp_path: Path, delta_spark: SparkSession) -> None:
    run_page(name, tmp_path, delta_spark)
