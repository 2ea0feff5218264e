"""Read and write with the JVM engine of an installed klog: `python -m tests.support.jvm_smoke`.

The argument is the master of a session with klog's jar (default: `local[1]`), or the `sc://` URL
of a server that has it.
"""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import redirect_stdout

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import klog


def session_at(address: str, warehouse: str) -> SparkSession:
    """Return a session of a Spark Connect server, or of a master."""
    builder: SparkSession.Builder = SparkSession.builder
    if address.startswith("sc://"):
        return builder.remote(address).getOrCreate()
    builder = builder.config("spark.executor.memory", "512m")
    builder = builder.config("spark.sql.warehouse.dir", warehouse)
    return klog.configure(builder).master(address).getOrCreate()


def engine_of(frame: DataFrame) -> str:
    """Return the engine that EXPLAIN names."""
    with redirect_stdout(io.StringIO()) as plan:
        frame.explain()
    return plan.getvalue().partition("engine=")[2].partition(",")[0]


def write_engine(session: SparkSession, root: str) -> str:
    """Write a batch in several tasks and a stream; return the engine of the stream's micro-batch.

    The batch names its engine, so it fails with another one.
    """
    klog.open(root).create_topic("w", 2)
    rows = session.range(0, 100, 1, 4).selectExpr("string(id) key", "string(id) value")
    writer = rows.write.format("klog").mode("append").options(topic="w", engine="jvm")
    writer.save(root)
    source = session.readStream.format("klog").option("subscribe", "w")
    query = (
        source.option("startingOffsets", "earliest").load(root)
        .selectExpr("key", "value").writeStream.format("klog").option("topic", "w")
        .option("checkpointLocation", f"{root}-state").trigger(availableNow=True).start(root)
    )  # fmt: skip
    query.awaitTermination()
    values = klog.open(root).scan("w").read_all()["value"].to_pylist()
    assert sorted(map(int, values)) == sorted([*range(100), *range(100)])
    (progress,) = query.recentProgress
    engine: str = progress["sink"]["metrics"]["engine"]
    return engine


def main(address: str = "local[1]") -> None:
    """Print Spark's version and the engine that has read and written; fail if rows are wrong."""
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/root"
        session = session_at(address, f"{folder}/warehouse")
        log = klog.open(root)
        log.create_topic("t")
        log.append("t", pa.table({"key": [b"k", None], "value": [b"v", b""]}))
        frame = session.read.format("klog").option("subscribe", "t").load(root)
        rows = [tuple(row) for row in frame.select("key", "value", "offset").collect()]
        assert rows == [(b"k", b"v", 0), (None, b"", 1)], rows
        assert frame.count() == 2
        stream = session.readStream.format("klog").option("subscribe", "t")
        query = (
            stream.option("startingOffsets", "earliest").load(root).writeStream.format("memory")
            .queryName("q").trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        assert session.table("q").count() == 2
        engines = [engine_of(frame), query.recentProgress[0]["sources"][0]["metrics"]["engine"]]
        session.sql(f"CREATE TABLE t USING klog OPTIONS (subscribe 't', topic 't', path '{root}')")
        session.sql("INSERT INTO t (value) VALUES (X'76')")
        assert session.table("t").count() == 3
        session.sql("DROP TABLE t")
        engines.append(write_engine(session, root))
    sys.stdout.write(f"{session.version} engine={'+'.join(sorted(set(engines)))}\n")
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
