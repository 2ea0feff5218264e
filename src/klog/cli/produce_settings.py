"""What the options of `klog produce` mean: the format of a line, and the options of the write.

The rule: an option wins over a property, and a property over a file of properties, as in Kafka.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from klog.cli.line_reader import LineFormat, parse_line_format
from klog.cli.produce_options import LINGER_MS, READER
from klog.connector.options.write_option_table import BATCH_SIZE, BUFFER_MEMORY, COMPRESSION_TYPE
from klog.connector.store.readable_store import MAX_SMALL_FILE_BYTES
from klog.errors import CorruptRecordError, OptionError
from klog.jobs.shared.argument_values import MILLISECONDS
from klog.logformat.broker_files.java_properties import decode_properties
from klog.tools.kafka_options import (
    warn_of_client_options,
    without_client_configs,
)
from klog.tools.stdin_reader import read_input


def line_format_from_args(args: argparse.Namespace) -> LineFormat:
    """Return the format of a line. Raises `OptionError`."""
    if args.line_reader.rpartition(".")[2] != READER.rpartition(".")[2]:
        raise OptionError(f"--line-reader: must be {READER}, got {args.line_reader}")
    return parse_line_format(
        {**_file("--reader-config", args.reader_config), **dict(args.reader_property)}
    )


def write_options(args: argparse.Namespace) -> tuple[dict[str, str], int]:
    """Return the write's options, and how long a line may wait, in ms; warn of ignored options."""
    configs = {**_file("--command-config", args.command_config), **dict(args.command_property)}
    configs, ignored = without_client_configs(configs)
    warn_of_client_options(ignored)
    if "transactional.id" in configs:
        raise OptionError(
            "transactional.id: not a property here. Give --transactional-id and "
            "--transaction-version"
        )
    linger = configs.pop("linger.ms", None)
    try:
        linger_ms = LINGER_MS if linger is None else MILLISECONDS(linger)
    except argparse.ArgumentTypeError as exc:
        raise OptionError(f"linger.ms: {exc}") from exc
    for name, value in (
        (COMPRESSION_TYPE.name, args.compression_codec),
        (BATCH_SIZE.name, args.batch_size),
        (BUFFER_MEMORY.name, args.max_memory_bytes),
    ):
        if value is not None:
            configs[name] = value
    return configs, linger_ms if args.timeout is None else args.timeout


def _file(option: str, path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return decode_properties(read_input(option, Path(path), MAX_SMALL_FILE_BYTES))
    except CorruptRecordError as exc:
        raise OptionError(
            f"{option}: {path}: not a properties file: {exc}. Write it as lines of NAME=VALUE"
        ) from exc
