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
Stop the broker first. klog does not copy or change the files of the broker. Until something writes
to a topic, all new files are in the directory _klog/. A broker starts in this directory again only
after you move _klog/ away. See docs/adopt.md.""",
    add_adopt_options,
    _load,
    root_help="the broker's log directory: a path or a URL",
)
