"""What docs/checkpoints.md supposes: a broker's log directory, and a query that has read a part.

The rule: the checkpoint has what that of Spark's Kafka source has. A query of klog writes it, and
klog's own keys are taken out of its offsets.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.jobs import export_log
from tests.pages.broker_directory import log_dir_in, scene_with_broker
from tests.pages.page_scene import Scene

LATER_RECORDS = 20


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the directory, run the query, and append records that it has not read."""
    scene = scene_with_broker(folder, spark)
    checkpoint, log_dir = folder / "checkpoints/orders", log_dir_in(folder)
    stream = spark.readStream.format("klog").option("subscribe", "orders")
    query = (
        stream.option("startingOffsets", "earliest").load(str(log_dir))
        .writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True).start(str(folder / "lake/orders"))
    )  # fmt: skip
    query.awaitTermination()
    make_kafkas(checkpoint)
    root = str(scene.names["root"])
    rows = pa.table({"key": ["k"] * LATER_RECORDS, "value": ["v"] * LATER_RECORDS})
    klog.open(root).append("orders", rows)
    shutil.rmtree(log_dir)
    export_log.run(None, root, None, str(log_dir))
    replacements = {name: f"{folder}{name}" for name in ("/checkpoints/", "/lake/")}
    return replace(scene, replacements={**scene.replacements, **replacements})


def make_kafkas(checkpoint: Path) -> None:
    """Take klog's keys out of the offsets of a checkpoint."""
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        *head, offsets = path.read_text().splitlines()
        topics = {key: value for key, value in json.loads(offsets).items() if key[0] != "#"}
        path.write_text("\n".join([*head, json.dumps(topics)]))
        (path.parent / f".{path.name}.crc").unlink()
