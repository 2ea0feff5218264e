"""The command `verify`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fast", action="store_true", help="read headers only, no records")


def _load() -> RunJob:
    from klog.jobs.verify import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(spark, args.root, args.topic, fast=args.fast, dry_run=args.dry_run)

    return run_job


COMMAND = Command(
    "verify",
    "compare a root's files with its commit logs",
    """\
Each finding is a line with its place, its kind and what to do; the last line counts them. No
finding ends the run, and nothing is written. docs/verify.md describes the kinds. A broker's
directory has no commit log: `klog dump` checks its segments and indexes.""",
    _add_options,
    _load,
    dry_run_help="the same as without it: verify only reads",
)
