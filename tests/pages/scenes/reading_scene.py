"""What reading.md supposes: the default root, and two log directories of a broker."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from klog.jobs import export_log
from tests.pages.page_scene import Scene, default_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the default scene, with an export of each topic in place of a broker's directory."""
    scene = default_scene(folder, spark)
    for number, topic in enumerate(("orders", "payments"), start=1):
        directory = folder / f"data/kafka{number}"
        export_log.run(None, str(folder / "data/klog"), topic, str(directory))
    return scene
