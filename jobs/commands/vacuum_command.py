"""The command `vacuum`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.jobs.shared.argument_values import duration_ms
from klog.jobs.shared.job_command import Command, Report, RunJob, is_executed
from klog.jobs.vacuuming.file_kind_names import TEMPORARY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace",
        type=duration_ms,
        metavar="TIME",
        help="the grace period: how long a read or a write may take, such as 90m or 7d; default: "
        "for removed segments the topic's klog.removed.file.retention.ms, which is 24h by default; "
        "for files of writers the same, but at least 24h",
    )
    parser.add_argument(
        "--log-retention",
        type=duration_ms,
        metavar="TIME",
        help="how long vacuum keeps commits, such as 30d; default: the topic's "
        "klog.commit.retention.ms, which is 30d by default",
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="if the last commits of a topic are lost, continue without them permanently",
    )
    parser.add_argument(
        "--execute", action="store_true", help="delete the files; default: only show them"
    )


def _load() -> RunJob:
    from klog.jobs.vacuum import run

    def run_job(spark: SparkSession | None, args: argparse.Namespace) -> Report:
        return run(
            spark,
            args.root,
            args.topic,
            grace_ms=args.grace,
            log_retention_ms=args.log_retention,
            dry_run=not is_executed(args),
            discard_lost=args.discard_lost,
        )

    return run_job


COMMAND = Command(
    "vacuum",
    "delete files that no reader or writer needs; a dry run by default",
    f"""\
Vacuum deletes these files of each topic, and of deleted topics:
  removed     segments that a commit removed from the topic, if the commit is older than the grace
              period and no lease of a reader protects them
  orphan      segments of failed or killed writers: the write began before the grace period and
              never committed
  {TEMPORARY}    temporary files of killed writers, if the write began before the grace period
  commits     commits older than --log-retention, up to the newest checkpoint that is also older.
              `klog history` no longer shows them, and earlier versions can no longer be read
              (asOfVersion)

A line with Waiting counts the files of removed segments whose grace period is not over. From is
when vacuum can delete the first of them, Until when it can delete the last. Until vacuum deletes
them, `klog restore` and `klog topics undelete` can restore their records.

Vacuum does not delete symbolic links below the root, or files that are reached through one; the
report lists them. Vacuum first deletes the files that it can delete without a commit, so that a
full disk has space for its commit.

If a file has a later version than the last commit, the last commits were lost. Then, without
--discard-lost, vacuum keeps these files and all segments that no commit names, and commits nothing.
The exit code is 1 as long as such a file exists.

A read or a write that takes longer than the grace period fails with an error. Acknowledged records
are never lost. See docs/jobs.md.""",
    _add_options,
    _load,
)
