"""The command `merge`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.job_command import Command, Report, RunJob, no_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _load() -> RunJob:
    from klog.jobs.merge import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(spark, args.root, args.topic, dry_run=args.dry_run)

    return run_job


COMMAND = Command(
    "merge",
    "join many small segments into few large ones",
    """\
Merge copies the bytes of the segments. Offsets, checksums and producers do not change. If a stream
commits every second, run a merge every few minutes, so that its partitions have few segments. See
docs/jobs.md.""",
    no_options,
    _load,
)
