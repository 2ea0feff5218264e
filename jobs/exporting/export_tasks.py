"""The tasks of an export, one for each partition: stage all partitions, then publish them.

The rule: a task runs where the directory is. Spark runs the tasks if its master is local, else this
process does. Partitions get their final names only when all of them are staged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.connector.commit_log.committed_snapshot import CommittedPartition, CommittedSnapshot
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_table import SegmentTable
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.connector.roll_limits import roll_limits
from klog.jobs.exporting.export_directory import ExportDirectory
from klog.jobs.exporting.export_partition import StagedPartition, stage_partition
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.job_tasks import run_tasks
from klog.logformat.indexes.time_index import ENTRY as TIME_ENTRY
from klog.logformat.segments.segment_rolling import RollLimits
from klog.logformat.topic_config import parse_topic_config
from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class ExportTask:
    """A partition to be staged."""

    root: str
    storage: StorageOptions
    name: TopicPartition
    topic_id: str
    log_start: int
    log_end: int
    segments: EntryRows
    target: ExportDirectory
    limits: RollLimits
    now_ms: int
    end_open: bool


def export_tasks(
    snapshot: CommittedSnapshot,
    partitions: Sequence[CommittedPartition],
    target: ExportDirectory,
    storage: StorageOptions,
    now_ms: int,
    *,
    end_open: bool,
) -> list[ExportTask]:
    """Return the tasks that stage partitions.

    Args:
        snapshot: The topics' states.
        partitions: The partitions.
        target: The directory of the export.
        storage: The options of the root's store.
        now_ms: The time that markers get.
        end_open: Whether open transactions get their markers after the log.
    """
    topics = {partition.name.topic for partition in partitions}
    limits = {topic: _roll_limits(snapshot.state(topic).config) for topic in topics}
    return [
        ExportTask(
            partition.root.location,
            storage,
            partition.name,
            partition.topic_id,
            partition.log_start,
            partition.log_end,
            EntryRows(partition.segments),
            target,
            limits[partition.name.topic],
            now_ms,
            end_open,
        )
        for partition in partitions
    ]


def export_partition(task: ExportTask) -> StagedPartition:
    """Stage the partition of a task; it raises what `stage_partition` does.

    Args:
        task: The task.
    """
    root = root_to_export(task.root, task.storage)
    table = SegmentTable(task.segments.table)
    partition = CommittedPartition(
        task.name,
        task.topic_id,
        root,
        task.log_start,
        task.log_end,
        table,
        range(len(task.segments)),
    )
    return stage_partition(partition, task.target, task.limits, task.now_ms, end_open=task.end_open)


def stage_and_publish(
    spark: SparkSession | None, target: ExportDirectory, tasks: Sequence[ExportTask]
) -> list[int]:
    """Stage all partitions, then give them their names.

    Args:
        spark: The session of the job, or None.
        target: The directory of the export, which the caller has locked.
        tasks: The tasks, one for each partition.

    Returns:
        The log ends of the exported partitions, in the order of the tasks.
    """
    try:
        partitions = list(run_tasks(_local_session(spark), export_partition, tasks, "export"))
        target.publish(
            {
                task.name: partition.checkpointed
                for task, partition in zip(tasks, partitions, strict=True)
            }
        )
    except BaseException:
        target.discard(task.name for task in tasks)
        raise
    for task, partition in zip(tasks, partitions, strict=True):
        partition.warn(task.name)
    return [partition.checkpointed.log_end for partition in partitions]


def root_to_export(path: str, storage: StorageOptions) -> KlogRoot:
    """Open a klog root.

    Args:
        path: The root, as the caller gave it.
        storage: The options of its store.

    Raises:
        OptionError: The directory is not a klog root.
    """
    return open_klog_root(
        path, storage, "a broker's own log directory needs no export, a broker mounts it directly"
    )


def _local_session(spark: SparkSession | None) -> SparkSession | None:
    """Return the session if its tasks run on this machine, else None."""
    if spark is None:
        return None
    from pyspark.sql.utils import is_remote

    if is_remote() or not str(spark.sparkContext.master).startswith("local"):
        return None
    return spark


def _roll_limits(config: Mapping[str, str]) -> RollLimits:
    """Return the limits of a topic's segments; an index must hold one entry of a broker's."""
    limits = roll_limits(parse_topic_config(config))
    index_bytes = max(limits.segment_index_bytes, TIME_ENTRY.itemsize)
    return replace(limits, segment_index_bytes=index_bytes)
