"""Delta's own clean-up of a table's log, which a test does not wait a month for."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

_DAY_SECONDS = 24 * 3600


def expire_commits(spark: SparkSession, table: str) -> None:
    """Make the commits of a table old, and make Delta delete them: each checkpoint cleans up.

    Two commits follow them, which change properties.
    """
    commits = sorted(Path(table, "_delta_log").glob("*.json"))
    for number, commit in enumerate(commits):
        os.utime(commit, (number * _DAY_SECONDS,) * 2)
    for name, text in {"delta.checkpointInterval": "1", "mine": "yes"}.items():
        spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('{name}' = '{text}')")
    assert not any(commit.exists() for commit in commits)
