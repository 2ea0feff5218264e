"""The tutorial of Delta tables is true: its blocks run, and print what it says they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.page_blocks import blocks_of, project_with_settings, run_blocks
from tests.support.project import PROJECT

BLOCKS = blocks_of((PROJECT / "docs" / "tutorial-tables.md").read_text())
SETTINGS = """\
spark.ui.enabled false
spark.sql.shuffle.partitions 2
spark.databricks.delta.snapshotPartitions 2
"""
"""Spark's own are for tables of many files."""


@pytest.mark.delta
@pytest.mark.full
def test_the_blocks_run_as_pasted(tmp_path: Path) -> None:
    """Delta comes from Maven Central, as for a reader."""
    folder, conf = project_with_settings(tmp_path, SETTINGS)
    run_blocks(folder, BLOCKS, SPARK_CONF_DIR=str(conf))
