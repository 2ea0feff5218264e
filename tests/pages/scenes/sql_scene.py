"""What sql.md supposes: the default root, which is also the root on S3."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene, default_scene

_OPTIONS = ', endpoint="https://minio:9000", access_key_id=key, secret_access_key=secret'


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the default scene; functions of other tests in the session get no options of a store."""
    scene = default_scene(folder, spark)
    for name in ("fresh_orders", "orders", "recent"):
        spark.sql(f"DROP VIEW IF EXISTS {name}")
    for name in ("logs", "order_log"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    return Scene(scene.names, {"s3://bucket/klog": "/data/klog", _OPTIONS: ""})
