"""What docs/stores.md supposes: the default scene, whose root stands in place of one on S3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene, default_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the root."""
    return replace(default_scene(folder, spark), replacements={"s3://bucket/klog": "/data/klog"})
