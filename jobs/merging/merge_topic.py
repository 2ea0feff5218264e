"""Merge one topic: a task for each group of segments, and one commit for each partition.

The rule: bytes are copied and no batch is decompressed; offsets, CRCs and producers stay. A commit
replaces the inputs only if all of them are still in the topic.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.connector.commit_log import rewrite_commit
from klog.connector.commit_log.background_checkpointer import CHECKPOINTER
from klog.connector.commit_log.commit_info import CommitInfo, random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.segment_entries import SegmentEntry, merge_aborted
from klog.connector.commit_log.segment_path import SegmentPath
from klog.connector.commit_log.segment_writer import SegmentBounds, write_segment
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.commit_log.verified_segment import read_verified
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.errors import CommitConflictError, KlogError
from klog.jobs.merging.merge_report import MergedPartition
from klog.jobs.merging.segments_to_merge import PlannedMerge
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.job_failures import Failure
from klog.jobs.shared.job_tasks import LazyTasks, take_results, try_tasks
from klog.jobs.shared.segment_walk import locate_errors
from klog.jobs.shared.task_retries import FailedTask
from klog.logformat.batches.rewrite_offsets import BatchRun, shift_offsets
from klog.logformat.topic_config import TopicConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Neighbouring segments of a partition that become one.

    `base_version` is the version that the merge was planned on, `interval_bytes` the topic's
    `index.interval.bytes`.
    """

    root: str
    storage: StorageOptions
    topic: str
    partition: int
    base_version: int
    interval_bytes: int
    segments: EntryRows


@dataclass(frozen=True, slots=True)
class TopicMerge:
    """A merge of one topic."""

    root: KlogRoot
    log: CommitLog
    config: TopicConfig
    storage: StorageOptions

    def merge(
        self, spark: SparkSession | None, state: TopicState, plans: Sequence[PlannedMerge]
    ) -> Iterator[MergedPartition]:
        """Merge as planned, and yield the report of each partition.

        Args:
            spark: The session that runs the tasks; None for this process.
            state: The state that the merge was planned on.
            plans: What is joined, one for each partition.
        """
        base_version = state.version
        tasks = LazyTasks(
            (task for plan in plans for task in self._tasks(plan, base_version)),
            sum(len(plan.groups) for plan in plans),
        )
        results = try_tasks(spark, merge_group, tasks, "merge")
        for plan in plans:
            outputs = take_results(results, len(plan.groups))
            if isinstance(outputs, FailedTask):
                yield _failed(plan, outputs.error)
            elif not outputs:
                yield plan.report
            else:
                state, report = self._commit(state, base_version, plan, outputs)
                yield report

    def _tasks(self, plan: PlannedMerge, base_version: int) -> Iterator[MergeTask]:
        interval_bytes = self.config.number("index.interval.bytes")
        for segments in plan.inputs():
            yield MergeTask(
                self.root.location,
                self.storage,
                plan.report.topic,
                plan.report.partition,
                base_version,
                interval_bytes,
                segments,
            )

    def _commit(
        self,
        state: TopicState,
        base_version: int,
        plan: PlannedMerge,
        outputs: Sequence[SegmentEntry],
    ) -> tuple[TopicState, MergedPartition]:
        inputs = [file for segments in plan.inputs() for file in segments.files()]
        build = rewrite_commit.replace_segments(state.topic_id, base_version, inputs, outputs, {})
        info = CommitInfo(random_uuid(), "merge", this_engine())
        try:
            state = CHECKPOINTER.offer(self.log, self.log.commit(state, build, info))
        except CommitConflictError as exc:
            report = replace(plan.report, segments_after=plan.report.segments, left=str(exc))
            return state, report
        except (KlogError, OSError) as exc:
            return state, _failed(plan, exc)
        return state, plan.report


def _failed(plan: PlannedMerge, error: KlogError | OSError) -> MergedPartition:
    failure = Failure.of(error, plan.report.topic)
    return replace(plan.report, segments_after=plan.report.segments, failure=failure)


def merge_group(task: MergeTask) -> SegmentEntry:
    """Write the segments of a group as one, and return its entry.

    Args:
        task: The group.

    Raises:
        CorruptFileError: A segment is damaged.
    """
    root = open_klog_root(task.root, task.storage)
    first, last = task.segments[0], task.segments[-1]
    # Random, as a task may run twice at a time, and put replaces.
    attempt = secrets.token_hex(8)
    path = SegmentPath(task.topic, task.partition, first["base_offset"], task.base_version, attempt)
    min_timestamp_ms = int(task.segments.numbers("min_timestamp_ms").min())
    aborted = merge_aborted(task.segments)
    bounds = SegmentBounds(
        first["base_offset"], last["next_offset"], min_timestamp_ms, "merge", aborted
    )
    runs = _runs(root, task.segments)
    entry = write_segment(root.store, root.path, path, task.interval_bytes, runs, bounds)
    assert entry is not None
    # The writer counts records of aborted transactions; the inputs' entries do not.
    return {**entry, "record_count": int(task.segments.numbers("record_count").sum())}


def _runs(root: KlogRoot, segments: Iterable[SegmentEntry]) -> Iterator[BatchRun]:
    """Yield the batches of segments with their offsets in the log."""
    for entry in segments:
        for chunk in read_verified(root, entry):
            with locate_errors(root, entry, chunk.position):
                run = BatchRun(
                    chunk.batch_data, shift_offsets(chunk.batches, entry["offset_shift"])
                )
            yield run.rewritten() if entry["offset_shift"] else run
