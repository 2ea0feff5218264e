"""A batch read from options to Arrow, without Spark: resolve the offsets, plan, read.

Spark's sources, the command line and `klog.open` call this.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.connector.options.spark_paths import read_paths
from klog.connector.options.storage_options import StorageOptions, parse_storage_options
from klog.connector.snapshot import PartitionSnapshot, Root, Snapshot
from klog.connector.source.data_loss import BATCH_REMEDY, find_loss, stream_remedy
from klog.connector.source.offset_ranges import OffsetRange, ResolvedRange, batch_ranges
from klog.connector.source.planner_cache import PLANNER_CACHE, Logs
from klog.connector.source.read_plan import plan
from klog.connector.source.record_counter import count_records
from klog.connector.source.slice_contract import TaskDict, expand_task
from klog.connector.source.slice_reader import SliceReader
from klog.connector.source.slices import Slice
from klog.connector.source.subscription import describe_topics, subscribed_partitions
from klog.errors import KlogError, OptionError
from klog.logformat.topic_partition import TopicPartition


def log_directories(options: Mapping[str, str]) -> list[str]:
    """Return the roots that `load()` names.

    Args:
        options: The options as Spark hands them over.

    Raises:
        OptionError: As `read_paths`.
    """
    return read_paths(options, lambda path: Path(path).is_dir())


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


def try_resolve_offsets(
    options: Mapping[str, str], shared_options: ReadOptions
) -> list[ResolvedRange] | None:
    """Resolve the offsets at `load()`, when a batch and a stream look the same.

    What was read for it stays in the planner's cache.

    Args:
        options: The options as Spark gives them.
        shared_options: Those that mean the same for a batch and a stream, parsed.

    Returns:
        The ranges, or None if they are wrong for a batch: its reader says so, in its own words.

    Raises:
        OptionError: If something is wrong for both: no such directory, no such topic.
    """
    directories = log_directories(options)
    root = open_root(directories, shared_options.storage)
    snapshot = root.snapshot()
    subscribed_partitions(shared_options.consumer_strategy, snapshot)
    snapshots = chain([snapshot], (root.snapshot() for _ in count()))
    try:
        read_options = parse_read_options(options)
        ranges = retry_stale_listing(lambda: _ranges(next(snapshots), read_options))
    except (KlogError, OSError):
        return None
    resolved = [offset_range.resolved() for offset_range in ranges]
    logs = {offset_range.log.name: offset_range.log for offset_range in ranges}
    PLANNER_CACHE.put(_cache_key(directories, resolved, shared_options), logs)
    return resolved


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
    directories: Sequence[str], resolved: list[ResolvedRange] | None, options: ReadOptions
) -> list[TaskDict]:
    """Plan what `load()` resolved: the first time from what it read, if that is still here.

    Args:
        directories: The roots of the read.
        resolved: The ranges; None if `load()` did not resolve them.
        options: The options of the read.

    Raises:
        DataLossError: As `plan_tasks` does.
    """
    if resolved is None:
        root = open_root(directories, options.storage)
        return retry_stale_listing(lambda: plan_snapshot(root.snapshot(), options))
    logs = PLANNER_CACHE.take(_cache_key(directories, resolved, options))
    if logs is not None:
        with suppress(FileNotFoundError):
            return plan_logs(logs, resolved, options)
    return plan_tasks(open_root(directories, options.storage), resolved, options)


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
    logs: Logs, resolved: Sequence[ResolvedRange], options: ReadOptions
) -> list[TaskDict]:
    """Plan resolved ranges of partitions that are open.

    Args:
        logs: The partitions; one that is not here was deleted.
        resolved: The ranges.
        options: The options of the read.

    Returns:
        The tasks.

    Raises:
        DataLossError: As `plan_tasks` does.
        FileNotFoundError: If the root has to be listed again.
    """
    ranges = (_still_there(logs.get(planned.name), planned, options) for planned in resolved)
    return plan([r for r in ranges if r is not None], options.task_limits)


def make_reader(directories: Sequence[str], options: ReadOptions) -> SliceReader:
    """Return the reader that tasks use.

    Args:
        directories: The roots of the read.
        options: The options of the read.
    """
    return SliceReader(
        options.columns,
        Replanner(tuple(directories), options.storage),
        options.fail_on_data_loss,
        options.storage,
        stream_remedy("what is left") if options.is_streaming else BATCH_REMEDY,
    )


@dataclass(frozen=True, slots=True)
class Replanner:
    """Plans a slice again in the task that finds its file changed; pickles with its reader."""

    directories: tuple[str, ...]
    storage: StorageOptions

    def __call__(self, slice_: Slice) -> tuple[int, list[Slice]]:
        """Return the log start now, and slices for the offsets that are left."""
        root = open_root(self.directories, self.storage)
        name = TopicPartition(slice_.topic, slice_.partition)

        def plan_now() -> tuple[int, list[Slice]]:
            snapshot = root.snapshot()
            log = snapshot.open([name])[name] if name in snapshot else None
            if log is None or log.topic_id != slice_.topic_id:
                return slice_.end_offset, []
            start, end = max(slice_.start_offset, log.log_start), slice_.end_offset
            if start >= end:
                return log.log_start, []
            tasks = plan([OffsetRange(log, start, end, slice_.committed_only)], use_indexes=False)
            return log.log_start, [again for task in tasks for again in expand_task(task)]

        return retry_stale_listing(plan_now)


def _ranges(snapshot: Snapshot, options: ReadOptions) -> list[OffsetRange]:
    return batch_ranges(
        snapshot.open(subscribed_partitions(options.consumer_strategy, snapshot)), options
    )


def _still_there(
    log: PartitionSnapshot | None, planned: ResolvedRange, options: ReadOptions
) -> OffsetRange | None:
    """Return what is left of a range; report what is gone."""
    start, end = planned.start_offset, planned.end_offset
    loss = find_loss(log, planned.topic_id, start, end)
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


def _cache_key(
    directories: Sequence[str], resolved: Sequence[ResolvedRange], options: ReadOptions
) -> Hashable:
    return tuple(directories), options.storage, tuple(resolved)
