"""Delete files that no reader and no writer of a klog root needs any more: a task for each topic.

The rule: it is a dry run by default, which lists the files and writes and deletes nothing. If a
topic cannot be vacuumed, the report says so, and the job goes on with the other topics
(`vacuuming/vacuum_task.py`).
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("vacuum")

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.commit_log.vacuum_times import WRITER_GRACE_MS
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.jobs.shared.job_tasks import run_tasks
from klog.jobs.shared.topic_selection import select_topic_names
from klog.jobs.vacuuming.vacuum_report import VacuumReport
from klog.jobs.vacuuming.vacuum_task import VacuumTask, vacuum_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    grace_ms: int | None = None,
    log_retention_ms: int | None = None,
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = True,
    discard_lost: bool = False,
) -> VacuumReport:
    """Delete files that no reader and no writer of one topic, several, or all needs any more.

    It works on deleted topics too. If a topic has an error, the report says so and klog vacuums the
    other topics.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all topics.
        grace_ms: The grace period in ms: how long readers and writers may take. With None, the
            topic's config `klog.removed.file.retention.ms` is the grace period of readers. That of
            writers is a day, or the grace period of readers if it is longer.
        log_retention_ms: How long vacuum keeps commits, in ms; None for what the topic's config
            `klog.commit.retention.ms` says.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Whether to only list what would be deleted. This is the default.
        discard_lost: Whether to go on without the last commits of a topic if files show that they
            were lost.

    Returns:
        A report with one entry for each topic, with the files that are deleted, those that wait for
        their grace period, and the error of a topic.

    Raises:
        OptionError: The root has no commit logs, or a named topic never existed.
        KlogError: A named topic cannot be vacuumed, and nothing of it was deleted.
        CommitStateUnknownError: klog does not know whether the store has a commit.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
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
    writer_grace_ms = WRITER_GRACE_MS if grace_ms is None else grace_ms
    seconds = time.monotonic() - started
    return VacuumReport(klog_root.location, dry_run, writer_grace_ms, topics, seconds)
