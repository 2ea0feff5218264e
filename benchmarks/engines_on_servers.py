"""Read a klog root on HDFS and on S3 with both engines, and Parquet of the same rows there.

    python -m benchmarks.engines_on_servers [--records N] [--rounds N] [--hadoop-aws FOLDER]

The rule: whole queries with their planning, warm, in turns. The servers run on this machine, and
their CPU counts. S3 is MinIO, which tools/minio.py builds without optimization. It is read only if
a folder has the jars of `hadoop-aws` and the SDK that it names, which are 700 MB.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import klog
from benchmarks import report
from benchmarks.compared import KLOG, compared
from benchmarks.engines import PARQUET, QUERIES
from benchmarks.logs import PARTITIONS
from benchmarks.records import as_table, records
from benchmarks.spark_write import Result, session_builder
from tests.support.minio_server import Minio
from tests.support.store_servers import BUCKET, Hdfs

VALUE_BYTES = 100
CODEC = "lz4"
"""The codec of the topic, and its name."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.engines_on_servers")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hadoop-aws", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="klog-benchmark-")))
        hdfs = stack.enter_context(Hdfs(work / "hdfs"))
        minio = stack.enter_context(Minio(work / "s3")) if options.hadoop_aws else None
        spark = _session(minio, options.hadoop_aws)
        stack.callback(spark.stop)
        results = list(_on(spark, "HDFS", hdfs.url, hdfs.url, {}, options))
        if minio is not None:
            urls = (f"s3://{BUCKET}/benchmark", f"s3a://{BUCKET}/benchmark")
            results += _on(spark, "S3", *urls, minio.options(), options)
    print(report.figures_table(results))


def _session(minio: Minio | None, jars: Path | None) -> SparkSession:
    builder = klog.configure(session_builder(*(jars.glob("*.jar") if jars else ())))
    if minio is not None:
        options = minio.options()
        builder = (
            builder.config("spark.hadoop.fs.s3a.endpoint", options["storage.endpoint"])
            .config("spark.hadoop.fs.s3a.access.key", options["storage.access_key_id"])
            .config("spark.hadoop.fs.s3a.secret.key", options["storage.secret_access_key"])
            .config("spark.hadoop.fs.s3a.path.style.access", "true")
        )
    return builder.getOrCreate()


def _on(
    spark: SparkSession,
    server: str,
    url: str,
    hadoop_url: str,
    storage: Mapping[str, str],
    options: argparse.Namespace,
) -> Iterator[Result]:
    """Compare on one server; klog and Hadoop spell its URL each in their way."""
    root, parquet = f"{url}/root", f"{hadoop_url}/parquet"
    log = klog.open(root, **{name.partition(".")[2]: text for name, text in storage.items()})
    log.create_topic(CODEC, PARTITIONS, {"compression.type": CODEC})
    for rows in records(options.records, VALUE_BYTES):
        log.append(CODEC, as_table(rows))
    reader = spark.read.format("klog").options(subscribe=CODEC, **storage)
    reader.load(root).write.option("compression", "snappy").parquet(parquet)
    frames: dict[str, Callable[[], DataFrame]] = {
        KLOG: lambda: reader.option("engine", "jvm").load(root),
        "engine python": lambda: reader.option("engine", "python").load(root),
        PARQUET: lambda: spark.read.parquet(parquet),
    }
    for query, action in QUERIES.items():
        actions = {name: _query(action, frame) for name, frame in frames.items()}
        of = f"{server}: {query}, {options.records:,} records of {VALUE_BYTES} B, {CODEC}"
        yield from compared(of, options.records, actions, options.rounds)


def _query(
    action: Callable[[DataFrame], object], frame: Callable[[], DataFrame]
) -> Callable[[], object]:
    return lambda: action(frame())


if __name__ == "__main__":
    main()
