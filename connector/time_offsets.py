"""Offsets of times in many partitions at once, of both kinds of root.

The rule: the partitions of one topic of a klog root are looked up together. Those of a broker's
directory are looked up side by side, if their store gains by it. The answer for a partition does
not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

from klog.connector.commit_log.committed_snapshot import CommittedPartition
from klog.connector.kafka_dir.raw_partition import RawPartition
from klog.connector.snapshot import PartitionSnapshot
from klog.connector.store.parallel_reads import read_in_order

T = TypeVar("T")


class TimeLookup(NamedTuple):
    """A time to look up in a partition.

    Attributes:
        log: The partition.
        timestamp_ms: The time, in ms since the epoch.
        end_offset: Records at or above this offset do not count.
    """

    log: PartitionSnapshot
    timestamp_ms: int
    end_offset: int


def first_offsets_at_times(lookups: Sequence[TimeLookup]) -> list[int | None]:
    """Return for each lookup the offset of the first record at or after its time.

    Args:
        lookups: The times, at most one for a partition.

    Returns:
        The offsets, in the order of the lookups; None if there is no such record.

    Raises:
        CorruptFileError: A segment that has to be read is damaged.
        FileNotFoundError: The root has to be listed again.
    """
    if not lookups:
        return []
    from klog.connector.commit_log.partition_times import find_first_offsets  # It decodes batches.

    def find_committed(
        logs: Sequence[CommittedPartition], numbers: Sequence[int]
    ) -> list[int | None]:
        times = [lookups[number].timestamp_ms for number in numbers]
        return find_first_offsets(logs, times, [lookups[number].end_offset for number in numbers])

    def find(number: int) -> int | None:
        log, timestamp_ms, end_offset = lookups[number]
        return log.offset_for_time(timestamp_ms, end_offset)

    return _find_all([lookup.log for lookup in lookups], find_committed, find)


def max_timestamps(logs: Sequence[PartitionSnapshot]) -> list[int | None]:
    """Return the largest timestamp of each partition; None for one without records.

    Args:
        logs: The partitions.

    Raises:
        CorruptFileError: A segment that has to be read is damaged.
        FileNotFoundError: The root has to be listed again.
    """
    if not logs:
        return []
    from klog.connector.commit_log.partition_times import find_max_timestamps

    return _find_all(
        logs,
        lambda committed, _: find_max_timestamps(committed),
        lambda number: logs[number].max_timestamp_ms(),
    )


def _find_all(
    logs: Sequence[PartitionSnapshot],
    find_committed: Callable[[Sequence[CommittedPartition], Sequence[int]], list[T]],
    find: Callable[[int], T],
) -> list[T]:
    """Return what is found for each partition, in order; the others have a group each."""
    groups: dict[Hashable, list[int]] = {}
    for number, log in enumerate(logs):
        if isinstance(log, CommittedPartition):
            key: Hashable = (id(log.table), id(log.files))
        else:
            key = id(log.store) if isinstance(log, RawPartition) else None
        groups.setdefault(key, []).append(number)
    results: dict[int, T] = {}
    for numbers in groups.values():
        committed = [log for n in numbers if isinstance(log := logs[n], CommittedPartition)]
        first = logs[numbers[0]]
        if committed:
            values = find_committed(committed, numbers)
        else:
            parallel = first.store.max_parallel_reads if isinstance(first, RawPartition) else 1
            values = list(read_in_order(find, numbers, parallel))
        results.update(zip(numbers, values, strict=True))
    return [results[number] for number in range(len(logs))]
