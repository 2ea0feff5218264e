"""`klog count`: how many records of each partition a consumer gets."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import BinaryIO

from klog.cli.partition_numbers import Numbers, print_numbers
from klog.connector.options.consumer_strategy import Assign
from klog.connector.options.offset_range_limit import LimitsByPartition, OffsetRangeLimit
from klog.connector.options.offset_range_values import OFFSET_RANGE_LIMIT, for_missing_times
from klog.connector.options.option_defaults import READ_COMMITTED
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import Snapshot
from klog.connector.source import scan_planner
from klog.connector.source.offset_ranges import limits_by_partition
from klog.connector.source.task_reader import make_reader
from klog.logformat.topic_partition import TopicPartition
from klog.tools.root_arguments import directories


def count(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the counts. Raises `OptionError` if a bound is wrong or nothing is selected."""
    starting, ending = (
        for_missing_times(OFFSET_RANGE_LIMIT.value(option, text), latest_if_no_match=True)
        for option, text in (("--start", args.start), ("--end", args.end))
    )
    paths = directories(args.root)
    options = ReadOptions(
        Assign(()),
        starting=starting,
        ending=ending,
        starting_option="--start",
        ending_option="--end",
        committed_only=args.isolation_level == READ_COMMITTED,
    )
    reader = make_reader(paths, options)

    def check(names: Sequence[TopicPartition], unreadable: Collection[str]) -> None:
        for option, limit in (("--start", starting), ("--end", ending)):
            listed = limit.limits if isinstance(limit, LimitsByPartition) else ()
            unchecked = [name for name in listed if name.topic in unreadable]
            limits_by_partition(option, limit, [*names, *unchecked])

    def find(snapshot: Snapshot, names: Sequence[TopicPartition]) -> Numbers:
        read_options = replace(
            options,
            consumer_strategy=Assign(tuple(names)),
            starting=_limit_of(starting, names),
            ending=_limit_of(ending, names),
        )
        counts = scan_planner.count_snapshot(snapshot, read_options, reader)
        return {name: counts.get(name, 0) for name in names}

    return print_numbers(args, out, "records", find, check)


def _limit_of(limit: OffsetRangeLimit, names: Iterable[TopicPartition]) -> OffsetRangeLimit:
    """Return the part of a limit that is about some of its partitions."""
    if not isinstance(limit, LimitsByPartition):
        return limit
    return LimitsByPartition({name: limit.limits[name] for name in names if name in limit.limits})
