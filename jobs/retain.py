"""Apply `retention.ms` and `retention.bytes`: a commit raises log starts, and no byte is read.

The rule: `retaining/expired_segments.py` decides which segments go. The log start of a partition
rises to its first remaining offset. Files stay for readers until vacuum's grace is over. A topic
whose `cleanup.policy` is only `compact` keeps all segments.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("retain")

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.connector.system_clock import now_ms
from klog.errors import CommitConflictError, KlogError, OptionError
from klog.jobs.retaining.expired_segments import deleted_below, plan_retention
from klog.jobs.retaining.retain_report import RetainedPartition, RetainReport
from klog.jobs.shared.job_failures import FailedTopic, Failure
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
    clock_ms: Callable[[], int] = now_ms,
) -> RetainReport:
    """Expire old segments of one topic, several, or all topics with a retention.

    Topics with a retention are those whose `cleanup.policy` has `delete`. `retention.ms` and
    `retention.bytes` of a topic decide which segments expire. If the commit of a topic fails, the
    report says so and the job continues with the other topics.

    Args:
        spark: Not used, because the job reads only topic states. It may be None.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all topics with a retention.
        storage: The `storage.*` options of the store, by their names without `storage.`.
        dry_run: Whether to plan only, and commit nothing.
        clock_ms: A function that returns the time, in ms since the epoch.

    Returns:
        A report with one entry for each partition that loses segments, with its new log start
        offset, and the segments, records and bytes that it loses.

    Raises:
        OptionError: The root has no commit logs, or a named topic does not exist or has no
            `delete` in its `cleanup.policy`.
        KlogError: The commit log of a named topic cannot be read.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    klog_root = open_klog_root(root, storage)
    report = RetainReport(klog_root.location, dry_run)
    failed: list[FailedTopic] = []
    for log, state in select_topics(klog_root, topic, to_write=not dry_run, failed=failed):
        config = parse_topic_config(state.config)
        if not config.has_delete_policy:
            if topic is not None:
                name = log.paths.topic
                raise OptionError(
                    f"topic {name} keeps all its keys: its cleanup.policy has no delete; `klog "
                    f"configs --topic {name} --config cleanup.policy=compact,delete` gives it one"
                )
            continue
        partitions = list(plan_retention(log.paths.topic, state, config, clock_ms()))
        if partitions and not dry_run:
            partitions = _commit(log, state, partitions)
            if not partitions:
                continue  # A concurrent commit deleted the same segments.
        is_done = all(partition.failure is None for partition in partitions)
        report = replace(
            report,
            topics=report.topics + is_done,
            partitions=(*report.partitions, *partitions),
        )
    return replace(report, seconds=time.monotonic() - started, failed=tuple(failed))


def _commit(
    log: CommitLog, state: TopicState, plan: Sequence[RetainedPartition]
) -> list[RetainedPartition]:
    """Commit a plan and return what this commit deleted; nothing if the topic was deleted."""
    log_starts = {partition.partition: partition.log_start for partition in plan}
    delete_records = commit_builders.delete_records(state.topic_id, log_starts, state.version)
    deleted: list[RetainedPartition] = []

    def build(state: TopicState) -> Actions | None:
        actions = delete_records(state)
        segments = state.segments.combine_chunks()
        deleted[:] = [
            deleted_below(log.paths.topic, segments, partition, log_start)
            for partition, log_start in sorted((actions.log_start if actions else {}).items())
        ]
        return actions

    info = CommitInfo(random_uuid(), "retain", this_engine())
    try:
        CHECKPOINTER.offer(log, log.commit(state, build, info))
    except (KlogError, OSError) as exc:
        if isinstance(exc, CommitConflictError) and _is_deleted(log, state):
            return []
        failure = Failure.of(exc, log.paths.topic)
        return [replace(partition, failure=failure) for partition in plan]
    return deleted


def _is_deleted(log: CommitLog, state: TopicState) -> bool:
    """Return whether the topic of a state was deleted; False if that cannot be known."""
    try:
        return log.load(state).topic_id != state.topic_id
    except (KlogError, OSError):
        return False
