"""Merge small segments into large ones, as Spark tasks.

The rule: `merging/segments_to_merge.py` decides which segments are joined,
`merging/merge_topic.py` joins them. Bytes are copied, and a partition gets one commit.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("merge")

import time
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.jobs.merging.merge_report import MergedPartition, MergeReport
from klog.jobs.merging.merge_topic import TopicMerge
from klog.jobs.merging.segments_to_merge import plan_merges
from klog.jobs.shared.job_failures import FailedTopic
from klog.jobs.shared.topic_selection import select_topics
from klog.logformat.topic_config import parse_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = False,
) -> MergeReport:
    """Join small segments of one topic, several, or all into large ones.

    If a segment of a partition is damaged, or the store fails, the report says so and klog merges
    the other partitions.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all topics.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Whether to plan only. This reads topic states and no segment.

    Returns:
        A report with one entry for each partition, with segments before and after, the bytes that
        klog copied, and the reason if klog skipped the partition or failed.

    Raises:
        OptionError: The root has no commit logs, or a named topic does not exist.
        KlogError: The commit log of a named topic cannot be read.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    klog_root = open_klog_root(root, storage)
    partitions: list[MergedPartition] = []
    failed: list[FailedTopic] = []
    for log, state in select_topics(klog_root, topic, to_write=not dry_run, failed=failed):
        config = parse_topic_config(state.config)
        plans = list(plan_merges(log.paths.topic, state, config))
        if dry_run:
            partitions += [plan.report for plan in plans]
        else:
            partitions += TopicMerge(klog_root, log, config, storage).merge(spark, state, plans)
    seconds = time.monotonic() - started
    return MergeReport(klog_root.location, dry_run, tuple(partitions), seconds, tuple(failed))
