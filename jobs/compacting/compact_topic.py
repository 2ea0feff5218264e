"""Compact one topic: clean or mark its partitions, rewrite segments, commit each partition.

The rule: the driver has the marks of one wave of partitions at a time, and those of a partition
only until its segments are rewritten. Each partition gets one commit, which replaces its segments
only if all of them are still in the topic.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from klog.connector.commit_log import rewrite_commit, segment_entries
from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.storage_options import StorageOptions
from klog.errors import CommitConflictError, KlogError
from klog.jobs.compacting.clean_partition import CleanTask
from klog.jobs.compacting.compact_report import CompactedPartition
from klog.jobs.compacting.first_pass import FirstPassResult, run_first_pass
from klog.jobs.compacting.partitions_to_clean import PlannedCleaning, cleaning_waves
from klog.jobs.compacting.rewrite_segments import (
    RewriteTarget,
    RewriteTask,
    RewrittenGroup,
    context_within,
    groups_to_rewrite,
    rewrite_group,
)
from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.job_tasks import LazyTasks, take_results, try_tasks
from klog.jobs.shared.marking.cleaning_workload import PASSES, workload
from klog.jobs.shared.marking.mark_records import MarkTask, PartitionMarks
from klog.jobs.shared.process_shares import remaining_workloads
from klog.jobs.shared.segment_grouping import SegmentLimits
from klog.jobs.shared.task_retries import FailedTask
from klog.logformat.batches.batch_attributes import MAX_LONG
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.topic_config import TopicConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _MarkedPartition:
    """A due partition after the first pass: what is still to be rewritten, and what was already."""

    def __init__(
        self, plan: PlannedCleaning, groups: Sequence[slice], result: FirstPassResult
    ) -> None:
        self.plan, self.groups, self.rewritten = plan, groups, result.rewritten
        self._marks = [result.marks]

    def take_marks(self) -> PartitionMarks:
        """Return the marks, once: they are freed when the tasks that need them are made."""
        return self._marks.pop()


@dataclass(frozen=True, slots=True)
class _FailedPartition:
    """A due partition that failed in the first pass."""

    plan: PlannedCleaning
    error: KlogError | OSError


@dataclass(frozen=True, slots=True)
class TopicCompaction:
    """A compaction of one topic."""

    root: KlogRoot
    log: CommitLog
    config: TopicConfig
    storage: StorageOptions
    map_bytes: int
    now_ms: int

    def compact(
        self, spark: SparkSession | None, state: TopicState, plans: Sequence[PlannedCleaning]
    ) -> Iterator[CompactedPartition]:
        """Compact the partitions that are due, and yield the report of each partition.

        Args:
            spark: The session that runs the tasks; None for this process.
            state: The state that the compaction was planned on.
            plans: What may be cleaned, one for each partition.
        """
        planned_on = state
        for wave in cleaning_waves(plans):
            due = [plan for plan in wave if plan.is_due]
            partitions = self._clean_or_mark(spark, planned_on, due)
            results = self._rewrite(spark, planned_on, partitions)
            due_partitions = iter(partitions)
            for plan in wave:
                if not plan.is_due:
                    yield plan.report
                    continue
                partition = next(due_partitions)
                if isinstance(partition, _FailedPartition):
                    yield _failed(plan, partition.error)
                    continue
                groups = take_results(results, len(partition.groups))
                if isinstance(groups, FailedTask):
                    yield _failed(plan, groups.error)
                    continue
                groups += partition.rewritten
                state, report = self._commit(planned_on, state, plan, groups)
                yield report

    def _clean_or_mark(
        self, spark: SparkSession | None, state: TopicState, due: Sequence[PlannedCleaning]
    ) -> list[_MarkedPartition | _FailedPartition]:
        """Run the first pass, and find which groups of segments are to be rewritten."""
        limits = SegmentLimits.of(self.config)
        partitions: list[_MarkedPartition | _FailedPartition] = []
        results = run_first_pass(spark, self._clean_tasks(spark, state, due))
        for plan, result in zip(due, results, strict=True):
            if isinstance(result, FailedTask):
                partitions.append(_FailedPartition(plan, result.error))
                continue
            bitmaps = result.marks.bitmaps
            marked_segments = plan.segments.part(0, len(bitmaps))
            groups = list(groups_to_rewrite(marked_segments, bitmaps, limits))
            partitions.append(_MarkedPartition(plan, groups, result))
        return partitions

    def _clean_tasks(
        self, spark: SparkSession | None, state: TopicState, due: Sequence[PlannedCleaning]
    ) -> list[CleanTask]:
        seed = Seed(secrets.randbits(64), secrets.randbits(64))
        remaining = remaining_workloads(spark, [PASSES * workload(plan.segments) for plan in due])
        return [
            CleanTask(
                MarkTask(
                    self.root.location,
                    self.storage,
                    plan.segments,
                    plan.later_segments,
                    plan.cleanable.first_dirty_offset,
                    self.now_ms,
                    seed,
                    self.map_bytes,
                    remaining_records=records,
                ),
                self._target(state, plan),
                plan.cleanable.end_offset,
                self._delete_horizon_ms(),
            )
            for plan, records in zip(due, remaining, strict=True)
        ]

    def _rewrite(
        self,
        spark: SparkSession | None,
        state: TopicState,
        partitions: Sequence[_MarkedPartition | _FailedPartition],
    ) -> Iterator[RewrittenGroup | FailedTask]:
        """Rewrite the groups of all partitions, one task each."""
        marked = [partition for partition in partitions if isinstance(partition, _MarkedPartition)]
        workloads = [
            workload(partition.plan.segments.part(group.start, group.stop))
            for partition in marked
            for group in partition.groups
        ]
        remaining = iter(remaining_workloads(spark, workloads))
        tasks = LazyTasks(
            (
                task
                for partition in marked
                for task in self._rewrite_tasks(state, partition, remaining)
            ),
            len(workloads),
        )
        return try_tasks(spark, rewrite_group, tasks, "compact")

    def _rewrite_tasks(
        self, state: TopicState, partition: _MarkedPartition, remaining: Iterator[int]
    ) -> Iterator[RewriteTask]:
        """Make the tasks of a partition, and drop its marks with the last one.

        `remaining` yields for each task how much work its process still has.
        """
        marks, plan = partition.take_marks(), partition.plan
        context = CleaningContext(
            self.now_ms,
            self._delete_horizon_ms(),
            np.union1d(marks.last_batches, [plan.cleanable.end_offset - 1]),
            marks.removable_markers,
        )
        for group in partition.groups:
            segments = plan.segments.part(group.start, group.stop)
            first, end = segments[0]["base_offset"], segments[-1]["next_offset"]
            yield RewriteTask(
                self.root.location,
                self.storage,
                self._target(state, plan),
                segments,
                marks.bitmaps[group],
                context_within(context, first, end),
                next(remaining),
            )

    def _target(self, state: TopicState, plan: PlannedCleaning) -> RewriteTarget:
        return RewriteTarget(
            plan.report.topic,
            plan.report.partition,
            state.version,
            self.config.number("index.interval.bytes"),
            SegmentLimits.of(self.config),
        )

    def _delete_horizon_ms(self) -> int:
        return min(self.now_ms + self.config.number("delete.retention.ms"), MAX_LONG)

    def _commit(
        self,
        planned_on: TopicState,
        state: TopicState,
        plan: PlannedCleaning,
        groups: Sequence[RewrittenGroup],
    ) -> tuple[TopicState, CompactedPartition]:
        """Replace the segments of a partition.

        The topic and the base version of the new files are those that were planned on.
        """
        inputs = [file for group in groups for file in group.inputs]
        outputs = [group.output for group in groups if group.output is not None]
        build = rewrite_commit.replace_segments(
            planned_on.topic_id,
            planned_on.version,
            inputs,
            outputs,
            {plan.report.partition: plan.report.cleaned_to},
        )
        info = CommitInfo(random_uuid(), "compact", this_engine())
        try:
            state = CHECKPOINTER.offer(self.log, self.log.commit(state, build, info))
        except CommitConflictError as exc:
            return state, replace(plan.report, left=str(exc))
        except (KlogError, OSError) as exc:
            return state, _failed(plan, exc)
        unchanged, _ = segment_entries.split_by_files(plan.segments.table, inputs)
        after = pa.concat_tables(
            table.select(["record_count", "size_bytes"])
            for table in (unchanged, segment_entries.to_table(outputs))
        )
        return state, replace(
            plan.report,
            segments_after=len(after),
            records_after=int(after["record_count"].to_numpy().sum()),
            size_bytes_after=int(after["size_bytes"].to_numpy().sum()),
        )


def _failed(plan: PlannedCleaning, error: KlogError | OSError) -> CompactedPartition:
    return replace(plan.report, failure=Failure.of(error, plan.report.topic))
