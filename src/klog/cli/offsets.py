"""`klog offsets`: an offset of each partition, as kafka-get-offsets prints them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import BinaryIO

from klog.cli.partition_numbers import Numbers, print_numbers
from klog.connector.limit_offsets import list_offsets
from klog.connector.options.offset_spec import parse_offset_spec
from klog.connector.snapshot import Snapshot
from klog.connector.system_clock import now_ms
from klog.logformat.topic_partition import TopicPartition


def offsets(args: argparse.Namespace, out: BinaryIO) -> int:
    """Print the offsets. Raises `OptionError` if `--time` is wrong or nothing is selected."""
    limit, now = parse_offset_spec("--time", args.time), now_ms()

    def find(snapshot: Snapshot, names: Sequence[TopicPartition]) -> Numbers:
        return list_offsets(snapshot, names, limit, now)

    return print_numbers(args, out, "offset", find)
