"""What docs/adopt.md supposes: a broker's log directory, and a copy of it, also in a zip file."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.broker_directory import log_dir_in, scene_with_broker
from tests.pages.page_scene import Scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the directory and its copies."""
    scene = scene_with_broker(folder, spark)
    shutil.copytree(log_dir_in(folder), folder / "backup/kafka")
    shutil.make_archive(str(folder / "backup/kafka"), "zip", folder / "backup", "kafka")
    replacements = {"/backup/": f"{folder}/backup/", "s3://bucket/klog": f"{folder}/imported"}
    return replace(scene, replacements={**scene.replacements, **replacements})
