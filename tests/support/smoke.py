"""The smallest proof that klog works where this runs: a broker's log dir, read through Spark.

The rule: this script needs only PySpark and klog, so the same proof serves the wheel, the zip for
--py-files, the next PySpark and the oldest supported versions. It compares every committed record
of one scene with the real consumer's account, in batch, and counts them as a stream. It also writes
batches and decodes them. It ends with an error, or with one line that says what ran and which klog.

    python -m tests.support.smoke              # Spark must discover klog by itself
    python -m tests.support.smoke --register   # for a zip, which Spark's discovery does not see
"""

from __future__ import annotations

import sys
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from klog.logformat.batches.batch_attributes import BatchAttributes
from klog.logformat.batches.decode_records import decode_records
from klog.logformat.batches.encode_batches import encode_batches
from klog.logformat.batches.records_to_write import Records
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.codecs.codec_names import CODEC_NAMES
from tests.corpus import LONGEST_VALUE_KEPT_BYTES, Digest, scene

SCENE = "records"
UNFIT = "time.unfit"
"""Spark cannot hold its timestamps; the unit tests cover them."""

# topic, partition, offset -> timestamp in ms, timestamp type, key, value
Seen: TypeAlias = dict[tuple[str, int, int], tuple[int, int, bytes | None, bytes | Digest | None]]


def main() -> None:
    """Read, compare, and print one line."""
    expected: Seen = {
        (record.topic, record.partition, record.offset): (
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value,
        )
        for record in scene(SCENE).records()
        if record.read_committed and record.topic != UNFIT
    }
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    try:
        if "--register" in sys.argv[1:]:
            import klog

            klog.register(spark)
        options = {
            "subscribe": ",".join(sorted({topic for topic, _, _ in expected})),
            "startingOffsets": "earliest",
        }
        root = ",".join(str(log_dir) for log_dir in scene(SCENE).log_dirs)
        seen = _batch(spark, root, options)
        if seen != expected:
            wrong = [at for at in {*expected, *seen} if expected.get(at) != seen.get(at)]
            raise SystemExit(f"smoke: {len(wrong)} records differ, the first at {min(wrong)}")
        streamed = _stream(spark, root, options)
        if streamed != len(expected):
            raise SystemExit(f"smoke: the stream has {streamed} records, not {len(expected)}")
    finally:
        spark.stop()
    _write()
    print(f"smoke: {len(seen)} records on PySpark {pyspark.__version__}, klog is {_klog()}")  # noqa: T201


def _write() -> None:
    """Write batches in every codec, and decode them to the same values."""
    values = [b"v" * size for size in range(0, 40_000, 97)]
    timestamps = [1_700_000_000_000 + size * size for size in range(len(values))]
    records = Records(
        pa.array(timestamps), pa.nulls(len(values), pa.binary()), pa.array(values, pa.binary())
    )
    for codec, name in enumerate(CODEC_NAMES):
        data = b"".join(encode_batches(records, BatchAttributes(batch_bytes=1 << 16, codec=codec)))
        columns = decode_records(
            data, scan_batches(data, 0, len(data)), ("offset", "timestamp_ms", "value")
        )
        if columns.value is None or columns.value.to_pylist() != values:
            raise SystemExit(f"smoke: values written with {name} are read as other values")
        if columns.timestamp_ms is None or columns.timestamp_ms.tolist() != timestamps:
            raise SystemExit(f"smoke: timestamps written with {name} are read as other timestamps")


def _batch(spark: SparkSession, root: str, options: dict[str, str]) -> Seen:
    rows = (
        spark.read.format("klog")
        .options(**options)
        .load(root)
        .selectExpr(
            "topic",
            "partition",
            "offset",
            "unix_millis(timestamp) ms",
            "timestampType",
            "key",
            "value",
        )
        .collect()
    )
    return {
        (row.topic, row.partition, row.offset): (
            row.ms,
            row.timestampType,
            _bytes(row.key),
            _short(_bytes(row.value)),
        )
        for row in rows
    }


def _stream(spark: SparkSession, root: str, options: dict[str, str]) -> int:
    with TemporaryDirectory(prefix="klog-smoke-") as checkpoint:
        query = (
            spark.readStream.format("klog")
            .options(**options)
            .load(root)
            .writeStream.format("memory")
            .queryName("smoke")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return spark.table("smoke").count()


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def _short(value: bytes | None) -> bytes | Digest | None:
    """Return what the corpus keeps of a value."""
    if value is None or len(value) <= LONGEST_VALUE_KEPT_BYTES:
        return value
    return Digest(sha256(value).hexdigest(), len(value))


def _klog() -> str:
    import klog

    return str(klog.__file__)


if __name__ == "__main__":
    main()
