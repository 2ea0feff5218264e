"""What docs/files.md supposes: the default scene, and JSON lines to import."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

from tests.pages.page_scene import Scene, default_scene


def prepare(folder: Path, spark: SparkSession) -> Scene:
    """Write a file with three orders to `/data/drop`."""
    scene = default_scene(folder, spark)
    drop = folder / "data/drop"
    drop.mkdir()
    orders = [
        {"id": f"o-{number}", "created": f"2026-11-28T14:0{number}:00Z", "amount": 3.5}
        for number in range(3)
    ]
    (drop / "orders.jsonl").write_text("".join(f"{json.dumps(order)}\n" for order in orders))
    return scene
