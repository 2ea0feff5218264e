"""The command `vacuum`: its options, and the job that they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from klog.connector.commit_log.vacuum_times import LOG_RETENTION_MS, READER_GRACE_MS
from klog.jobs.shared.argument_values import duration_ms
from klog.jobs.shared.job_command import Command, Report, RunJob, is_executed
from klog.jobs.vacuuming.file_kind_names import TEMPORARY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace",
        type=duration_ms,
        default=READER_GRACE_MS,
        metavar="TIME",
        help="the grace period, how long readers and writers may take: 24h (the default), 90m, 7d",
    )
    parser.add_argument(
        "--log-retention",
        type=duration_ms,
        default=LOG_RETENTION_MS,
        metavar="TIME",
        help="how long vacuum keeps commits for the history: 30d (the default)",
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="if the last commits of a topic are lost, continue without them, permanently",
    )
    parser.add_argument("--execute", action="store_true", help="delete; default: only show")


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
Vacuum deletes these files of each topic, deleted topics too:
  removed     segments that a commit removed from the topic longer ago than the grace period, and
              that no reader's lease protects
  orphan      segments of failed or killed writers: begun before the grace period and never
              committed
  {TEMPORARY}    temporary files of killed writers, as old as that
  commits     commits older than --log-retention, if a checkpoint contains them; `klog history` no
              longer shows them

Vacuum deletes no link below the root and no file that is reached through one; the report lists
them. It first deletes files that need no commit, so that a full disk has space for its commit.

If a file has a later version than the last commit, the last commits were lost. Then vacuum keeps
these files and all segments that no commit names, and commits nothing, unless --discard-lost is
given. The exit code is 1 as long as there is such a file.

A reader or writer that takes longer than the grace period fails with an error; acknowledged records
are never lost. docs/jobs.md says more.""",
    _add_options,
    _load,
)
