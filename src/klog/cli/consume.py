"""`klog consume`: print the records of a topic, from a start to the current end of the log.

The options are those of the console consumer and of kcat; like `kcat -e` it exits at the end. It
decodes whole batches, as Spark's tasks do, and prints them record by record.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import BinaryIO, TypeVar

import pyarrow as pa

from klog.cli.consume_positions import ConsumeRange, consume_range, offset_at
from klog.cli.output_formats import Format, console, json_lines
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.consumer_strategy import Assign, ConsumerStrategy, Subscribe
from klog.connector.options.option_table import READ_COMMITTED
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import Root
from klog.connector.source import scan_planner
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.offset_ranges import latest_offsets
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.source.task_reader import make_reader
from klog.logformat.topic_partition import TopicPartition
from klog.tools.root_arguments import directories

T = TypeVar("T")


def consume(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the selected records. Raises `ArgumentError` for options that exclude each other."""
    try:
        offsets, output_format = consume_range(args.offset), _format(args)
    except ValueError as exc:
        raise argparse.ArgumentError(None, str(exc)) from exc
    remaining = args.max_messages
    for batch in _batches(args, offsets, output_format.columns):
        if remaining is not None:
            batch = batch.slice(0, remaining)
            remaining -= batch.num_rows
        out.write(output_format.encode(batch))
        if remaining == 0:
            break
    return 0


def _batches(
    args: argparse.Namespace, offsets: ConsumeRange, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range, partition by partition."""
    paths = directories(args.root)
    root = open_root(paths)
    strategy: ConsumerStrategy = Subscribe((args.topic,))
    if args.partition is not None:
        strategy = Assign((TopicPartition(args.topic, args.partition),))
    options = ReadOptions(
        strategy,
        committed_only=args.isolation_level == READ_COMMITTED,
        columns=columns,
    )
    resolved = retry_stale_listing(lambda: _resolve(root, options, offsets))
    reader = make_reader(paths, options)
    for task in scan_planner.plan_tasks(root, resolved, options):
        yield from reader.read(task)


def _resolve(root: Root, options: ReadOptions, offsets: ConsumeRange) -> list[ResolvedRange]:
    """Resolve the positions to the current offsets of each partition."""
    snapshot = root.snapshot()
    logs = snapshot.open(subscribed_partitions(options.consumer_strategy, snapshot))
    latest = latest_offsets(logs, options)
    resolved = []
    for name, log in logs.items():
        start_offset = offset_at(offsets.start, log, latest[name])
        end_offset = offset_at(offsets.end, log, latest[name])
        if start_offset < end_offset:
            resolved.append(
                ResolvedRange(name, log.topic_id, start_offset, end_offset, log.last_restore)
            )
    return resolved


def _format(args: argparse.Namespace) -> Format:
    if args.format is not None:
        output_format: Format = args.format
        return output_format
    return json_lines() if args.json else console(dict(args.property))
