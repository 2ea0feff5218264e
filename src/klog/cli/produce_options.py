"""The options of `klog produce`: those of kafka-console-producer, and klog's own.

The rule: an option wins over a property, and a property over a file of properties, as in Kafka.
"""

from __future__ import annotations

import argparse
from typing import Any

from klog.connector.options.option_defaults import BUFFER_BYTES
from klog.jobs.shared.argument_values import MILLISECONDS, PARTITION, name_and_value, whole_number
from klog.jobs.shared.common_options import Run, add_topic_option
from klog.logformat.batches.batch_limits import DEFAULT_BATCH_BYTES
from klog.tools.kafka_options import add_client_options

READER = "org.apache.kafka.tools.LineMessageReader"
LINGER_MS = 1000
_CLIENT_OPTIONS = (
    "--bootstrap-server", "--broker-list", "--request-required-acks", "--request-timeout-ms",
    "--message-send-max-retries", "--retry-backoff-ms", "--metadata-expiry-ms", "--max-block-ms",
    "--socket-buffer-size",
)  # fmt: skip
_HELP = """\
Each line of the input is the value of a record. With the properties below, a line can also have
headers and a key.

--reader-property NAME=VALUE, --property: as in kafka-console-producer; repeat it for more:
  parse.key (false)            the line is key <key.separator> value
  parse.headers (false)        the line begins with h1:v1,h2:v2 <headers.delimiter>
  key.separator (tab), headers.delimiter (tab), headers.key.separator (:)
  headers.separator (,)        a regular expression
  null.marker                  a key, a value or a header value that equals this text is null (a
                               null value is a tombstone)
  ignore.error (false)         accept a line without a separator: its record has no key or no
                               headers

--command-property NAME=VALUE, --producer-property: compression.type and its levels, batch.size,
  buffer.memory, partitioner, max.message.bytes, segment.bytes, linger.ms

Lines of standard input are committed once a second, and lines of a file at its end. With
--transactional-id, all of the input is one commit, and a second run with the same
--transaction-version writes nothing.

Options for reaching a broker, such as --bootstrap-server, have no effect; klog warns about them."""


def add_verb(verbs: argparse._SubParsersAction[Any], common: argparse.ArgumentParser) -> None:
    """Add `produce` to a command line."""
    parser = verbs.add_parser(
        "produce", parents=[common], help="write lines to a topic as records", epilog=_HELP
    )
    parser.set_defaults(load=_load, parser=parser)
    _add_options(parser)


def _load() -> Run:
    from klog.cli.produce import produce

    return produce


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `produce`, including those without effect."""
    _add_record_options(parser)
    _add_commit_options(parser)
    _add_property_options(parser)
    add_client_options(parser, _CLIENT_OPTIONS, flags=["--sync"])


def _add_record_options(parser: argparse.ArgumentParser) -> None:
    """Add where lines come from, and where their records go."""
    add_topic_option(parser)
    parser.add_argument(
        "-l", "--file", metavar="FILE", help="read lines from this file instead of stdin"
    )
    parser.add_argument(
        "-p",
        "--partition",
        type=PARTITION,
        metavar="P",
        help="write all records to this partition, whatever their key",
    )
    parser.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        metavar="CODEC",
        help="none, gzip, snappy, lz4 or zstd; without CODEC: gzip; default: the topic's "
        "compression.type, or zstd if the topic does not set it",
    )


def _add_commit_options(parser: argparse.ArgumentParser) -> None:
    """Add how much a batch and a commit may have, when it is made, and by which writer."""
    parser.add_argument(
        "--timeout",
        type=MILLISECONDS,
        metavar="MS",
        help=f"how long in ms a line can wait for its commit; default: {LINGER_MS}",
    )
    parser.add_argument(
        "--batch-size",
        "--max-partition-memory-bytes",
        metavar="BYTES",
        help="the size of a record batch before compression, in bytes; default: "
        f"{DEFAULT_BATCH_BYTES}",
    )
    parser.add_argument(
        "--max-memory-bytes",
        metavar="BYTES",
        help=f"the memory for the records of one commit, in bytes; default: {BUFFER_BYTES}",
    )
    parser.add_argument(
        "--transactional-id",
        metavar="ID",
        help="the name of the writer; needs --transaction-version",
    )
    parser.add_argument(
        "--transaction-version",
        type=whole_number("a number"),
        metavar="N",
        help="the number of the writer's batch; needs --transactional-id",
    )
    parser.add_argument(
        "--json", action="store_true", help="print each commit, one JSON object per line"
    )


def _add_property_options(parser: argparse.ArgumentParser) -> None:
    """Add the properties of the line reader and of the producer, and files of them."""
    for names, help_text in (
        (("--reader-property", "--property"), "how to read a line; see below"),
        (("--command-property", "--producer-property"), "how to write records; see below"),
    ):
        parser.add_argument(
            *names,
            type=_property,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=help_text,
        )
    for config, kind in (
        (["--reader-config"], "--reader-property"),
        (["--command-config", "--producer.config"], "--command-property"),
    ):
        parser.add_argument(
            *config, metavar="FILE", help=f"a Java properties file with values for {kind}"
        )
    parser.add_argument("--line-reader", default=READER, help=argparse.SUPPRESS)


def _property(text: str) -> tuple[str, str]:
    """Split NAME=VALUE as Kafka's tools do: without `=` the value is empty."""
    return name_and_value(text if "=" in text else f"{text}=")
