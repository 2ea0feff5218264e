"""What docs/mistakes.md supposes: a root in which each of its mistakes was made.

`orders` has wrong records at its end and `payments` in its middle; `clicks` lost records to
`delete-records`, `users` a commit, and a segment of `visits` is damaged.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
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
    return scene
