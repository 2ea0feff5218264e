"""A driver program: a Spark session that runs klog's jobs, and writes their reports to a file.

    python -m tests.spark_faults.upkeep_driver PLAN.json EVENTS.jsonl

The rule: it needs only PySpark and klog, so that it runs in any environment. A step is a call of a
job's `run`. Its name is Spark's job group, by which Spark's event log has the tasks; Spark Connect
has no job groups. `run_step` runs the same steps without Spark.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Step:
    """A job to run: `job` is its module's name, `storage` has storage options."""

    name: str
    job: str
    root: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Steps in order, and the session that runs them; `remote` is as in `job_driver.Plan`."""

    steps: list[Step]
    master: str = ""
    remote: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def run_step(spark: SparkSession | None, step: Step) -> dict[str, Any]:
    """Run a step; return its report as JSON."""
    from klog.connector.options.storage_options import parse_storage_options

    job = importlib.import_module(f"klog.jobs.{step.job}")
    report = job.run(
        spark, step.root, storage=parse_storage_options(step.storage), **step.arguments
    )
    summary: dict[str, Any] = report.as_json()
    return summary


def klog_file(_: int) -> str:
    """Return the file of klog that a task imports."""
    import klog

    return str(klog.__file__)


def main(plan_file: str, events_file: str) -> None:
    from pyspark.sql import SparkSession

    fields = json.loads(Path(plan_file).read_text())
    plan = Upkeep([Step(**step) for step in fields.pop("steps")], **fields)

    def write_event(
        job: str, event: str, error: str = "", report: Mapping[str, Any] | None = None
    ) -> None:
        line = {"job": job, "event": event, "error": error, "report": report}
        with Path(events_file).open("a") as events:
            events.write(json.dumps(line) + "\n")

    builder = SparkSession.builder
    builder = builder.remote(plan.remote) if plan.remote else builder.master(plan.master)
    for name, value in {"spark.ui.enabled": "false", **plan.conf}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    from klog.jobs.shared.job_tasks import run_tasks

    write_event(
        "", "started", report={"klog": [klog_file(0), *run_tasks(spark, klog_file, range(4), "")]}
    )
    for step in plan.steps:
        if not plan.remote:
            spark.sparkContext.setJobGroup(step.name, step.job)
        try:
            report = run_step(spark, step)
        except Exception as exc:  # noqa: BLE001 - the test judges it
            write_event(step.name, "failed", f"{type(exc).__name__}: {exc}"[:MAX_CHARACTERS])
        else:
            write_event(step.name, "done", report=report)
    spark.stop()
    write_event("", "ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
