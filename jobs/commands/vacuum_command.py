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
        help="the grace period, how long readers and writers may take, such as 90m or 7d (default: "
        "24h, and for readers the topic's klog.removed.file.retention.ms)",
    )
    parser.add_argument(
        "--log-retention",
        type=duration_ms,
        metavar="TIME",
        help="how long vacuum keeps commits (default: the topic's klog.commit.retention.ms, 30d)",
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
  commits     commits older than --log-retention, up to the newest checkpoint that is as old;
              `klog history` no longer shows them, and no version before it can be read
              (asOfVersion)

A line with Waiting has the files of removed segments that stay for readers until their grace
period is over: when the first of them may be deleted (From), and the last (Until). `klog restore`
and `klog topics undelete` can bring back what they belong to until then.

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
