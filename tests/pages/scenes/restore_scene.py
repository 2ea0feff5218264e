"""What docs/restore.md supposes: version 2 of `orders` is an append with wrong records."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from tests.pages.page_scene import Scene, default_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the default scene, and append wrong records to `orders`."""
    scene = default_scene(folder, spark)
    klog.open(folder / "data/klog").append("orders", pa.table({"value": ["wrong"] * 3}))
    return scene
