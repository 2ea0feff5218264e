"""What docs/from-delta.md supposes: a Delta table with a change data feed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene
from tests.pages.scenes import tables_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Create the table `/data/lake/users` with two rows."""
    table = f"delta.`{folder}/data/lake/users`"
    spark.sql(
        f"CREATE TABLE {table} (id INT, name STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'ada'), (2, 'bob')")
    return tables_scene.prepare(folder, spark)
