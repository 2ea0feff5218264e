"""`klog consume`: print the records of a topic, from a start to the current end of the log.

The options are those of the console consumer and of kcat; like `kcat -e` it exits at the end. It
decodes whole batches, as Spark's tasks do, and prints them record by record.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa

from klog.cli.consume_positions import ConsumeRange, consume_range, offset_at, parse_position
from klog.cli.output_formats import Format, console, json_lines, kcat
from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.open_root import open_root
from klog.connector.options.consumer_strategy import Assign, ConsumerStrategy, Subscribe
from klog.connector.options.option_table import READ_COMMITTED, READ_UNCOMMITTED
from klog.connector.options.read_options import ReadOptions
from klog.connector.snapshot import Root
from klog.connector.source import scan_planner
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.offset_ranges import latest_offsets
from klog.connector.source.subscription import subscribed_partitions
from klog.connector.source.task_reader import make_reader
from klog.jobs.shared.argument_values import name_and_value
from klog.logformat.topic_partition import TopicPartition
from klog.tools.root_arguments import directories

T = TypeVar("T")

_HELP = """\
Prints the values, one per line, partition by partition, from the beginning to the current end of
the log, and exits.

-o, --offset: where to start in each partition
  earliest, beginning   the first record in the log (the default; the same as --from-beginning)
  latest, end           the end of the log: prints nothing
  N                     offset N
  -N                    the last N offsets
  s@MS                  the first record at or after a time in ms since 1970
  e@MS                  stop before the first record at or after a time; combines with a start

-f FORMAT, as in kcat: %t topic, %p partition, %o offset, %k key, %s value, %T timestamp in ms,
  %h headers (k=v,k=v), %K and %S length of key and value in bytes (-1 for null), %R length of the
  value as 4 bytes, big-endian, %% a percent sign; \\n \\t \\r \\xNN. Null is printed as NULL. End
  the format with \\n to print one record per line.

--formatter-property NAME=VALUE, --property, as in kafka-console-consumer; repeatable:
  print.timestamp, print.partition, print.offset, print.headers, print.key, print.value (true or
  false); key.separator, line.separator, headers.separator, null.literal (null)

--json: one object per line; bytes that are not UTF-8 are {"base64": ...}

Records of open and aborted transactions are skipped, unless --isolation-level is
read_uncommitted."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `consume` to a command line."""
    parser = verbs.add_parser(
        "consume", parents=[common], help="print the records of a topic", epilog=_HELP
    )
    parser.set_defaults(run=consume, parser=parser)
    parser.add_argument("--topic", required=True, metavar="T", help="the topic's full name")
    parser.add_argument(
        "--partition", type=_usage(_natural), metavar="P", help="read only this one"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning", action="store_true", help="start at the first record (the default)"
    )
    start.add_argument(
        "-o",
        "--offset",
        type=_usage(parse_position),
        action="append",
        default=[],
        metavar="WHERE",
        help="where to start or stop; see below",
    )
    parser.add_argument(
        "-c", "--max-messages", type=_usage(_natural), metavar="N", help="stop after N records"
    )
    parser.add_argument(
        "--isolation-level",
        choices=(READ_COMMITTED, READ_UNCOMMITTED),
        default=READ_COMMITTED,
        help="default: %(default)s",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("-f", "--format", type=_usage(kcat), metavar="FORMAT", help="see below")
    output.add_argument("--json", action="store_true", help="one JSON object per line")
    output.add_argument(
        "--formatter-property",
        "--property",
        dest="property",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="see below",
    )


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
            resolved.append(ResolvedRange(name, log.topic_id, start_offset, end_offset))
    return resolved


def _format(args: argparse.Namespace) -> Format:
    if args.format is not None:
        output_format: Format = args.format
        return output_format
    return json_lines() if args.json else console(dict(args.property))


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"must be a number from 0, got {text!r}")
    return int(text)


def _usage(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Turn a parser's `ValueError` into argparse's error, whose message argparse prints."""

    def parse_or_refuse(text: str) -> T:
        try:
            return parse(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return parse_or_refuse
