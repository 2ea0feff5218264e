"""A driver program: a Spark session that runs jobs, and writes their events to a file.

    python -m tests.spark_faults.job_driver PLAN.json EVENTS.jsonl

The rule: it needs only PySpark and klog, so that it runs in any environment, and no hook of the
tests reaches into it. Each job is a stream or a batch from the numbered rows of a folder to a topic
of its own; a line of JSON reports that it is done or has failed. A job begins after the previous
one has ended or waits at a fault of its name, so that Spark reuses its workers: each new one takes
seconds to import.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

COLUMNS = "number bigint, key string"
FILES_PER_BATCH = 2
OTHER = "-other"
"""After the job's name: the second topic of a job that writes to two."""
DEAD = "-dead"
MAX_CHARACTERS = 4000
POLL_SECONDS = 0.05
WRONG = 9
"""Rows whose number ends in this digit have a partition that does not exist."""


@dataclass(frozen=True, slots=True)
class Job:
    """A write of the rows in `source` to the topic `name` of a root, with up to `tries` tries.

    `kind`: `stream`; `foreach`, a stream that writes each micro-batch as a batch; `two`, a stream
    to two topics by the column; `dead`, a stream with dead letters; `batch`; and `batch two`.
    """

    name: str
    kind: str
    root: str
    source: str
    checkpoint: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    tries: int = 1
    version: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Jobs and the session that runs them; `remote` is a Spark Connect address."""

    jobs: list[Job]
    master: str = "local[5,3]"
    remote: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    register: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main(plan_file: str, events_file: str) -> None:
    fields = json.loads(Path(plan_file).read_text())
    jobs = [Job(**job) for job in fields.pop("jobs")]
    plan = Plan(jobs, **fields)
    lock = threading.Lock()

    def write_event(job: str, event: str, error: str = "") -> None:
        with lock, Path(events_file).open("a") as events:
            events.write(json.dumps({"job": job, "event": event, "error": error}) + "\n")

    spark = _session(plan)
    write_event("", "started")
    threads = []
    for job in jobs:
        threads.append(threading.Thread(target=_do, args=(spark, job, write_event)))
        threads[-1].start()
        while threads[-1].is_alive() and not _is_parked(job):
            time.sleep(POLL_SECONDS)
    for thread in threads:
        thread.join()
    write_event("", "ended")
    spark.stop()


def _is_parked(job: Job) -> bool:
    """Whether the job waits at the fault of its name, if there is one."""
    fault = Path(os.environ["KLOG_FAULTS"], f"{job.name}.json")
    if not fault.with_suffix(".fired").exists():
        return False
    return bool(json.loads(fault.read_text())["act"] == "park")


def _session(plan: Plan) -> SparkSession:
    builder = SparkSession.builder
    builder = builder.remote(plan.remote) if plan.remote else builder.master(plan.master)
    usual = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
        **plan.conf,
    }
    for name, value in usual.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if plan.register:
        import klog

        klog.register(spark)
    return spark


def _do(spark: SparkSession, job: Job, write_event: Callable[..., None]) -> None:
    # This makes the session the thread's active one: otherwise Spark finds no Python format.
    spark.createDataFrame([(0,)], "nothing int")
    for _ in range(job.tries):
        try:
            if job.kind.startswith("batch"):
                _batch(spark, job)
            else:
                _stream(spark, job)
        except Exception as exc:  # noqa: BLE001 - the test judges it
            lines = str(exc).splitlines()
            error = "\n".join(line for line in lines if not line.startswith("\tat "))
            write_event(job.name, "failed", error[:MAX_CHARACTERS])
        else:
            write_event(job.name, "done")
            return


def _batch(spark: SparkSession, job: Job) -> None:
    rows = spark.read.schema(COLUMNS).csv(job.source)
    # The rows of a key go to one of two tasks, in order: Spark reads files in order of size.
    rows = rows.repartition(2, "key").sortWithinPartitions("number")
    frame = _shaped(rows, job)
    _options(frame.write.format("klog").mode("append"), job, job.version).save(job.root)


def _stream(spark: SparkSession, job: Job) -> None:
    source = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", FILES_PER_BATCH)
    rows = source.csv(job.source)
    if job.kind == "foreach":

        def write(frame: DataFrame, batch: int) -> None:
            writing = _shaped(frame, job).write.format("klog").mode("append")
            _options(writing, job, batch).save(job.root)

        writer = rows.writeStream.foreachBatch(write)
    else:
        writer = _options(_shaped(rows, job).writeStream.format("klog"), job, None)
        writer = writer.option("path", job.root)
    writer = writer.option("checkpointLocation", job.checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def _shaped(rows: DataFrame, job: Job) -> DataFrame:
    columns = ["key", "cast(number as string) value"]
    if job.kind in ("two", "batch two"):
        # All rows of a key go to one topic.
        columns.append(f"concat('{job.name}', if(ascii(key) = 97, '', '{OTHER}')) topic")
    if job.kind == "dead":
        columns.append(f"if(number % 10 = {WRONG}, 99, null) partition")
    return rows.selectExpr(*columns)


def _options(writer: Any, job: Job, version: int | None) -> Any:
    options = {"numPartitions": "2", **job.options}
    if job.kind in ("two", "batch two"):
        options["engine"] = "python"  # Rows that name their topics are Python's.
    else:
        options["topic"] = job.name
    if job.kind == "dead":
        options["deadLetterTopic"] = f"{job.name}{DEAD}"
    if version is not None and job.options.get("transactionalId") != "":
        options = {"transactionalId": job.name, "transactionVersion": str(version), **options}
    return writer.options(**{name: value for name, value in options.items() if value})


if __name__ == "__main__":
    main(*sys.argv[1:])
