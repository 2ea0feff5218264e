"""The command `verify`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.job_command import Command, Report, RunJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fast", action="store_true", help="read only the headers of batches, not the records"
    )


def _load() -> RunJob:
    from klog.jobs.verify import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(spark, args.root, args.topic, fast=args.fast, dry_run=args.dry_run)

    return run_job


COMMAND = Command(
    "verify",
    "compare a root's files with its commit logs",
    """\
Prints one line for each finding, with its place, its kind and what to do, and then the number of
findings. klog continues after a finding, and writes nothing. docs/verify.md describes the kinds. A
broker's directory has no commit log: check its segments and indexes with `klog dump`.""",
    _add_options,
    _load,
    dry_run_help="the same as without it: verify only reads",
)
