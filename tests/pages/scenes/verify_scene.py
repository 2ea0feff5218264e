"""What docs/verify.md supposes: the default scene, and a copy of its root that lacks a file."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene, default_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the root, and the copy without the one segment of a partition."""
    scene = default_scene(folder, spark)
    damaged = folder / "data/damaged"
    shutil.copytree(folder / "data/klog", damaged)
    (segment,) = (damaged / "orders-0").glob("*.log")
    segment.unlink()
    return scene
