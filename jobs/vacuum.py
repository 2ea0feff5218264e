"""Delete files that no reader and no writer of a klog root needs any more: a task for each topic.

The rule: it is a dry run by default, which lists the files and writes and deletes nothing. If a
topic cannot be vacuumed, the report says so, and the job goes on with the other topics
(`vacuuming/vacuum_task.py`).
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("vacuum")

import argparse
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from klog.connector.commit_log import commit_expiration, orphan_files
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.jobs.shared.job_command import Command, is_executed
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.topic_selection import select_topic_names
from klog.jobs.vacuuming.vacuum_report import TEMPORARY, VacuumReport
from klog.jobs.vacuuming.vacuum_task import VacuumTask, vacuum_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(?P<number>[0-9]{1,12})(?P<unit>ms|s|m|h|d)")


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    grace_ms: int = orphan_files.READER_GRACE_MS,
    log_retention_ms: int = commit_expiration.LOG_RETENTION_MS,
    storage: StorageOptions = NO_STORAGE_OPTIONS,
    dry_run: bool = True,
    discard_lost: bool = False,
) -> VacuumReport:
    """Vacuum one topic, several, or all, deleted ones too.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The klog root.
        topic: A topic, several, or None for all.
        grace_ms: How long readers and writers may take.
        log_retention_ms: How long vacuum keeps commits for the history.
        storage: The options of the store.
        dry_run: Only list what would be deleted.
        discard_lost: If files show that the last commits of a topic were lost, go on without them.

    Raises:
        OptionError: The root has no commit logs, or a named topic never existed.
        CommitStateUnknownError: It is not known whether the store took a commit.
    """
    started = time.monotonic()
    klog_root = open_klog_root(root, storage)
    tasks = [
        VacuumTask(
            klog_root.location,
            storage,
            name,
            grace_ms,
            log_retention_ms,
            dry_run,
            topic is not None,
            discard_lost,
        )
        for name in select_topic_names(klog_root, topic)
    ]
    results = run_tasks(spark, vacuum_topic, tasks, "vacuum")
    topics = tuple(result for result in results if result is not None)
    return VacuumReport(klog_root.location, dry_run, grace_ms, topics, time.monotonic() - started)


def duration_ms(text: str) -> int:
    """Parse a duration such as `24h`, `90m`, `30s`, `500ms` or `7d`.

    Args:
        text: A number and a unit: `ms`, `s`, `m`, `h` or `d`.

    Raises:
        argparse.ArgumentTypeError: The text is not a duration.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a duration; examples: 24h, 90m, 30s, 500ms, 7d"
        )
    return int(match["number"]) * _UNITS_MS[match["unit"]]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grace",
        type=duration_ms,
        default=orphan_files.READER_GRACE_MS,
        metavar="TIME",
        help="the grace period, how long readers and writers may take: 24h (the default), 90m, 7d",
    )
    parser.add_argument(
        "--log-retention",
        type=duration_ms,
        default=commit_expiration.LOG_RETENTION_MS,
        metavar="TIME",
        help="how long vacuum keeps commits for the history: 30d (the default)",
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="if the last commits of a topic are lost, continue without them, permanently",
    )
    parser.add_argument("--execute", action="store_true", help="delete; default: only show")


def _run(spark: SparkSession | None, args: argparse.Namespace) -> VacuumReport:
    return run(
        spark,
        args.root,
        args.topic,
        grace_ms=args.grace,
        log_retention_ms=args.log_retention,
        dry_run=not is_executed(args),
        discard_lost=args.discard_lost,
    )


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
    _run,
)
