"""Read a topic with the JVM engine of an installed klog: `python -m tests.support.jvm_smoke`."""

from __future__ import annotations

import sys
import tempfile

import pyarrow as pa
from pyspark.sql import SparkSession

import klog


def main() -> None:
    """Print the version of Spark and the engine that has read; fail if the rows are wrong."""
    builder = klog.configure(SparkSession.builder).master("local[1]")
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/root"
        session = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
        log = klog.open(root)
        log.create_topic("t")
        log.append("t", pa.table({"key": [b"k", None], "value": [b"v", b""]}))
        frame = session.read.format("klog").option("subscribe", "t").load(root)
        rows = [tuple(row) for row in frame.select("key", "value", "offset").collect()]
        assert rows == [(b"k", b"v", 0), (None, b"", 1)], rows
        assert session._jvm is not None
        plan = session._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")
        engine = plan.partition("engine=")[2].partition(",")[0]
        stream = session.readStream.format("klog").option("subscribe", "t")
        query = (
            stream.option("startingOffsets", "earliest").load(root).writeStream.format("memory")
            .queryName("q").trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        assert session.table("q").count() == 2
        session.sql(f"CREATE TABLE t USING klog OPTIONS (subscribe 't', topic 't', path '{root}')")
        session.sql("INSERT INTO t (value) VALUES (X'76')")
        assert session.table("t").count() == 3
    sys.stdout.write(f"{session.version} engine={engine}\n")
    session.stop()


if __name__ == "__main__":
    main()
