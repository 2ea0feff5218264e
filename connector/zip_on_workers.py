"""klog as a zip that nobody installed: how the workers of a session find it.

The rule: the driver has klog from a zip on its `sys.path` (`--py-files`, docs/clusters.md). Spark
gives the zip to tasks, but not to the process that plans a stream, which sees `PYTHONPATH` only
(seen on 4.2.0). A driver sets that for the workers that its session starts. A Spark Connect client
cannot: it sends the zip as an artifact of its session, which Spark gives to batches alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def put_zip_on_workers(spark: SparkSession, archive: Path) -> None:
    """Let the workers of a session import klog from a zip.

    Args:
        spark: A classic session, or one of Spark Connect, whose server gets the zip.
        archive: The zip.
    """
    if not hasattr(spark, "_jsparkSession"):
        spark.addArtifacts(str(archive), pyfile=True)
        return
    environment = spark.sparkContext.environment
    modules_path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = f"{archive}:{modules_path}" if modules_path else str(archive)
