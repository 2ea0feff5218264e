"""Both engines write the same bytes for the same rows, and the same records in every codec."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import klog

pytestmark = pytest.mark.spark

FIRST_MS = 1_700_000_000_000
ROWS = 20_000
COLUMNS = ["partition", "offset", "key", "value", "headers", "timestamp", "timestampType"]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Return rows with all columns; keys, values, headers and times are null or empty at times."""
    return spark.range(0, ROWS, 1, 1).selectExpr(
        "if(id % 7 = 0, null, cast(id % 50 as string)) AS key",
        "if(id % 11 = 0, null, repeat(cast(id as string), cast(id % 20 as int))) AS value",
        "if(id % 5 = 0, null, array("
        "struct('a' AS key, cast(cast(id as string) as binary) AS value), "
        "struct('é' AS key, cast(null as binary) AS value))) AS headers",
        "if(id % 13 = 0, cast(id % 3 as int), null) AS partition",
        f"timestamp_millis({FIRST_MS} + id * 7 % 1000) AS timestamp",
    )


def write(rows: DataFrame, folder: Path, engine: str, **configs: str) -> dict[str, bytes]:
    """Write rows to a new topic; returns its files by partition, base offset and suffix."""
    root = folder / engine
    config = {"segment.bytes": "200000", "index.interval.bytes": "1024", **configs}
    klog.open(root).create_topic("t", 3, config=config)
    writer = rows.write.format("klog").mode("append").option("topic", "t").option("engine", engine)
    writer = writer.option("batch.size", "4096")
    writer.options(transactionalId="w", transactionVersion="1").save(str(root))
    return {
        f"{path.parent.name}/{path.name.partition('-')[0]}{path.suffix}": path.read_bytes()
        for path in root.glob("t-*/*")
    }


def test_plain_segments_are_the_same_bytes(rows: DataFrame, tmp_path: Path) -> None:
    python, jvm = (
        write(rows, tmp_path, engine, **{"compression.type": "uncompressed"})
        for engine in ("python", "jvm")
    )
    assert len(python) >= 12
    assert python.keys() == jvm.keys()
    assert python == jvm


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_segments_say_the_same(rows: DataFrame, tmp_path: Path, codec: str) -> None:
    tables = []
    for engine in ("python", "jvm"):
        write(rows, tmp_path, engine, **{"compression.type": codec})
        tables.append(klog.open(tmp_path / engine).scan("t", columns=COLUMNS).read_all())
    python, jvm = tables
    assert python.num_rows == ROWS
    assert jvm.equals(python)
