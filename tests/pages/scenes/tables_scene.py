"""What docs/tables.md supposes: the default scene, and a `klog to-delta` that has Delta's jars."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene, default_scene
from tests.support.delta_jars import delta_jars

_SETTINGS = (
    "spark.master=local[2]",
    "spark.ui.enabled=false",
    "spark.sql.shuffle.partitions=2",
    "spark.databricks.delta.snapshotPartitions=2",
)
"""Spark's own are for tables of many files."""


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Take Delta's jars from this machine, not from Maven Central."""
    scene = default_scene(folder, spark)
    settings = (f"spark.jars={','.join(map(str, delta_jars()))}", *_SETTINGS)
    options = " ".join(f"--conf '{setting}'" for setting in settings)
    return Scene(scene.names, {f"klog {verb}": f"klog {verb} {options}" for verb in _VERBS})


_VERBS = ("to-delta", "from-delta")
