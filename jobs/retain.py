"""Let old segments go, as `retention.ms` and `retention.bytes` say: a commit, no byte is read.

The rule is Kafka's (docs/format.md, 21; `UnifiedLog.deleteOldSegments`): segments go from the
oldest on, whole, until one does not qualify. By time one goes whose last record is older than
`retention.ms`; by size one without which the partition still has `retention.bytes`. The log start
rises to the first offset that is left. The files stay for readers until vacuum's grace is over. A
topic that is only compacted keeps all. klog has no active segment: all of a log may go.

Where no record of a segment has a timestamp (message format v0) a broker goes by its file's time;
klog, whose files are copied from store to store, lets it go with the next one that has one.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("retain")

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log import entries, operations
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.checkpointing import CHECKPOINTER
from klog.connector.log.commit import Actions
from klog.connector.log.root import now_ms
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CommitConflictError, KlogError, OptionError
from klog.jobs.choosing import chosen, open_root
from klog.jobs.command import Command, no_options
from klog.jobs.failures import FailedTopic, Failure
from klog.jobs.report import PartitionsReport
from klog.logformat.topic_config import TopicConfig, read_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class RetainedPartition:
    """What goes of a partition: how much by time and by size, and where the log begins then.

    With a `failure` it is what was to go.
    """

    topic: str
    partition: int
    log_start: int
    segments: int
    records: int
    size_bytes: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class RetainReport(PartitionsReport[RetainedPartition]):
    """What a retention let go, or would; partitions of which nothing goes are not told."""

    topics: int = 0

    def _said_of(self, one: RetainedPartition) -> dict[str, object]:
        return {
            "Topic": one.topic,
            "Partition": one.partition,
            "LogStart": one.log_start,
            "Segments": f"{one.segments:,}",
            "Records": f"{one.records:,}",
            "Bytes": f"{one.size_bytes:,}",
        }

    def _said_of_all(self) -> dict[str, object]:
        went = [one for one in self.partitions if one.failure is None]
        return {
            "Topics": self.topics,
            "WouldRemove" if self.dry_run else "Removed": _total(went, "segments"),
            "Records": _total(went, "records"),
            "Bytes": _total(went, "size_bytes"),
        }

    def _figures(self) -> Mapping[str, object]:
        return {"topics": self.topics}


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = False,
    clock_ms: Callable[[], int] = now_ms,
) -> RetainReport:
    """Apply the retention of one topic, several, or all whose `cleanup.policy` has `delete`.

    `spark` is not used and may be None: nothing is read but states. A topic whose commit fails is
    told in the report, and the others are done. Raises `OptionError` for a root without commit
    logs, a topic that is not there, and one named that is only compacted.
    """
    begun = time.monotonic()
    found = open_root(root, storage)
    report = RetainReport(found.given, dry_run)
    failed: list[FailedTopic] = []
    for log, state in chosen(found, topic, to_write=not dry_run, failed=failed):
        config = read_topic_config(state.config)
        if not config.deletes:
            if topic is not None:
                raise OptionError(
                    f"topic {log.paths.topic} keeps all its keys: its cleanup.policy has no delete"
                )
            continue
        going = list(_going(log.paths.topic, state, config, clock_ms()))
        if going and not dry_run:
            going = _let_go(log, state, going)
            if not going:
                continue  # Others let it go meanwhile.
        done = all(one.failure is None for one in going)
        report = replace(
            report, topics=report.topics + done, partitions=(*report.partitions, *going)
        )
    return replace(report, seconds=time.monotonic() - begun, failed=tuple(failed))


def _let_go(
    log: TopicLog, state: State, planned: Sequence[RetainedPartition]
) -> list[RetainedPartition]:
    """Commit what is planned, and give what went by this commit: others may have been at it.

    Nothing if somebody has deleted the topic, and with it what was to go.
    """
    starts = {one.partition: one.log_start for one in planned}
    delete = operations.delete_records(state.topic_id, starts)
    gone: list[RetainedPartition] = []

    def build(state: State) -> Actions | None:
        actions = delete(state)
        segments = state.segments.combine_chunks()
        gone[:] = [
            _retained(log.paths.topic, partition, start, _below(segments, partition, start))
            for partition, start in sorted((actions.log_start if actions else {}).items())
        ]
        return actions

    attempt = Attempt(random_uuid(), "retain", this_engine())
    try:
        CHECKPOINTER.offer(log, log.commit(state, build, attempt))
    except (KlogError, OSError) as exc:
        if isinstance(exc, CommitConflictError) and _is_deleted(log, state):
            return []
        failure = Failure.of(exc, log.paths.topic)
        return [replace(one, failure=failure) for one in planned]
    return gone


def _is_deleted(log: TopicLog, state: State) -> bool:
    """Tell whether the topic of a state is gone; where that cannot be known, it is not."""
    try:
        return log.load(state).topic_id != state.topic_id
    except (KlogError, OSError):
        return False


def _below(segments: pa.Table, partition: int, start: int) -> pa.Table:
    own = entries.of_partition(segments, partition)
    return own.filter(pc.less_equal(own["next_offset"], start))


def expired(segments: pa.Table, retention_ms: int, retention_bytes: int, now_ms: int) -> int:
    """Give how many of a partition's segments go, counted from the oldest.

    `segments` has `entries.SCHEMA`, in order of offset; a limit below 0 is none.
    """
    sizes = segments["size_bytes"].to_numpy()
    by_size = by_time = 0
    if retention_bytes >= 0:
        left = int(sizes.sum()) - np.cumsum(sizes)
        by_size = int((left >= retention_bytes).sum())
    if retention_ms >= 0:
        latest = segments["max_timestamp_ms"].to_numpy()[by_size:]
        stays = (latest != NO_TIMESTAMP) & (now_ms - latest <= retention_ms)
        by_time = int(np.argmax(stays)) if stays.any() else len(stays)
        while by_time and latest[by_time - 1] == NO_TIMESTAMP:
            by_time -= 1
    return by_size + by_time


def _going(
    topic: str, state: State, config: TopicConfig, at_ms: int
) -> Iterator[RetainedPartition]:
    segments = state.segments.combine_chunks()
    for partition in range(state.partitions):
        own = entries.of_partition(segments, partition)
        count = expired(own, config.number("retention.ms"), config.number("retention.bytes"), at_ms)
        if not count:
            continue
        gone = own.slice(0, count)
        start = state.log_end[partition]
        if count < own.num_rows:
            start = own["base_offset"][count].as_py()
        yield _retained(topic, partition, max(start, state.log_start[partition]), gone)


def _retained(topic: str, partition: int, log_start: int, gone: pa.Table) -> RetainedPartition:
    return RetainedPartition(
        topic,
        partition,
        log_start,
        gone.num_rows,
        int(gone["record_count"].to_numpy().sum()),
        int(gone["size_bytes"].to_numpy().sum()),
    )


def _total(partitions: Sequence[RetainedPartition], name: str) -> str:
    return f"{sum(getattr(one, name) for one in partitions):,}"


def _run(spark: SparkSession | None, given: argparse.Namespace) -> RetainReport:
    return run(spark, given.root, given.topic, dry_run=given.dry_run)


COMMAND = Command(
    "retain",
    "let old segments go, as retention.ms and retention.bytes say",
    """\
Topics whose cleanup.policy has delete. A commit raises the log start; the files go with the next
vacuum after its grace. docs/jobs.md says more.""",
    no_options,
    _run,
)
