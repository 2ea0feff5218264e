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
    "expire old segments, by retention.ms and retention.bytes",
    """\
For topics whose cleanup.policy has delete. A commit raises the log start. `klog vacuum` deletes the
files after its grace period. docs/jobs.md says more.""",
    no_options,
    _load,
)
