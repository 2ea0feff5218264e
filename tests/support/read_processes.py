"""The Python processes of a read by Spark, one after the other without Spark.

The rule: Spark runs `schema()`, `partitions()` and `read()` each in a process of its own. Each step
imports first what PySpark's own process has imported by then, and calls `begin`; then it asks klog
what PySpark asks, hands it on, and calls `end`. Who runs the steps says what these two do.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STEPS = {
    "load": """
import pyspark.sql.worker.create_data_source
begin()
from klog.connector.datasource import KlogDataSource
source = KlogDataSource({"path": root, "subscribe": topic, "startingOffsets": "earliest"})
source.schema()
write("source", source)
end()
""",
    "plan": """
import pyspark.sql.worker.plan_data_source_read
from pyspark.sql.types import StructType
begin()
reader = read("source").reader(StructType([]))
partitions = reader.partitions()
write("reader", reader)
write("partitions", partitions)
end()
""",
    "task": """
import pyspark.worker
import pyspark.sql.worker.plan_data_source_read
begin()
reader = read("reader")
rows = sum(batch.num_rows for task in read("partitions") for batch in reader.read(task))
end()
assert rows == records, rows
""",
}
PICKLE_A_STREAM = "pickle a stream"
OF_A_STREAM = {
    PICKLE_A_STREAM: """
import pyspark.sql.worker.plan_data_source_read
from pyspark.sql.types import StructType
begin()
from klog.connector.datasource import KlogDataSource
source = KlogDataSource({"path": root, "subscribe": topic, "startingOffsets": "earliest"})
write("stream", source.streamReader(StructType([])))
end()
""",
}
"""What Spark does for a stream apart from a read: it pickles the reader, for its tasks."""

_PRELUDE = """
import pickle, sys
from pathlib import Path

root, topic, records, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])

def write(name, value):
    from pyspark import cloudpickle
    (folder / name).write_bytes(cloudpickle.dumps(value))

def read(name):
    return pickle.loads((folder / name).read_bytes())
"""


def run_step(
    step: str, begin_and_end: str, root: Path, topic: str, records: int, folder: Path
) -> str:
    """Run a step in a process of its own, and return what `begin` and `end` have printed.

    Args:
        step: One of `STEPS`, which run in this order, or of `OF_A_STREAM`.
        begin_and_end: Python code that defines the functions `begin` and `end`.
        root: The root of the topic.
        topic: The topic.
        records: How many records the topic has.
        folder: What a step hands to the next one is here.
    """
    code = f"{_PRELUDE}{begin_and_end}{(STEPS | OF_A_STREAM)[step]}"
    command = [sys.executable, "-c", code, str(root), topic, str(records), str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
