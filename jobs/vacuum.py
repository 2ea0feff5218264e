"""Delete files that no reader and no writer of a klog root needs any more: a task for each topic.

The rule: it is a dry run by default, which writes and deletes nothing and lists what would go. If a
topic cannot be vacuumed, the report says so and the others are (`vacuuming/vacuum_task.py`).
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
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS, StorageOptions
from klog.jobs.shared.job_command import Command, is_executed
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.topic_selection import open_root, select_topic_names
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
        log_retention_ms: How long commits are kept for the history.
        storage: The options of the store.
        dry_run: Only list what would be deleted.
        discard_lost: If files show that the last commits of a topic were lost, go on without them.

    Raises:
        OptionError: The root has no commit logs, or a named topic never existed.
        CommitStateUnknownError: It is not known whether the store took a commit.
    """
    started = time.monotonic()
    klog_root = open_root(root, storage)
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
        help="how long readers and writers may take: 24h (the default), 90m, 7d",
    )
    parser.add_argument(
        "--log-retention",
        type=duration_ms,
        default=commit_expiration.LOG_RETENTION_MS,
        metavar="TIME",
        help="how long commits are kept for the history: 30d (the default)",
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="if the last commits of a topic were lost, go on without them for good",
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
    "delete files that nothing needs; a dry run by default",
    f"""\
What is deleted of each topic:
  removed     segments that retention, compaction or a deletion removed longer ago than the grace,
              and that no lease of a reader protects
  orphan      segments of a failed or killed writer: begun before the grace and never committed
  {TEMPORARY}    temporary files of killed writers, as old
  commits     older than the log's retention, if a checkpoint stands for them; they leave the
              history

Links below the root stay, and so do files that are reached through one; the report lists both.
Files that need no commit are deleted first, so a full disk gets room for the commit that the rest
needs.

If a file is of a later version than the last commit, commits were lost. Then vacuum keeps such
files and all that no commit names, and commits nothing, until --discard-lost is given. The exit
code is 1 as long as there is such a file.

A reader or writer that takes longer than the grace fails with an error that says so; acknowledged
records are never lost. Deleted topics are vacuumed too.""",
    _add_options,
    _run,
)
