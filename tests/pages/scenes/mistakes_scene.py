"""What docs/mistakes.md supposes: a root in which each of its mistakes was made.

`orders` has wrong records at its end and `payments` in its middle; `clicks` lost records to
`delete-records`, `users` a commit, and a segment of `visits` is damaged. A stream copies `views`,
and records that it has not read were deleted.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.cli import main
from tests.pages.page_scene import Scene, default_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the default scene, three more topics, and the mistakes."""
    scene = default_scene(folder, spark)
    root = folder / "data/klog"
    log = klog.open(root)
    wrong, later = pa.table({"value": ["wrong"] * 3}), pa.table({"value": ["later"] * 5})
    for topic in ("clicks", "users", "visits"):
        log.create_topic(topic)
        log.append(topic, pa.table({"value": [str(number) for number in range(10)]}))
    log.append("orders", wrong)
    log.append("payments", wrong)
    log.append("payments", later)
    log.append("users", later)
    (root / "_klog/topics/users/log/00000000000000000001.json").unlink()
    segment = next((root / "visits-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    _delete_unread_views(folder, spark, log)
    return scene


def _delete_unread_views(folder: Path, spark: SparkSession, log: klog.Log) -> None:
    """Copy two records of `views` by a stream, and delete the next three before it runs again."""
    root = str(folder / "data/klog")
    log.create_topic("views")
    log.append("views", pa.table({"value": [str(number) for number in range(2)]}))
    views = spark.readStream.format("klog").option("subscribe", "views")
    query = (
        views.option("startingOffsets", "earliest")
        .load(root)
        .select("key", "value")
        .writeStream.format("klog")
        .option("topic", "views-copy")
        .option("checkpointLocation", str(folder / "data/checkpoints/views"))
        .trigger(availableNow=True)
        .start(root)
    )
    query.awaitTermination()
    log.append("views", pa.table({"value": [str(number) for number in range(2, 10)]}))
    options = ("--topic", "views", "--partition", "0", "--offset", "5")
    assert main(["delete-records", "--root", root, *options]) == 0
    log.append("views", pa.table({"value": ["later"] * 5}))
