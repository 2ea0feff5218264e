"""What tests of read options share: parse them, and the partitions and errors to compare with."""

from __future__ import annotations

import pytest

from klog.connector.options.offset_range_limit import LimitsByPartition, PartitionLimit
from klog.connector.options.read_options import ReadOptions, parse_read_options
from klog.errors import OptionError
from klog.logformat.topic_partition import TopicPartition

T = {"subscribe": "t"}


def parse(**options: str) -> ReadOptions:
    return parse_read_options(T | options)


def parse_stream(**options: str) -> ReadOptions:
    return parse_read_options(T | options, is_streaming=True)


def by_partition(**limits: PartitionLimit) -> LimitsByPartition:
    """Return limits of partitions of topic t, named p0, p1, ..."""
    return LimitsByPartition(
        {TopicPartition("t", int(name[1:])): limit for name, limit in limits.items()}
    )


def check_refused(options: dict[str, str], *parts: str, is_streaming: bool = False) -> None:
    with pytest.raises(OptionError) as caught:
        parse_read_options(options, is_streaming=is_streaming)
    for part in parts:
        assert part in str(caught.value)
