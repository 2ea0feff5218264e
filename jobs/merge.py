"""Merge small segments into large ones, as Spark tasks: bytes are copied, nothing is decompressed.

The rule: neighbours become one segment while it may hold them (`grouping.py`), and within
`segment.ms`, until each segment is at least twice as large as the one behind it, or full. So a
partition has few segments however often it is written to, and a byte is copied a bounded number of
times.
Offsets, CRCs and producers stay; where a segment's offsets were shifted by its commit, they are
written into its batches. One commit a partition, only if all that was merged is still there.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("merge")

import argparse
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from klog.connector.log import entries, operations
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.checkpointing import CHECKPOINTER
from klog.connector.log.entries import Entry, joined_aborted
from klog.connector.log.paths import SegmentPath
from klog.connector.log.rewriting import SegmentWriter, Span
from klog.connector.log.root import KlogRoot
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.log.whole import whole_segment
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CommitConflictError, KlogError
from klog.jobs.choosing import chosen, open_root
from klog.jobs.command import Command, no_options
from klog.jobs.entry_rows import EntryRows
from klog.jobs.failures import FailedTopic, Failure
from klog.jobs.grouping import Group, Limits
from klog.jobs.merging.report import MergedPartition, MergeReport
from klog.jobs.segments import in_segment
from klog.jobs.tasks import Coming, Failed, together, try_tasks
from klog.logformat.restamp import Run, moved
from klog.logformat.topic_config import TopicConfig, read_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FACTOR = 2
"""A segment that is less than so many times as large as what follows it is joined with it."""
_SHARE_OF_RETENTION = 10
"""Being merged with others keeps a record no longer than this share of `retention.ms`."""


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = False,
) -> MergeReport:
    """Merge the segments of one topic, several, or all.

    `spark` may be None: then all is done in this process. A dry run reads states alone. What of a
    partition fails, for a damaged segment or a store that refuses, is told in the report. Raises
    `OptionError` for a root without commit logs and a topic that is not there.
    """
    begun = time.monotonic()
    found = open_root(root, storage)
    done: list[MergedPartition] = []
    failed: list[FailedTopic] = []
    for log, state in chosen(found, topic, to_write=not dry_run, failed=failed):
        config = read_topic_config(state.config)
        planned = list(_planned(log.paths.topic, state, config))
        if dry_run:
            done += [one.report for one in planned]
        else:
            done += _Topic(found, log, config, storage).merge(spark, state, planned)
    seconds = time.monotonic() - begun
    return MergeReport(found.given, dry_run, tuple(done), seconds, tuple(failed))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Neighbouring segments of a partition that become one."""

    root: str
    storage: Storage
    topic: str
    partition: int
    birth: int
    interval_bytes: int
    segments: EntryRows


def groups(segments: Iterable[Entry], limits: Limits, cleaned_to: int = 0) -> list[slice]:
    """Say which neighbours become one segment each; those that stay as they are are in none.

    None reaches across `cleaned_to`: how much of a partition is dirty is told by whole segments.
    """
    made: list[Group] = []
    shifted: set[int] = set()
    for number, entry in enumerate(segments):
        if entry["offset_shift"]:
            shifted.add(number)
        made.append(Group.of(number, entry))
        while len(made) > 1 and _join(made[-2], made[-1], limits, cleaned_to):
            made[-2:] = [made[-2].joined(made[-1])]
    return [
        slice(one.begin, one.end) for one in made if one.end - one.begin > 1 or one.begin in shifted
    ]


