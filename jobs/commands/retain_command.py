"""The command `retain`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.job_command import Command, Report, RunJob, no_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _load() -> RunJob:
    from klog.jobs.retain import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(spark, args.root, args.topic, dry_run=args.dry_run)

    return run_job


COMMAND = Command(
    "retain",
    "delete old records, by retention.ms and retention.bytes",
    """\
Applies to topics whose cleanup.policy contains delete. A commit raises the log start offset, so
that readers no longer get the records of old segments. `klog vacuum` deletes the files of these
segments after its grace period. See docs/jobs.md.""",
    no_options,
    _load,
)
