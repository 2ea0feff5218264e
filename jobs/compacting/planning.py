"""Which partitions of a topic a compaction cleans, and which segments of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from klog.connector.log import entries
from klog.connector.log.state import State
from klog.jobs.compacting.cleanable import Cleanable, Lags, cleanable
from klog.jobs.compacting.report import CompactedPartition
from klog.jobs.entry_rows import EntryRows
from klog.logformat.topic_config import TopicConfig

WAVE_RECORDS = 1 << 31
"""Of so many records the driver holds the marks at a time, two bits each."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A partition, what of it is cleanable, and the segments below and behind."""

    report: CompactedPartition
    cleanable: Cleanable
    segments: EntryRows
    behind: EntryRows


def plan(
    topic: str, state: State, config: TopicConfig, min_dirty_ratio: float | None, now_ms: int
) -> list[Planned]:
    """Say of each partition what is cleanable, and whether it is due."""
    ratio = config.values["min.cleanable.dirty.ratio"]
    assert isinstance(ratio, float)
    lags = Lags(
        ratio if min_dirty_ratio is None else min_dirty_ratio,
        config.number("min.compaction.lag.ms"),
        config.number("max.compaction.lag.ms"),
    )
    segments = state.segments.combine_chunks()
    return [_planned(topic, state, segments, one, lags, now_ms) for one in range(state.partitions)]


def _planned(
    topic: str, state: State, segments: pa.Table, partition: int, lags: Lags, now_ms: int
) -> Planned:
    own = entries.of_partition(segments, partition)
    start, end = state.log_start[partition], state.log_end[partition]
    found = cleanable(own, start, end, state.cleaned_to.get(partition, 0), lags, now_ms)
    below = own.slice(0, found.behind)
    report = CompactedPartition(
        topic,
        partition,
        found.dirty_ratio,
        found.dirty_from,
        found.end,
        below.num_rows,
        int(below["record_count"].to_numpy().sum()),
        found.clean_bytes + found.dirty_bytes,
    )
    if not found.dirty_bytes:
        report = replace(report, left="nothing is dirty")
    elif not found.is_due:
        report = replace(report, left="its dirty ratio is not above the least")
    return Planned(report, found, EntryRows(below), EntryRows(own.slice(found.behind)))


def waves(planned: Iterable[Planned], most_records: int = WAVE_RECORDS) -> Iterator[list[Planned]]:
    """Cut partitions, in their order, into runs of so many records that are due, one at least."""
    some: list[Planned] = []
    records = 0
    for one in planned:
        more = 0 if one.report.left else one.report.records
        if some and records + more > most_records:
            yield some
            some, records = [], 0
        some.append(one)
        records += more
    if some:
        yield some
