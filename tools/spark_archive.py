"""Archive the classes that Spark loads, so that the JVMs of tests start in half the time.

The rule: the file is complete or absent, and nothing needs it. A JVM that gets `jvm_options()` maps
the classes from the file. Without it, each JVM reads, checks and links thousands of them from jars.
A JVM without the file, with another Java or another class path goes on without a word. The classes
are those of a session that reads, writes, joins and streams a few rows.

    python -m tools.spark_archive        # writes .venv/spark-classes.jsa, if it is not there
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).parents[1] / ".venv" / "spark-classes.jsa"
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
_RUN_A_SESSION = "--run-a-session"


class ArchiveError(Exception):
    """The JVM wrote no archive; the message has what it said."""


def jvm_options(archive: Path = ARCHIVE) -> str:
    """Return the options of a JVM that runs Spark, for `SPARK_SUBMIT_OPTS`."""
    return f'"-XX:SharedArchiveFile={archive}" {_QUIET}'


def write_archive(archive: Path = ARCHIVE) -> None:
    """Write the archive if it is not there. Raises ArchiveError if the JVM writes none."""
    if archive.exists():
        return
    with tempfile.TemporaryDirectory(prefix="spark-classes.", dir=archive.parent) as folder:
        written = Path(folder, archive.name)
        options = f'"-XX:ArchiveClassesAtExit={written}" -XX:TieredStopAtLevel=1 {_QUIET}'
        # The output ends when the JVM does, which writes the file after Python has ended.
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "tools.spark_archive", _RUN_A_SESSION],
            env={**os.environ, "SPARK_SUBMIT_OPTS": options, "SPARK_LOCAL_DIRS": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode or not written.exists():
            raise ArchiveError(f"no archive of Spark's classes:\n{done.stdout}")
        written.rename(archive)


def run_a_session() -> None:
    """Do with a few rows what tests do, so that Spark loads its classes."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    with tempfile.TemporaryDirectory() as folder, builder.getOrCreate() as spark:
        rows = spark.range(9).selectExpr("id % 3 key", "cast(id as string) value", "now() time")
        for name in ("parquet", "json", "csv"):
            rows.write.format(name).save(f"{folder}/{name}")
        rows.createOrReplaceTempView("rows")
        read = spark.read.parquet(f"{folder}/parquet").join(rows, "key").groupBy("key").count()
        read.orderBy("key").collect()
        rows.mapInArrow(lambda batches: batches, rows.schema).collect()
        spark.sql("SELECT key, max(value) value FROM rows WHERE key > 0 GROUP BY key").collect()
        stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/parquet").writeStream
        stream = stream.foreachBatch(lambda batch, _: batch.show()).trigger(availableNow=True)
        stream.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()


if __name__ == "__main__":
    if sys.argv[1:] == [_RUN_A_SESSION]:
        run_a_session()
    else:
        write_archive()
