"""A driver of its own: a Spark session that runs klog's jobs, and writes down what they reported.

    python -m tests.spark_faults.upkeep_driver PLAN.json EVENTS.jsonl

The rule: it needs PySpark and klog alone, so that it runs in any environment. A step is a job's
`run` with what it is given; it is the name of a group of Spark's jobs, under which Spark's own log
of events has the tasks, but through Spark Connect, which has none. The same steps are done by `do`
without Spark.
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

MOST_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Step:
    """A job of klog's to be run: `job` is its module's name, `storage` has the words of options."""

    name: str
    job: str
    root: str
    given: Mapping[str, Any] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Steps, one after the other, and the session that they run in; `remote` as in `jobs.Plan`."""

    steps: list[Step]
    master: str = ""
    remote: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def do(spark: SparkSession | None, step: Step) -> dict[str, Any]:
    """Run a step; gives its report for machines."""
    from klog.connector.options.storage_options import parse_storage_options

    job = importlib.import_module(f"klog.jobs.{step.job}")
    report = job.run(spark, step.root, storage=parse_storage_options(step.storage), **step.given)
    found: dict[str, Any] = report.as_json()
    return found


def where(_: int) -> str:
    """Say where klog is imported from, in a task."""
    import klog

    return str(klog.__file__)


def main(plan_file: str, events_file: str) -> None:
    from pyspark.sql import SparkSession

    said = json.loads(Path(plan_file).read_text())
    plan = Upkeep([Step(**step) for step in said.pop("steps")], **said)

    def say(job: str, event: str, error: str = "", report: Mapping[str, Any] | None = None) -> None:
        told = {"job": job, "event": event, "error": error, "report": report}
        with Path(events_file).open("a") as events:
            events.write(json.dumps(told) + "\n")

    builder = SparkSession.builder
    builder = builder.remote(plan.remote) if plan.remote else builder.master(plan.master)
    for name, value in {"spark.ui.enabled": "false", **plan.conf}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    from klog.jobs.shared.job_tasks import run_tasks

    say("", "started", report={"klog": [where(0), *run_tasks(spark, where, range(4), "")]})
    for step in plan.steps:
        if not plan.remote:
            spark.sparkContext.setJobGroup(step.name, step.job)
        try:
            report = do(spark, step)
        except Exception as exc:  # noqa: BLE001 - the test judges it
            say(step.name, "failed", f"{type(exc).__name__}: {exc}"[:MOST_CHARACTERS])
        else:
            say(step.name, "done", report=report)
    spark.stop()
    say("", "ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
