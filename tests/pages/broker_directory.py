"""A broker's log directory for the pages that read one: an export of the default scene's topics.

The rule: pages call it `/var/lib/kafka/data`. The folder of the test has another name, because a
page's run replaces each `/data/`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from klog.jobs import export_log
from tests.pages.page_scene import Scene, default_scene

LOG_DIR = "/var/lib/kafka/data"


def scene_with_broker(folder: Path, spark: SparkSession) -> Scene:
    """Make the default scene, and the log directory of a broker that has the same topics."""
    scene = default_scene(folder, spark)
    log_dir = log_dir_in(folder)
    export_log.run(None, str(scene.names["root"]), None, str(log_dir))
    return replace(scene, replacements={LOG_DIR: str(log_dir)})


def log_dir_in(folder: Path) -> Path:
    """Return the folder that is `/var/lib/kafka/data`."""
    return folder / "broker"