def limits_of(config: TopicConfig) -> Limits:
    """Give what a merged segment may hold, times too: old records go with a whole segment.

    As a broker's, it spans no more than `segment.ms`; and of what `retention.ms` keeps a tenth.
    """
    span_ms = config.number("segment.ms")
    retention_ms = config.number("retention.ms")
    if config.deletes and retention_ms >= 0:
        span_ms = min(span_ms, retention_ms // _SHARE_OF_RETENTION)
    return replace(Limits.of(config), span_ms=span_ms)


def _join(one: Group, behind: Group, limits: Limits, cleaned_to: int) -> bool:
    if one.size_bytes >= _FACTOR * behind.size_bytes:
        return False
    is_across = one.next_offset <= cleaned_to < behind.next_offset
    return not is_across and one.joined(behind).fits(limits)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A partition, and which of its segments become one each."""

    report: MergedPartition
    segments: EntryRows
    groups: Sequence[slice]

    def inputs(self) -> list[EntryRows]:
        """Give the segments of each group."""
        return [self.segments.part(one.start, one.stop) for one in self.groups]


def _planned(topic: str, state: State, config: TopicConfig) -> Iterator[_Planned]:
    segments = state.segments.combine_chunks()
    limits = limits_of(config)
    for partition in range(state.partitions):
        own = EntryRows(entries.of_partition(segments, partition))
        found = groups(own, limits, state.cleaned_to.get(partition, 0))
        inputs = [own.part(one.start, one.stop) for one in found]
        report = MergedPartition(
            topic,
            partition,
            len(own),
            len(own) - sum(map(len, inputs)) + len(inputs),
            sum(int(one.numbers("size_bytes").sum()) for one in inputs),
            sum(int(np.count_nonzero(one.numbers("offset_shift"))) for one in inputs),
            "" if found else "its segments are as large as they are to be",
        )
        yield _Planned(report, own, found)


@dataclass(frozen=True, slots=True)
class _Topic:
    """A merge of one topic."""

    root: KlogRoot
    log: TopicLog
    config: TopicConfig
    storage: Storage

    def merge(
        self, spark: SparkSession | None, state: State, planned: Sequence[_Planned]
    ) -> Iterator[MergedPartition]:
        """Merge what is planned, and give what became of each partition."""
        birth = state.version
        tasks = Coming(
            (task for one in planned for task in self._tasks(one, birth)),
            sum(len(one.groups) for one in planned),
        )
        outputs = try_tasks(spark, merge, tasks, "merge")
        for one in planned:
            made = together(outputs, len(one.groups))
            if isinstance(made, Failed):
                yield _failed(one, made.error)
            elif not made:
                yield one.report
            else:
                state, report = self._commit(state, birth, one, made)
                yield report

    def _tasks(self, one: _Planned, birth: int) -> Iterator[MergeTask]:
        interval_bytes = self.config.number("index.interval.bytes")
        for segments in one.inputs():
            yield MergeTask(
                self.root.given,
                self.storage,
                one.report.topic,
                one.report.partition,
                birth,
                interval_bytes,
                segments,
            )

    def _commit(
        self, state: State, birth: int, one: _Planned, made: Sequence[Entry]
    ) -> tuple[State, MergedPartition]:
        inputs = [file for segments in one.inputs() for file in segments.files()]
        build = operations.replace_segments(state.topic_id, birth, inputs, made, {})
        attempt = Attempt(random_uuid(), "merge", this_engine())
        try:
            state = CHECKPOINTER.offer(self.log, self.log.commit(state, build, attempt))
        except CommitConflictError as exc:
            report = replace(one.report, segments_after=one.report.segments, left=str(exc))
            return state, report
        except (KlogError, OSError) as exc:
            return state, _failed(one, exc)
        return state, one.report


def _failed(one: _Planned, error: KlogError | OSError) -> MergedPartition:
    failure = Failure.of(error, one.report.topic)
    return replace(one.report, segments_after=one.report.segments, failure=failure)


def merge(task: MergeTask) -> Entry:
    """Write the segments of a group as one; raises `CorruptFileError` for a damaged one."""
    root = open_root(task.root, task.storage)
    first, last = task.segments[0], task.segments[-1]
    # Random, as a task may run twice at a time, and put replaces.
    attempt = secrets.token_hex(8)
    file = SegmentPath(task.topic, task.partition, first["base_offset"], task.birth, attempt)
    least = int(task.segments.numbers("min_timestamp_ms").min())
    aborted = joined_aborted(task.segments)
    span = Span(first["base_offset"], last["next_offset"], least, "merge", aborted)
    made = SegmentWriter(root.store, root.path, file, task.interval_bytes).write(
        _runs(root, task.segments), span
    )
    assert made is not None
    # Of aborted transactions the segments' entries know which records nobody is to see.
    return {**made, "record_count": int(task.segments.numbers("record_count").sum())}


def _runs(root: KlogRoot, segments: Iterable[Entry]) -> Iterator[Run]:
    """Give the batches of segments as they stand in the log."""
    for entry in segments:
        for chunk in whole_segment(root, entry):
            end = int(chunk.batches.ends[-1])
            data = chunk.data if end == len(chunk.data) else chunk.data[:end]
            with in_segment(root, entry, chunk.position):
                run = Run(data, moved(chunk.batches, entry["offset_shift"]))
            yield run.stamped() if entry["offset_shift"] else run


def _run(spark: SparkSession | None, given: argparse.Namespace) -> MergeReport:
    return run(spark, given.root, given.topic, dry_run=given.dry_run)


COMMAND = Command(
    "merge",
    "make few large segments of many small ones",
    """\
Bytes are copied; offsets, checksums and producers stay. Where a stream commits each second, a merge
every few minutes keeps its partitions at few segments. docs/jobs.md says more.""",
    no_options,
    _run,
)
