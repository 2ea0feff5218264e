"""Verify one topic: its commit log, its segments by tasks, its partitions, its keys.

The rule: a topic is verified as of one version of its commit log. If a file is missing, the log is
loaded again: a compaction, retention or deletion may have removed the segment since, which is
not a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from klog.connector import arrow_compute as pc
from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.open_root import open_klog_root
from klog.connector.options.storage_options import StorageOptions
from klog.errors import KlogError, OptionError
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.job_tasks import LazyTasks, run_tasks, try_tasks
from klog.jobs.shared.task_retries import FailedTask
from klog.jobs.verifying.check_commit_log import unreadable_log, verify_log
from klog.jobs.verifying.check_gaps_and_overlaps import PartitionBounds
from klog.jobs.verifying.check_keys import KeysTask, find_repeated_keys, unreadable_keys
from klog.jobs.verifying.check_partition import NeighbourFacts, verify_partition
from klog.jobs.verifying.check_segment import verify_segment
from klog.jobs.verifying.findings import Finding
from klog.jobs.verifying.verify_report import VerifyReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASK_SEGMENTS = 1000
_TASK_BYTES = 256 << 20
"""A task has so many segments, or as many as have so many bytes."""


@dataclass(frozen=True, slots=True)
class VerifyTask:
    """Neighbouring segments of a partition; `first` is the number of the first of them in it.

    `cleaned_to` is the offset up to which the partition was compacted.
    """

    root: str
    storage: StorageOptions
    topic: str
    segments: EntryRows
    first: int
    cleaned_to: int
    fast: bool


def _verify_segments(task: VerifyTask) -> NeighbourFacts:
    """Verify the segments of a task; a missing file is a finding, even if it was removed since."""
    root = open_klog_root(task.root, task.storage)
    facts = NeighbourFacts(int(task.segments[0]["base_offset"]), task.cleaned_to)
    for number, entry in enumerate(task.segments, task.first):
        segment_facts = verify_segment(root.store, root.path, task.topic, entry, fast=task.fast)
        facts.add(task.topic, number, entry, segment_facts)
    return facts


def verify_topic(
    spark: SparkSession | None,
    report: VerifyReport,
    root: KlogRoot,
    storage: StorageOptions,
    topic: str,
    *,
    is_named: bool,
) -> VerifyReport:
    """Verify a topic, and return the report with what was found in it.

    Args:
        spark: The session that runs the tasks; None for this process.
        report: The report so far.
        root: The klog root.
        storage: The options of its store.
        topic: The topic.
        is_named: Whether the caller named it; one that does not exist is then an error.

    Raises:
        OptionError: A named topic does not exist.
    """
    try:
        log = root.log_to_read(topic)
    except OptionError:
        raise
    except KlogError as exc:
        return replace(report, findings=(*report.findings, unreadable_log(topic, exc)))
    verified = verify_log(log)
    report = replace(report, findings=(*report.findings, *verified.findings))
    state = verified.state
    if state is None:
        return report
    if not state.topic_id:
        if is_named and not verified.findings:
            root.load(log)  # raises
        return report
    report = replace(report, versions={**report.versions, topic: state.version})
    report, findings = _verify_partitions(spark, report, root, storage, topic, state)
    if not report.fast:
        findings += _key_findings(spark, root, storage, topic, state)
    current = _without_removed_files(log, state, findings)
    return replace(
        report,
        findings=(*report.findings, *current),
        moved_on=report.moved_on + len(findings) - len(current),
    )


def _verify_partitions(
    spark: SparkSession | None,
    report: VerifyReport,
    root: KlogRoot,
    storage: StorageOptions,
    topic: str,
    state: TopicState,
) -> tuple[VerifyReport, list[Finding]]:
    """Verify a topic's segments, and that those of each partition fit each other."""
    table = state.segments.combine_chunks()
    tasks = _verify_tasks(root, storage, topic, state, fast=report.fast)
    facts = run_tasks(spark, _verify_segments, tasks, "verify")
    findings: list[Finding] = []
    for number in range(state.partitions):
        bounds = PartitionBounds(
            topic,
            number,
            state.log_start[number],
            state.log_end[number],
            state.cleaned_to.get(number, 0),
            tuple(hole for hole in state.holes if hole.partition == number),
        )
        segments = segment_entries.rows_of_partition(table, number)
        partition = verify_partition(bounds, segments, facts)
        findings += partition.findings
        report = replace(
            report,
            partitions=report.partitions + 1,
            segments=report.segments + partition.segments,
            batches=report.batches + partition.batches,
            records=report.records + partition.records,
            size_bytes=report.size_bytes + partition.size_bytes,
        )
    return report, findings


