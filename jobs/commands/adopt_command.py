"""The command `adopt`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.broker_logs.adopt_options import add_adopt_options
from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _load() -> RunJob:
    from klog.jobs.adopt import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            config=dict(args.config),
            open_transactions=args.open_transactions,
            dry_run=args.dry_run,
        )

    return run_job


COMMAND = Command(
    "adopt",
    "turn a broker's log directory into a klog root, in place",
    """\
Stop the broker first. klog copies and changes no file of the broker: everything that it adds is in
_klog/ until a topic is written to. A broker does not start there again until _klog/ is moved away.
docs/adopt.md says more.""",
    add_adopt_options,
    _load,
    root_help="a broker's log directory",
)
