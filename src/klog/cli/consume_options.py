"""The options of `klog consume`: those of the console consumer and of kcat."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from klog.connector.options.option_defaults import READ_COMMITTED, READ_UNCOMMITTED
from klog.jobs.shared.argument_values import PARTITION, name_and_value, whole_number
from klog.jobs.shared.common_options import Run, add_topics_option
from klog.jobs.shared.value_options import CREDENTIALS_HELP, FORMATS_HELP, add_value_options
from klog.tools.kafka_options import add_client_options

if TYPE_CHECKING:
    from klog.cli.consume_positions import PositionArgument
    from klog.cli.output_formats import Format

T = TypeVar("T")

_HELP = """\
Prints values, one per line, partition by partition, from the beginning to the current end of the
log, and exits. With --follow, waits for new records and prints them too, also those of new
partitions.

-o, --offset: where to start in each partition
  earliest, beginning   the first record in the log (the default; the same as --from-beginning)
  latest, end           the end of the log; without --follow this prints nothing
  N                     offset N
  -N                    the last N offsets
  s@MS                  the first record at or after a time in ms since 1970
  e@MS                  stop before the first record at or after a time; can be given together
                        with a start

-f FORMAT, as in kcat: %t topic, %p partition, %o offset, %k key, %s value, %T timestamp in ms,
  %h headers (k=v,k=v), %K and %S length of key and value in bytes (-1 for null), %R length of the
  value as 4 bytes, big-endian, %% a percent sign; \\n \\t \\r \\xNN. Null prints as NULL. End the
  format with \\n to print one record per line.

--formatter-property NAME=VALUE, --property: as in kafka-console-consumer; repeat it for more:
  print.timestamp, print.partition, print.offset, print.headers, print.key, print.value (true or
  false); key.separator, line.separator, headers.separator, null.literal (default: null)

--json: prints one JSON object per line. Bytes that are not UTF-8 become {"base64": ...}.

{FORMATS}
  Decoded records print as JSON. avro and protobuf need either a schema registry, if values begin
  with Confluent's prefix, or a schema (--key-schema, --value-schema).

{CREDENTIALS}

Records of open and aborted transactions do not print, except with --isolation-level
read_uncommitted.""".replace("{FORMATS}", FORMATS_HELP).replace("{CREDENTIALS}", CREDENTIALS_HELP)


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `consume` to a command line."""
    parser = verbs.add_parser(
        "consume", parents=[common], help="print the records of topics", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    add_topics_option(
        parser,
        "the full names of the topics; repeat the option or separate names with commas",
        required=True,
    )
    parser.add_argument("--partition", type=PARTITION, metavar="P", help="read only this partition")
    add_client_options(parser, ["--bootstrap-server", "--group"])
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--from-beginning", action="store_true", help="start at the first record (the default)"
    )
    start.add_argument(
        "-o",
        "--offset",
        type=_usage(_position),
        action="append",
        default=[],
        metavar="WHERE",
        help="where to start or stop; see below",
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--follow", action="store_true", help="wait for new records until Ctrl-C")
    end.add_argument("-e", action="store_true", help="exit at the end of the log (the default)")
    parser.add_argument(
        "-c",
        "--max-messages",
        type=whole_number("a number of records"),
        metavar="N",
        help="stop after N records",
    )
    parser.add_argument(
        "--isolation-level",
        choices=(READ_COMMITTED, READ_UNCOMMITTED),
        default=READ_COMMITTED,
        help="which records of transactions to print; default: %(default)s",
    )
    _add_past(parser)
    _add_output(parser)
    add_value_options(parser)


def _add_past(parser: argparse.ArgumentParser) -> None:
    past = parser.add_mutually_exclusive_group()
    past.add_argument(
        "--as-of-version",
        type=whole_number("a version,"),
        metavar="V",
        help="read the topic as of this version, which `klog history` lists",
    )
    past.add_argument(
        "--as-of-timestamp",
        metavar="WHEN",
        help="read the topic as of the last commit at or before a time: ms since 1970, now-1d, or "
        "2026-11-01T00:00:00Z",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "-f",
        "--format",
        type=_usage(_format),
        metavar="FORMAT",
        help="how to print a record; see below",
    )
    output.add_argument("--json", action="store_true", help="print one JSON object per line")
    output.add_argument(
        "--formatter-property",
        "--property",
        dest="property",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what to print of a record; see below",
    )


def _load() -> Run:
    from klog.cli.consume import consume

    return consume


def _position(text: str) -> PositionArgument:
    from klog.cli.consume_positions import parse_position

    return parse_position(text)


def _format(text: str) -> Format:
    from klog.cli.output_formats import kcat

    return kcat(text)


def _usage(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Turn a parser's `ValueError` into argparse's error, whose message argparse prints."""

    def parse_or_refuse(text: str) -> T:
        try:
            return parse(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return parse_or_refuse
