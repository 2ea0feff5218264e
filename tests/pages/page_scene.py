"""What a page of docs/ supposes: by default a root with two topics, and rows to write.

The rule: a page that supposes more has a module in `scenes/`, named after it with `_` for `-`. Its
`prepare` makes the scene.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog

RECORDS = 100
"""So many records each topic of the default scene has."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a page supposes.

    Attributes:
        names: Variables that its Python blocks have.
        replacements: Texts of its blocks, and what stands in their place.
    """

    names: Mapping[str, object]
    replacements: Mapping[str, str] = field(default_factory=dict)


def default_scene(folder: Path, spark: SparkSession) -> Scene:
    """Make the root `/data/klog` with the topics `orders` and `payments`."""
    root = folder / "data/klog"
    log = klog.open(root)
    for topic in ("orders", "payments"):
        log.create_topic(topic, partitions=2)
        keys = [f"k{number % 10}" for number in range(RECORDS)]
        values = [f'{{"id": {number}, "amount": {number}.5}}' for number in range(RECORDS)]
        log.append(topic, pa.table({"key": keys, "value": values}))
    rows = spark.createDataFrame([("k1", "v1"), ("k2", "v2")], "key string, value string")
    return Scene({"klog": klog, "root": str(root), "df": rows})


def scene_of(page: str, folder: Path, spark: SparkSession) -> Scene:
    """Make the scene of a page, such as `values.md`."""
    module = f"tests.pages.scenes.{page.removesuffix('.md').replace('-', '_')}_scene"
    if find_spec(module) is None:
        return default_scene(folder, spark)
    scene: Scene = import_module(module).prepare(folder, spark)
    return scene
