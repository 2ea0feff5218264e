"""A topic kept in order: merged, compacted and retained by Spark tasks, with the jobs' reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import klog
from klog.jobs import compact, merge, retain
from klog.jobs.shared.job_command import Report

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
    tell(f"{BATCHES} commits of {ROWS} records to each topic, {KEYS} keys. Merged:")
    tell_report(merge.run(spark, root, STATE))
    tell("Compacted, each key's last record stays:")
    tell_report(compact.run(spark, root, STATE))
    tell(f"records in {STATE}: {len(log.scan(STATE).read_all())}")
    tell("Retained, as retention.bytes=20000 says:")
    tell_report(retain.run(spark, root, EVENTS))


def rows(batch: int) -> pa.Table:
    """Make records of a batch, whose keys come again and again."""
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    keys = [f"key-{number % KEYS}" for number in numbers]
    return pa.table({"key": keys, "value": [f"value {number}" for number in numbers]})


def tell_report(report: Report) -> None:
    """Print a job's report, as its verb does."""
    for line in indented(report.lines()):
        tell(line)


def indented(lines: Iterator[str]) -> Iterator[str]:
    """Set lines apart from what is said about them."""
    return (f"  {line}" for line in lines)


def tell(text: str) -> None:
    """Print a line at once: what Spark says comes from another writer."""
    print(text, flush=True)
