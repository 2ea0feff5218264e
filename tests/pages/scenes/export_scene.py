"""What docs/export.md supposes: a topic of three partitions, and a broker that has created it.

The rule: here no broker runs. tests/kafka/test_exported.py runs the page's commands with one.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.logformat.broker_files.metadata_files import encode_partition_metadata
from tests.pages.page_scene import Scene

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
PARTITIONS = range(3)


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Make the topic, and the empty directories of a broker."""
    root = folder / "data/klog"
    log = klog.open(root)
    log.create_topic("orders", partitions=len(PARTITIONS))
    keys = [f"k{number % 10}" for number in range(100)]
    log.append("orders", pa.table({"key": keys, "value": ["v"] * 100}))
    for partition in PARTITIONS:
        directory = folder / f"broker/orders-{partition}"
        directory.mkdir(parents=True)
        (directory / "partition.metadata").write_bytes(encode_partition_metadata(TOPIC_ID))
    replacements = {
        "/tmp/": f"{folder}/",
        "kafka-topics.sh": "true",
        "$BROKER": "localhost:9092",
        "$LOG_DIR": f"{folder}/broker",
        "$ROOT": "/data/klog",
    }
    return Scene({"klog": klog, "root": str(root)}, replacements)
