"""What `klog produce` is told: the options of kafka-console-producer, and what klog has besides.

The rule: an option of the tool wins over a property, which wins over a file of them, as with Kafka.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from klog.cli.line_reader import LineFormat, line_format
from klog.connector.store.readable_store import MAX_SMALL_FILE_BYTES
from klog.errors import CorruptRecordError, OptionError
from klog.logformat.broker_files.java_properties import decode_properties
from klog.tools.kafka_options import (
    add_client_options,
    client_options,
    warn_of_client_options,
    without_client_configs,
)
from klog.tools.stdin_reader import read_input

_READER = "org.apache.kafka.tools.LineMessageReader"
_LINGER_MS = 1000
_CLIENT_OPTIONS = (
    "--bootstrap-server", "--broker-list", "--request-required-acks", "--request-timeout-ms",
    "--message-send-max-retries", "--retry-backoff-ms", "--metadata-expiry-ms", "--max-block-ms",
    "--socket-buffer-size",
)  # fmt: skip
HELP = """\
Each line is a record: its value, and with the properties below its headers and its key before it.

--reader-property NAME=VALUE, --property, after kafka-console-producer; may be repeated:
  parse.key (false)            key <key.separator> value
  parse.headers (false)        h1:v1,h2:v2 <headers.delimiter> before key and value
  key.separator (tab), headers.delimiter (tab), headers.key.separator (:)
  headers.separator (,)        a regular expression
  null.marker                  a key, value or header value that equals it is null: a tombstone
  ignore.error (false)         a line without a separator has no key or headers, and is a value

--command-property NAME=VALUE, --producer-property: compression.type and its levels, batch.size,
  buffer.memory, partitioner, max.message.bytes, segment.bytes, linger.ms

Options that say how to reach a broker, --bootstrap-server and the like, have no effect and are
warned of. Lines are committed once a second, a file at its end. With --transactional-id the whole
input is one commit, and the same version again writes nothing."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `produce`, those without effect too."""
    parser.add_argument("--topic", required=True, metavar="T")
    parser.add_argument("-l", "--file", metavar="FILE", help="read lines from it, not from stdin")
    parser.add_argument(
        "-p",
        "--partition",
        type=_partition,
        metavar="P",
        help="all records go there, whatever their key",
    )
    parser.add_argument(
        "--compression-codec",
        nargs="?",
        const="gzip",
        metavar="CODEC",
        help="none, gzip (if none is named), snappy, lz4, zstd; by default what the topic has, or "
        "zstd",
    )
    parser.add_argument(
        "--timeout", type=_milliseconds, metavar="MS", help="lines are committed after it: 1000"
    )
    parser.add_argument(
        "--batch-size",
        "--max-partition-memory-bytes",
        metavar="BYTES",
        help="of a record batch, uncompressed: 524288",
    )
    parser.add_argument("--max-memory-bytes", metavar="BYTES", help="buffer.memory, of one commit")
    parser.add_argument("--transactional-id", metavar="ID", help="the writer's name")
    parser.add_argument("--transaction-version", type=int, metavar="N", help="its number")
    parser.add_argument("--json", action="store_true", help="tell each commit, an object a line")
    for names in (
        ("--reader-property", "--property"),
        ("--command-property", "--producer-property"),
    ):
        parser.add_argument(
            *names,
            type=_name_and_value,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="see below",
        )
    for config in (["--reader-config"], ["--command-config", "--producer.config"]):
        parser.add_argument(*config, metavar="FILE", help="such properties, as a Java file of them")
    parser.add_argument("--line-reader", default=_READER, help=argparse.SUPPRESS)
    add_client_options(parser, _CLIENT_OPTIONS, flags=["--sync"])


def line_format_of(args: argparse.Namespace) -> LineFormat:
    """Give what a line holds. Raises `OptionError`."""
    if args.line_reader.rpartition(".")[2] != _READER.rpartition(".")[2]:
        raise OptionError(f"--line-reader is {args.line_reader}; klog has {_READER} alone")
    return line_format({**_file(args.reader_config), **dict(args.reader_property)})


def write_options(args: argparse.Namespace) -> tuple[dict[str, str], int]:
    """Give the options of the write, and how long a line may wait, in ms; warn of the others."""
    configs = {**_file(args.command_config), **dict(args.command_property)}
    configs, ignored = without_client_configs(configs)
    warn_of_client_options([*ignored, *client_options(args)])
    if "transactional.id" in configs:
        raise OptionError("transactional.id: give --transactional-id and --transaction-version")
    linger = configs.pop("linger.ms", None)
    try:
        linger_ms = _LINGER_MS if linger is None else _milliseconds(linger)
    except argparse.ArgumentTypeError as exc:
        raise OptionError(f"linger.ms: {exc}") from exc
    for name, value in (
        ("compression.type", args.compression_codec),
        ("batch.size", args.batch_size),
        ("buffer.memory", args.max_memory_bytes),
    ):
        if value is not None:
            configs[name] = value
    return configs, linger_ms if args.timeout is None else args.timeout


def _file(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return decode_properties(read_input(Path(path), MAX_SMALL_FILE_BYTES))
    except CorruptRecordError as exc:
        raise OptionError(f"{path} is no file of properties: {exc}") from exc


def _name_and_value(text: str) -> tuple[str, str]:
    """Split NAME=VALUE as Kafka's tools do: a value may be empty, and may have any character."""
    name, _, value = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _partition(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a partition")
    return int(text)


def _milliseconds(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of milliseconds")
    return int(text)
