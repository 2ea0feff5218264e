"""A topic kept in order: merged, compacted and retained by Spark tasks, with the jobs' reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.jobs import compact, merge, retain

KEYS, BATCHES, ROWS = 100, 20, 1000
STATE, EVENTS = "state", "events"


def show(spark: SparkSession, folder: Path) -> None:
    """Write two topics in many small commits; merge and compact one, retain the other."""
    root = str(folder / "root")
    log = klog.open(root)
    log.create_topic(STATE, 2, {"cleanup.policy": "compact"})
    log.create_topic(EVENTS, 2, {"retention.bytes": "20000"})
    for batch in range(BATCHES):
        for topic in (STATE, EVENTS):
            log.append(topic, rows(batch))
    print_line(f"{BATCHES} commits of {ROWS} records to each topic, {KEYS} keys. Merged:")
    print_report(merge.run(spark, root, STATE).lines())
    print_line("Compacted, each key's last record stays:")
    print_report(compact.run(spark, root, STATE).lines())
    print_line(f"records in {STATE}: {len(log.scan(STATE).read_all())}")
    print_line("Retained, as retention.bytes=20000 says:")
    print_report(retain.run(spark, root, EVENTS).lines())


def rows(batch: int) -> pa.Table:
    """Return the records of a batch; its keys repeat."""
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    keys = [f"key-{number % KEYS}" for number in numbers]
    return pa.table({"key": keys, "value": [f"value {number}" for number in numbers]})


def print_report(lines: Iterator[str]) -> None:
    """Print the lines of a job's report, as its verb does."""
    for line in indented(lines):
        print_line(line)


def indented(lines: Iterator[str]) -> Iterator[str]:
    """Indent the lines of a report."""
    return (f"  {line}" for line in lines)


def print_line(text: str) -> None:
    """Print a line at once: Spark's output comes from another writer."""
    print(text, flush=True)
