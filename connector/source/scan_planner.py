"""A batch read from options to Arrow, without Spark: resolve the offsets, plan, read.

Spark's sources, the command line and `klog.open` call this.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, repeat
from typing import TypeVar

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.as_of import AsOf
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.connector.options.spark_paths import log_directories
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.connector.snapshot import Logs, PartitionSnapshot, Root, Snapshot
from klog.connector.source.data_loss import find_loss
from klog.connector.source.live_broker_logs import find_python_reason
from klog.connector.source.load_plan import (
    MAX_BYTES,
    MAX_SLICES,
    LoadPlan,
    LogSize,
    ResolvedRange,
)
from klog.connector.source.offset_ranges import OffsetRange, batch_ranges
from klog.connector.source.past_root import PastRoot
from klog.connector.source.read_plan import plan
from klog.connector.source.record_counter import count_records
from klog.connector.source.root_cache import ROOTS
from klog.connector.source.row_bounds import ALL_ROWS, RowBounds
from klog.connector.source.slice_contract import TaskDict, expand_task, slice_count
from klog.connector.source.slice_reader import SliceReader
from klog.connector.source.slices import Slice
from klog.connector.source.subscription import describe_topics, subscribed_partitions
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, OptionError
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

T = TypeVar("T")


def no_subscription_error(options: Mapping[str, str]) -> OptionError:
    """Return the error of a read that does not say which topics: it names those that there are.

    Args:
        options: The options as Spark gives them.

    Raises:
        OptionError: As `open_root`: there is no such directory.
    """
    root = open_root(log_directories(options), parse_storage_options(options))
    return OptionError(
        "subscribe, subscribePattern, assign: must set exactly one, got none; "
        f'{describe_topics(root.snapshot())}. Example: .option("subscribePattern", ".*") reads all'
    )


def try_resolve_offsets(options: Mapping[str, str], shared_options: ReadOptions) -> LoadPlan | None:
    """Resolve the offsets at `load()`, when a batch and a stream look the same; plan a small read.

    It does not warn of anything that is of a batch only: the reader of the batch does.

    Args:
        options: The options as Spark gives them.
        shared_options: Those that mean the same for a batch and a stream, parsed.

    Returns:
        The plan, or None if the offsets are wrong for a batch: its reader says so, in its own
        words.

    Raises:
        OptionError: If something is wrong for both: no such directory, no such topic.
    """
    directories = log_directories(options)
    root = ROOTS.open(directories, shared_options.storage)
    snapshot = root.snapshot()
    subscribed_partitions(shared_options.consumer_strategy, snapshot, _be_silent)
    snapshots: Iterator[Snapshot] = chain([snapshot], (root.snapshot() for _ in count()))
    offset_warnings: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_options = parse_read_options(options)
        if read_options.as_of is not None:
            past_root = PastRoot(root, read_options.consumer_strategy, read_options.as_of)
            past = past_root.past_of(snapshot)
            read_options = replace(read_options, as_of=past.resolved(read_options.as_of))
            snapshots = repeat(past)

        def resolve_now() -> tuple[Logs, list[OffsetRange]]:
            offset_warnings.clear()
            logs = _open(next(snapshots), read_options, offset_warnings.append)
            return logs, batch_ranges(logs, read_options, now_ms(), offset_warnings.append)

        logs, ranges = retry_stale_listing(resolve_now)
    except (KlogError, OSError):
        return None
    resolved = [offset_range.resolved() for offset_range in ranges]
    tasks = _small_plan(ranges, read_options)
    reason = find_python_reason(
        (offset_range.log for offset_range in ranges),
        fail_on_data_loss=read_options.fail_on_data_loss,
    )
    return LoadPlan(
        resolved,
        tasks,
        time.monotonic(),
        _size_of(logs),
        root.is_klog_root,
        read_options.as_of,
        tuple(offset_warnings),
        reason,
    )


def _size_of(logs: Logs) -> LogSize:
    return LogSize(
        sum(log.segment_count for log in logs.values()),
        sum(log.size_bytes for log in logs.values()),
    )


def _small_plan(ranges: Sequence[OffsetRange], options: ReadOptions) -> list[TaskDict] | None:
    """Return the tasks of a small read; None if it is large, or its planner has to say an error."""
    sizes = (r.log.bytes_between(r.start_offset, r.end_offset) for r in ranges)
    if sum(sizes) > MAX_BYTES:
        return None
    try:
        tasks = plan(list(ranges), options.task_limits, decide_markers=options.engine != "python")
    except (KlogError, OSError):
        return None
    return tasks if sum(map(slice_count, tasks)) <= MAX_SLICES else None


def plan_snapshot(snapshot: Snapshot, options: ReadOptions) -> list[TaskDict]:
    """Plan a read of what a snapshot has.

    Args:
        snapshot: A snapshot of the root.
        options: The options of the read.

    Returns:
        The tasks.
    """
    return plan(_ranges(snapshot, options), options.task_limits)


def count_snapshot(
    snapshot: Snapshot, options: ReadOptions, reader: SliceReader
) -> Mapping[TopicPartition, int]:
    """Count the records that a read of what a snapshot has would return.

    Args:
        snapshot: A snapshot of the root.
        options: The options of the read.
        reader: What `make_reader` returns for them.

    Returns:
        The number of records of each partition that has offsets to read.
    """
    return count_records(_ranges(snapshot, options), reader)


def plan_load(
    directories: Sequence[str], load_plan: LoadPlan | None, options: ReadOptions
) -> list[TaskDict]:
    """Plan what `load()` resolved, from what the log has now.

    Args:
        directories: The roots of the read.
        load_plan: What `load()` resolved; None if it could not.
        options: The options of the read.

    Raises:
        DataLossError: As `plan_tasks` does.
    """

    def plan_ranges(ranges: list[OffsetRange]) -> list[TaskDict]:
        return plan(ranges, options.task_limits)

    return with_load_ranges(directories, load_plan, options, plan_ranges)


def with_load_ranges(
    directories: Sequence[str],
    load_plan: LoadPlan | None,
    options: ReadOptions,
    use: Callable[[list[OffsetRange]], T],
    bounds: RowBounds = ALL_ROWS,
) -> T:
    """Open the ranges that `load()` resolved, in what the log has now, and use them.

    Args:
        directories: The roots of the read.
        load_plan: What `load()` resolved; None if it could not.
        options: The options of the read.
        use: Called with the ranges; again if the root has to be listed again.
        bounds: The rows that are wanted of the read.

    Raises:
        DataLossError: As `plan_tasks` does.
    """
    root = _root_of(ROOTS.open(directories, options.storage), options)

    def use_now() -> T:
        snapshot = root.snapshot()
        if load_plan is None:
            ranges = _ranges(snapshot, options)
            logs: Logs = {offset_range.log.name: offset_range.log for offset_range in ranges}
            resolved = bounds.within(offset_range.resolved() for offset_range in ranges)
        else:
            resolved = bounds.within(load_plan.ranges)
            logs = snapshot.open([r.name for r in resolved if r.name in snapshot])
        return use(_parts_in_time(_present_ranges(logs, resolved, options), bounds))

    return retry_stale_listing(use_now)


def _parts_in_time(ranges: Sequence[OffsetRange], bounds: RowBounds) -> list[OffsetRange]:
    """Return what is left of ranges between the times that bounds have."""
    parts = []
    for offset_range in ranges:
        start, end = bounds.within_times(
            offset_range.log, offset_range.start_offset, offset_range.end_offset
        )
        if start < end:
            parts.append(replace(offset_range, start_offset=start, end_offset=end))
    return parts


def plan_tasks(
    root: Root, resolved: Sequence[ResolvedRange], options: ReadOptions
) -> list[TaskDict]:
    """Plan resolved ranges from what the root holds now.

    Args:
        root: The root.
        resolved: The ranges.
        options: The options of the read.

    Returns:
        The tasks.

    Raises:
        DataLossError: If a partition has gone, or its first offsets were deleted, since the ranges
            were resolved. With `failOnDataLoss=false` what is left is planned.
    """
    names = [resolved_range.name for resolved_range in resolved]

    def plan_now() -> list[TaskDict]:
        snapshot = root.snapshot()
        logs = snapshot.open([name for name in names if name in snapshot])
        return plan_logs(logs, resolved, options)

    return retry_stale_listing(plan_now)


def plan_logs(
    logs: Logs,
    resolved: Sequence[ResolvedRange],
    options: ReadOptions,
    *,
    decide_markers: bool = False,
) -> list[TaskDict]:
    """Plan resolved ranges of partitions that are open.

    Args:
        logs: The partitions; one that is not here was deleted.
        resolved: The ranges.
        options: The options of the read.
        decide_markers: See `read_plan.plan`.

    Returns:
        The tasks.

    Raises:
        DataLossError: As `plan_tasks` does.
        FileNotFoundError: If the root has to be listed again.
    """
    ranges = _present_ranges(logs, resolved, options)
    return plan(ranges, options.task_limits, decide_markers=decide_markers)


def _present_ranges(
    logs: Logs, resolved: Sequence[ResolvedRange], options: ReadOptions
) -> list[OffsetRange]:
    """Return what is left of ranges in partitions that are open; report what is gone."""
    ranges = (_still_there(logs.get(planned.name), planned, options) for planned in resolved)
    return [r for r in ranges if r is not None]


def plan_slice_again(
    directories: Sequence[str],
    storage: StorageOptions,
    slice_: Slice,
    report_hole: Callable[[int], None],
    as_of: AsOf | None = None,
) -> tuple[int, list[Slice]]:
    """Return the log start now, and slices for the offsets of a slice that are left.

    Args:
        directories: The roots of the read.
        storage: The options of their stores.
        slice_: A slice whose file has changed.
        report_hole: Called with the first offset that has no record any more: a restore has taken
            it back.
        as_of: The earlier version that is read; None for what the topics have now.

    Raises:
        OptionError: The file is of an earlier version, and vacuum has deleted it.
    """
    name = TopicPartition(slice_.topic, slice_.partition)
    root = open_root(directories, storage)
    root = root if as_of is None else PastRoot(root, slice_.topic, as_of)

    def plan_now() -> tuple[int, list[Slice]]:
        snapshot = root.snapshot()
        log = snapshot.open([name])[name] if name in snapshot else None
        if log is None or log.topic_id != slice_.topic_id:
            return slice_.end_offset, []
        start, end = max(slice_.start_offset, log.log_start), slice_.end_offset
        if start >= end:
            return log.log_start, []
        if (hole := log.first_hole(start, end)) is not None:
            report_hole(hole)
        tasks = plan([OffsetRange(log, start, end, slice_.committed_only)], use_indexes=False)
        return log.log_start, [again for task in tasks for again in expand_task(task)]

    return retry_stale_listing(plan_now)


def _root_of(root: Root, options: ReadOptions) -> Root:
    """Return the root of a read, as of now or of an earlier version."""
    if options.as_of is None:
        return root
    return PastRoot(root, options.consumer_strategy, options.as_of)


def _ranges(
    snapshot: Snapshot, options: ReadOptions, warn: Callable[[str], None] = _log.warning
) -> list[OffsetRange]:
    return batch_ranges(_open(snapshot, options, warn), options, now_ms(), warn)


def _open(snapshot: Snapshot, options: ReadOptions, warn: Callable[[str], None]) -> Logs:
    return snapshot.open(subscribed_partitions(options.consumer_strategy, snapshot, warn))


def _be_silent(_warning: str) -> None:
    """Drop the warning: the reader gives it."""


def _still_there(
    log: PartitionSnapshot | None, planned: ResolvedRange, options: ReadOptions
) -> OffsetRange | None:
    """Return what is left of a range; report what is gone."""
    start, end = planned.start_offset, planned.end_offset
    loss = find_loss(log, planned)
    if loss is not None:
        loss.report(
            planned.name,
            is_streaming=options.is_streaming,
            fail_on_data_loss=options.fail_on_data_loss,
        )
    if log is None or (planned.topic_id and log.topic_id != planned.topic_id):
        return None
    start, end = max(start, log.log_start), min(end, log.readable_end)
    return OffsetRange(log, start, end, options.committed_only) if start < end else None