def _verify_tasks(
    root: KlogRoot, storage: StorageOptions, topic: str, state: TopicState, *, fast: bool
) -> LazyTasks[VerifyTask]:
    """Cut a topic's segments, in order, into tasks of one partition each."""
    table = state.segments.combine_chunks()
    bounds = list(_task_bounds(table))
    segments = EntryRows(table)

    def tasks() -> Iterator[VerifyTask]:
        for partition_start, start, stop in bounds:
            entries = segments.part(start, stop)
            cleaned_to = state.cleaned_to.get(entries[0]["partition"], 0)
            first = start - partition_start
            yield VerifyTask(root.location, storage, topic, entries, first, cleaned_to, fast)

    return LazyTasks(tasks(), len(bounds))


def _task_bounds(table: pa.Table) -> Iterator[tuple[int, int, int]]:
    """Yield for each task the first row of its partition, its own first row, and its end."""
    partitions, sizes = table["partition"].to_numpy(), table["size_bytes"].to_numpy()
    starts = np.flatnonzero(np.append(True, partitions[1:] != partitions[:-1]))
    bounds = [*starts.tolist(), len(partitions)] if len(partitions) else []
    for partition_start, partition_stop in pairwise(bounds):
        start, size_bytes = partition_start, 0
        for row in range(partition_start, partition_stop):
            if size_bytes >= _TASK_BYTES or row - start >= _TASK_SEGMENTS:
                yield partition_start, start, row
                start, size_bytes = row, 0
            size_bytes += int(sizes[row])
        yield partition_start, start, partition_stop


def _key_findings(
    spark: SparkSession | None,
    root: KlogRoot,
    storage: StorageOptions,
    topic: str,
    state: TopicState,
) -> Iterator[Finding]:
    """Find records in compacted parts whose key a later record has."""
    table = state.segments.combine_chunks()
    running: list[KeysTask] = []

    def tasks() -> Iterator[KeysTask]:
        for number, cleaned_to in state.cleaned_to.items():
            entries = segment_entries.rows_of_partition(table, number)
            below = entries.filter(pc.less_equal(entries["next_offset"], cleaned_to))
            if len(below):
                log_start = state.log_start[number]
                task = KeysTask(root.location, storage, topic, number, EntryRows(below), log_start)
                running.append(task)
                yield task

    results = try_tasks(
        spark, find_repeated_keys, LazyTasks(tasks(), len(state.cleaned_to)), "verify keys"
    )
    for result in results:
        task = running.pop(0)
        if isinstance(result, FailedTask):
            yield unreadable_keys(task, result.error)
        else:
            yield from result


def _without_removed_files(
    log: CommitLog, state: TopicState, findings: list[Finding]
) -> list[Finding]:
    """Leave out findings about missing files whose segments the topic no longer has."""
    missing = {_log_file(finding) for finding in findings if finding.kind == "missing"}
    if not missing:
        return findings
    try:
        now = log.load(state)
    except KlogError as exc:
        return [*findings, unreadable_log(log.paths.topic, exc)]
    live = now.live.live_files_among(missing) if now.topic_id == state.topic_id else set()
    removed = missing - live
    return [
        finding
        for finding in findings
        if finding.kind != "missing" or _log_file(finding) not in removed
    ]


def _log_file(finding: Finding) -> str:
    """Return the log of the segment that a finding's file belongs to."""
    return f"{(finding.file or '').rsplit('.', 1)[0]}.log"
