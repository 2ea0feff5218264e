"""`klog consume`: print the records of topics, from a start to the current end of the log.

The options are those of the console consumer and of kcat. Like `kcat -e` it exits at the end,
unless `--follow` makes it wait for more. It decodes whole batches, as Spark's tasks do, and prints
them record by record.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa

from klog.cli.consume_positions import ConsumeRange, consume_range, offset_at, offsets_at
from klog.cli.consume_values import ValueColumns, value_columns
from klog.cli.output_formats import Format, console, json_lines
from klog.cli.output_reader import wait_while_read
from klog.cli.topic_tail import TopicTail
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.as_of import parse_as_of
from klog.connector.options.consumer_strategy import Assign, ConsumerStrategy, Subscribe
from klog.connector.options.offset_range_limit import LATEST
from klog.connector.options.option_defaults import READ_COMMITTED
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import Root
from klog.connector.source import scan_planner
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.offset_ranges import latest_offsets
from klog.connector.source.past_root import PastRoot
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.source.task_reader import make_reader
from klog.jobs.shared.value_options import credentials_environment
from klog.logformat.topic_partition import TopicPartition
from klog.tools.root_arguments import directories

AS_OF_FLAGS = ("--as-of-version", "--as-of-timestamp")


def consume(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the selected records. Raises `ArgumentError` for options that exclude each other."""
    values = value_columns(args, credentials_environment())
    try:
        offsets, output_format = consume_range(args.offset), _format(args, values)
    except ValueError as exc:
        raise argparse.ArgumentError(None, str(exc)) from exc
    if args.follow and offsets.end != LATEST:
        raise argparse.ArgumentError(None, "--follow: has no end. Leave out --follow or e@...")
    if args.follow and not (args.as_of_version is None and args.as_of_timestamp is None):
        raise argparse.ArgumentError(
            None, "--follow: nothing comes to an earlier version. Leave out --follow"
        )
    remaining = args.max_messages
    follow = args.follow and remaining != 0
    columns = values.columns(output_format.columns)
    for batch in _batches(args, offsets, columns, out, follow=follow):
        if remaining is not None:
            batch = batch.slice(0, remaining)
            remaining -= batch.num_rows
        for decoded in values.decode(batch, is_json=args.json):
            out.write(output_format.encode(decoded))
        if follow:
            out.flush()
        if remaining == 0:
            break
    return 0


def _batches(
    args: argparse.Namespace,
    offsets: ConsumeRange,
    columns: tuple[str, ...],
    out: BinaryIO,
    *,
    follow: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range, partition by partition, or those that come."""
    paths = directories(args.root)
    root: Root = open_root(paths)
    options = ReadOptions(
        _strategy(args),
        committed_only=args.isolation_level == READ_COMMITTED,
        columns=columns,
    )
    as_of = parse_as_of(args.as_of_version, args.as_of_timestamp, AS_OF_FLAGS)
    if as_of is not None:
        as_of = PastRoot(root, options.consumer_strategy, as_of).snapshot().resolved(as_of)
        options = replace(options, as_of=as_of)
        root = PastRoot(root, options.consumer_strategy, as_of)
    reader = make_reader(paths, options)
    if follow:
        tail = TopicTail(
            root, options, reader, lambda log, latest: offset_at(offsets.start, log, latest)
        )
        yield from tail.follow(lambda seconds: wait_while_read(out, seconds))
        return
    resolved = retry_stale_listing(lambda: _resolve(root, options, offsets))
    for task in scan_planner.plan_tasks(root, resolved, options):
        yield from reader.read(task)


def _strategy(args: argparse.Namespace) -> ConsumerStrategy:
    """Return the topics to read, or the partition with one number of each of them."""
    if args.partition is None:
        return Subscribe(tuple(dict.fromkeys(args.topic)))
    names = tuple(TopicPartition(topic, args.partition) for topic in args.topic)
    return Assign(names, must_exist=True)


def _resolve(root: Root, options: ReadOptions, offsets: ConsumeRange) -> list[ResolvedRange]:
    """Resolve the positions to the current offsets of each partition."""
    snapshot = root.snapshot()
    logs = snapshot.open(subscribed_partitions(options.consumer_strategy, snapshot))
    latest = latest_offsets(logs, options)
    starts = offsets_at(offsets.start, logs, latest)
    ends = offsets_at(offsets.end, logs, latest)
    resolved = []
    for name, log in logs.items():
        start_offset, end_offset = starts[name], ends[name]
        if start_offset < end_offset:
            resolved.append(
                ResolvedRange(name, log.topic_id, start_offset, end_offset, log.last_restore)
            )
    return resolved


def _format(args: argparse.Namespace, values: ValueColumns) -> Format:
    if args.format is not None:
        output_format: Format = args.format
        return output_format
    return json_lines(values.sides) if args.json else console(dict(args.property))
