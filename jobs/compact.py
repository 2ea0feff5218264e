"""Compact topics: keep each key's last record, as Kafka's log cleaner does, as Spark tasks.

The rule: a partition's keys never leave it. First tasks mark which records stay, or write at once
what is left; then others write by the marks what is left of segments that lose any. One commit a
partition puts it in their place: only if they are all still there, so that whoever was faster wins,
and a killed run has done nothing but leave garbage. What is cleaned, and when it is worth it,
`compacting/cleanable.py` says; which records, `logformat/cleaning/`.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("compact")

import argparse
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from klog.connector.log import entries, operations
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.checkpointing import CHECKPOINTER
from klog.connector.log.root import KlogRoot, now_ms
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CommitConflictError, KlogError, OptionError
from klog.jobs.choosing import chosen, open_root
from klog.jobs.command import Command
from klog.jobs.compacting.at_once import CleanTask
from klog.jobs.compacting.marking import MAP_BYTES, Marked, MarkTask
from klog.jobs.compacting.planning import Planned, plan, waves
from klog.jobs.compacting.ranges import marked
from klog.jobs.compacting.report import CompactedPartition, CompactReport
from klog.jobs.compacting.rewriting import (
    Place,
    RewriteTask,
    Rewritten,
    fates_within,
    groups,
    rewrite,
)
from klog.jobs.compacting.workload import HALVES, workload
from klog.jobs.failures import FailedTopic, Failure
from klog.jobs.grouping import Limits
from klog.jobs.shares import shares
from klog.jobs.tasks import Coming, Failed, together, try_tasks
from klog.logformat.cleaning.key_hash import Seed
from klog.logformat.cleaning.offset_map import LEAST_BYTES
from klog.logformat.cleaning.rewrite import Fates
from klog.logformat.form import MAX_LONG
from klog.logformat.topic_config import TopicConfig, read_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    min_dirty_ratio: float | None = None,
    map_bytes: int = MAP_BYTES,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = False,
    clock_ms: Callable[[], int] = now_ms,
) -> CompactReport:
    """Compact one topic, several, or all whose `cleanup.policy` says so.

    `spark` may be None: then all is done in this process. `min_dirty_ratio` is instead of the
    topic's config; 0 cleans whatever is dirty. `map_bytes` is what a task's map of keys may take: a
    partition with more keys is read by as many tasks as these take that much. A dry run reads
    states alone. What of a partition fails, for a damaged segment or a store that refuses, is told
    in the report. Raises `OptionError` for a root without commit logs and for a topic that is not
    there or that its `cleanup.policy` does not have compacted.
    """
    begun = time.monotonic()
    if map_bytes < LEAST_BYTES:
        raise OptionError(f"map bytes is {map_bytes}; the least is {LEAST_BYTES}")
    if min_dirty_ratio is not None and not 0 <= min_dirty_ratio <= 1:
        raise OptionError(f"min dirty ratio is {min_dirty_ratio}; it is from 0 to 1")
    found = open_root(root, storage)
    done: list[CompactedPartition] = []
    failed: list[FailedTopic] = []
    for log, state in chosen(found, topic, to_write=not dry_run, failed=failed):
        config = read_topic_config(state.config)
        if config.compacts:
            job = _Topic(found, log, config, storage, map_bytes, clock_ms())
            planned = plan(log.paths.topic, state, config, min_dirty_ratio, job.now_ms)
            done += (
                [one.report for one in planned] if dry_run else job.compact(spark, state, planned)
            )
        elif topic is not None:
            name = log.paths.topic
            raise OptionError(
                f"topic {name} is not compacted: its cleanup.policy has no compact; `klog configs "
                f"--topic {name} --config cleanup.policy=compact` gives it one"
            )
    seconds = time.monotonic() - begun
    return CompactReport(found.given, dry_run, tuple(done), seconds, tuple(failed))


@dataclass(slots=True)
class _Begun:
    """A partition whose records were marked, if it is due: what is to be written, or the error.

    `rewritten` is what was written already.
    """

    planned: Planned
    groups: Sequence[slice] = ()
    marked: Marked | None = None
    rewritten: Sequence[Rewritten] = ()
    error: Failed | None = None


@dataclass(frozen=True, slots=True)
class _Topic:
    """A compaction of one topic."""

    root: KlogRoot
    log: TopicLog
    config: TopicConfig
    storage: Storage
    map_bytes: int
    now_ms: int

    def compact(
        self, spark: SparkSession | None, state: State, planned: Sequence[Planned]
    ) -> Iterator[CompactedPartition]:
        """Compact what is due, and give what became of each partition.

        The marks of so many partitions are held at a time, and of each until they are used.
        """
        planned_on = state
        for wave in waves(planned):
            begun = self._first_half(spark, planned_on, wave)
            workloads = [
                workload(one.planned.segments.part(group.start, group.stop))
                for one in begun
                for group in one.groups
            ]
            remaining = iter(shares(spark, workloads))
            tasks = Coming(
                (task for one in begun for task in self._rewrites(planned_on, one, remaining)),
                len(workloads),
            )
            written = try_tasks(spark, rewrite, tasks, "compact")
            for one in begun:
                done = one.error or together(written, len(one.groups))
                if isinstance(done, Failed):
                    yield self._failed(one.planned, done.error)
                elif one.planned.report.left:
                    yield one.planned.report
                else:
                    done += one.rewritten
                    state, report = self._commit(planned_on, state, one.planned, done)
                    yield report

    def _first_half(
        self, spark: SparkSession | None, state: State, wave: Sequence[Planned]
    ) -> list[_Begun]:
        """Mark or clean the partitions of a wave that are due; gives what is to be written yet."""
        seed = Seed(secrets.randbits(64), secrets.randbits(64))
        due = [one for one in wave if not one.report.left]
        remaining = shares(spark, [HALVES * workload(one.segments) for one in due])
        tasks = [
            CleanTask(
                MarkTask(
                    self.root.given,
                    self.storage,
                    one.segments,
                    one.behind,
                    one.cleanable.dirty_from,
                    self.now_ms,
                    seed,
                    self.map_bytes,
                    remaining=share,
                ),
                self._place(state, one),
                one.cleanable.end,
                self._horizon_ms(),
            )
            for one, share in zip(due, remaining, strict=True)
        ]
        coming = marked(spark, tasks)
        begun = []
        for one in wave:
            found = None if one.report.left else next(coming)
            if found is None:
                begun.append(_Begun(one))
            elif isinstance(found, Failed):
                begun.append(_Begun(one, error=found))
            else:
                some = one.segments.part(0, len(found.marks))
                lossy = list(groups(some, found.marks, Limits.of(self.config)))
                begun.append(_Begun(one, lossy, found, found.rewritten))
        return begun

    def _horizon_ms(self) -> int:
        return min(self.now_ms + self.config.number("delete.retention.ms"), MAX_LONG)

    def _place(self, state: State, one: Planned) -> Place:
        return Place(
            one.report.topic,
            one.report.partition,
            state.version,
            self.config.number("index.interval.bytes"),
            Limits.of(self.config),
        )

    def _rewrites(
        self, state: State, begun: _Begun, remaining: Iterator[int]
    ) -> Iterator[RewriteTask]:
        """Make the tasks of a partition; with the last one its marks are let go.

        `remaining` gives of each task what the process that takes it has still to do.
        """
        found, begun.marked = begun.marked, None
        if found is None:
            return
        one = begun.planned
        fates = Fates(
            self.now_ms,
            self._horizon_ms(),
            np.union1d(found.last_batches, [one.cleanable.end - 1]),
            found.spent_markers,
        )
        for some in begun.groups:
            segments = one.segments.part(some.start, some.stop)
            yield RewriteTask(
                self.root.given,
                self.storage,
                self._place(state, one),
                segments,
                found.marks[some],
                fates_within(fates, (segments[0]["base_offset"], segments[-1]["next_offset"])),
                next(remaining),
            )

    def _commit(
        self, planned_on: State, state: State, one: Planned, done: Sequence[Rewritten]
    ) -> tuple[State, CompactedPartition]:
        """Put what is left in the place of what was there; who was faster wins.

        The topic, and the version that the files were born at, are those that were planned on.
        """
        inputs = [file for each in done for file in each.inputs]
        outputs = [each.output for each in done if each.output is not None]
        build = operations.replace_segments(
            planned_on.topic_id,
            planned_on.version,
            inputs,
            outputs,
            {one.report.partition: one.report.cleaned_to},
        )
        attempt = Attempt(random_uuid(), "compact", this_engine())
        try:
            state = CHECKPOINTER.offer(self.log, self.log.commit(state, build, attempt))
        except CommitConflictError as exc:
            return state, replace(one.report, left=str(exc))
        except (KlogError, OSError) as exc:
            return state, self._failed(one, exc)
        stayed, _ = entries.without(one.segments.table, inputs)
        after = pa.concat_tables(
            each.select(["record_count", "size_bytes"])
            for each in (stayed, entries.table_of(outputs))
        )
        return state, replace(
            one.report,
            segments_after=len(after),
            records_after=int(after["record_count"].to_numpy().sum()),
            size_bytes_after=int(after["size_bytes"].to_numpy().sum()),
        )

    def _failed(self, one: Planned, error: KlogError | OSError) -> CompactedPartition:
        return replace(one.report, failure=Failure.of(error, one.report.topic))


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--min-dirty-ratio",
        type=float,
        metavar="R",
        help="instead of the topic's min.cleanable.dirty.ratio",
    )
    parser.add_argument(
        "--map-bytes",
        type=int,
        default=MAP_BYTES,
        metavar="N",
        help="memory for the map of keys in each task (%(default)s); more keys take more tasks",
    )


def _run(spark: SparkSession | None, given: argparse.Namespace) -> CompactReport:
    return run(
        spark,
        given.root,
        given.topic,
        min_dirty_ratio=given.min_dirty_ratio,
        map_bytes=given.map_bytes,
        dry_run=given.dry_run,
    )


COMMAND = Command(
    "compact",
    "keep each key's last record, as a broker's log cleaner does",
    """\
Topics whose cleanup.policy has compact. A partition is cleaned when more than
min.cleanable.dirty.ratio of its bytes have come since the last time, or a record has waited for
max.compaction.lag.ms; --min-dirty-ratio 0 cleans whatever is dirty. docs/jobs.md says more.""",
    _add_options,
    _run,
)
