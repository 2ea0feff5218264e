"""What `klog.open` says of a topic's partitions without reading records: offsets and counts.

The rule: the result has every partition of the topic, by its number. Bounds and isolation level are
those of a scan, and so is what counts.
"""

from __future__ import annotations

from typing import Any

from klog.connector.limit_offsets import list_offsets
from klog.connector.options.as_of import AsOf
from klog.connector.options.consumer_strategy import Subscribe
from klog.connector.options.offset_range_limit import PartitionLimit
from klog.connector.options.option_defaults import READ_COMMITTED
from klog.connector.options.read_option_table import ISOLATION_LEVEL
from klog.connector.options.read_options import ReadOptions
from klog.connector.scan_bounds import Bound, resolve_bounds
from klog.connector.snapshot import Root, Snapshot
from klog.connector.source import scan_planner
from klog.connector.source.past_root import PastRoot
from klog.connector.source.task_reader import make_reader
from klog.connector.system_clock import now_ms
from klog.logformat.topic_partition import TopicPartition


def snapshot_as_of(
    now: Snapshot, root: Root | None, topic: str, as_of: AsOf | None
) -> tuple[Snapshot, AsOf | None]:
    """Return the snapshot that a read asks for, and its version; None for now.

    Args:
        now: A snapshot of now, which has the topic.
        root: The root that it is of.
        topic: The topic.
        as_of: The earlier version that the read asks for; None for now.

    Raises:
        OptionError: The version cannot be read.
    """
    if as_of is None:
        return now, None
    assert root is not None, "a root that has the topic is known"
    past = PastRoot(root, topic, as_of).past_of(now)
    return past, past.resolved(as_of)


def read_options_of(
    snapshot: Snapshot, topic: str, start: Bound, end: Bound, **options: Any
) -> ReadOptions:
    """Return the options of a read of one topic.

    Args:
        snapshot: The root; it has the topic.
        topic: The topic.
        start: Where the read starts.
        end: Where it ends.
        **options: Other attributes of `ReadOptions`.

    Raises:
        OptionError: As `resolve_bounds`.
        OffsetOutOfRangeError: As `resolve_bounds`.
    """
    starting, ending = resolve_bounds(snapshot, topic, start, end)
    return ReadOptions(Subscribe((topic,)), starting=starting, ending=ending, **options)


def committed_only(isolation_level: str) -> bool:
    """Return whether an isolation level leaves out records of aborted and open transactions.

    Args:
        isolation_level: The parameter of that name.

    Raises:
        OptionError: It is not an isolation level.
    """
    level = ISOLATION_LEVEL.parser.value("isolation_level", isolation_level)
    return bool(level == READ_COMMITTED)


def offsets_of(snapshot: Snapshot, topic: str, limit: PartitionLimit) -> dict[int, int | None]:
    """Return the offset that a limit means in each partition; None if it means none.

    Args:
        snapshot: The root; it has the topic.
        topic: The topic.
        limit: The limit.
    """
    names = [TopicPartition(topic, number) for number in snapshot.topics[topic]]
    offsets = list_offsets(snapshot, names, limit, now_ms())
    return {name.partition: offset for name, offset in offsets.items()}


def counts_of(path: str, snapshot: Snapshot, topic: str, options: ReadOptions) -> dict[int, int]:
    """Return how many records of each partition a read returns.

    Args:
        path: The path or URL of the root.
        snapshot: The root; it has the topic.
        topic: The topic.
        options: The options of the read.
    """
    reader = make_reader([path], options)
    counts = scan_planner.count_snapshot(snapshot, options, reader)
    return {
        number: counts.get(TopicPartition(topic, number), 0) for number in snapshot.topics[topic]
    }
