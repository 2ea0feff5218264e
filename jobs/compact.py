"""Compact topics as Spark tasks: keep each key's last record, as Kafka's log cleaner does.

The rule: keys never leave their partition. A task cleans a partition in one pass, or marks which of
its records stay (`compacting/first_pass.py`); other tasks rewrite the marked segments
(`compacting/rewrite_segments.py`). One commit replaces the segments of a partition, and only if all
of them are still in the topic, so a concurrent commit wins and a killed run changes nothing.

`compacting/partitions_to_clean.py` and `compacting/dirty_ratio.py` decide what is cleaned and when,
`logformat/cleaning/` which records stay.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("compact")

import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.connector.system_clock import now_ms
from klog.errors import OptionError
from klog.jobs.compacting.compact_report import CompactedPartition, CompactReport
from klog.jobs.compacting.compact_topic import TopicCompaction
from klog.jobs.compacting.partitions_to_clean import plan_cleanings
from klog.jobs.shared.job_failures import FailedTopic
from klog.jobs.shared.task_memory import MAP_BYTES
from klog.jobs.shared.topic_selection import select_topics
from klog.logformat.cleaning.offset_map import MIN_MAP_BYTES
from klog.logformat.topic_config import parse_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None = None,
    *,
    min_dirty_ratio: float | None = None,
    map_bytes: int = MAP_BYTES,
    storage: Mapping[str, object] | StorageOptions | None = None,
    dry_run: bool = False,
    clock_ms: Callable[[], int] = now_ms,
) -> CompactReport:
    """Keep the last record of each key in one topic, several, or all compacted topics.

    Compacted topics are those whose `cleanup.policy` has `compact`. If a segment of a partition is
    damaged, or the store fails, the report says so and klog compacts the other partitions.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all compacted topics.
        min_dirty_ratio: A ratio from 0 to 1 that replaces the topic's `min.cleanable.dirty.ratio`;
            0 cleans every dirty partition. None for the topic's config.
        map_bytes: The memory of a task's map of keys, in bytes. If a partition has more keys than
            fit into it, further tasks mark them, each with as much memory.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Whether to plan only. This reads topic states and no segment.
        clock_ms: A function that returns the time, in ms since the epoch.

    Returns:
        A report with one entry for each partition, with offsets, segments, records and bytes, and
        the reason if klog skipped it or failed.

    Raises:
        OptionError: An argument is out of range, the root has no commit logs, or a named topic does
            not exist or has no `compact` in its `cleanup.policy`.
        KlogError: The commit log of a named topic cannot be read.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    if map_bytes < MIN_MAP_BYTES:
        raise OptionError(f"map_bytes: must be at least {MIN_MAP_BYTES}, got {map_bytes}")
    if min_dirty_ratio is not None and not 0 <= min_dirty_ratio <= 1:
        raise OptionError(f"min_dirty_ratio: must be from 0 to 1, got {min_dirty_ratio}")
    klog_root = open_klog_root(root, storage)
    partitions: list[CompactedPartition] = []
    failed: list[FailedTopic] = []
    for log, state in select_topics(klog_root, topic, to_write=not dry_run, failed=failed):
        config = parse_topic_config(state.config)
        if config.has_compact_policy:
            job = TopicCompaction(klog_root, log, config, storage, map_bytes, clock_ms())
            plans = plan_cleanings(log.paths.topic, state, config, min_dirty_ratio, job.now_ms)
            partitions += (
                [plan.report for plan in plans] if dry_run else job.compact(spark, state, plans)
            )
        elif topic is not None:
            name = log.paths.topic
            raise OptionError(
                f"topic {name} is not compacted: its cleanup.policy has no compact; `klog configs "
                f"--topic {name} --config cleanup.policy=compact` gives it one, and "
                "`compact,delete` expires its records too"
            )
    seconds = time.monotonic() - started
    return CompactReport(klog_root.location, dry_run, tuple(partitions), seconds, tuple(failed))
