"""What each value of a read option means."""

from __future__ import annotations

from typing import Any

import pytest

from klog.connector.options.consumer_strategy import Assign, Subscribe, SubscribePattern
from klog.connector.options.offset_range_limit import (
    EARLIEST,
    LATEST,
    LastOffsets,
    MaxTimestampOffset,
    OffsetForAge,
    OffsetForTime,
    SpecificOffset,
)
from klog.connector.options.option_values import MAX_INT, MAX_LONG
from klog.connector.options.read_columns import COLUMNS
from klog.connector.options.read_options import TaskLimits, parse_read_options
from klog.logformat.topic_partition import TopicPartition
from tests.connector.options.parsed_options import T, by_partition, parse

VALUES = [
    ({"subscribe": " a, b ,,a"}, "consumer_strategy", Subscribe(("a", "b"))),
    (
        {"assign": '{"a":[1,0,1],"b":[2.0]}'},
        "consumer_strategy",
        Assign((TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 2))),
    ),
    ({"assign": "{}"}, "consumer_strategy", Assign(())),
    ({"assign": '{"t":[]}'}, "consumer_strategy", Assign(())),
    (T | {"startingOffsets": " EARLIEST "}, "starting", EARLIEST),
    (
        T | {"startingOffsets": '{"t":{"0":23,"1":-2}}'},
        "starting",
        by_partition(p0=SpecificOffset(23), p1=EARLIEST),
    ),
    (T | {"startingOffsets": ' {"t":{"0":3.0}} '}, "starting", by_partition(p0=SpecificOffset(3))),
    (T | {"startingOffsets": "{}"}, "starting", by_partition()),
    (T | {"endingOffsets": "Latest"}, "ending", LATEST),
    (T | {"endingOffsets": '{"t":{"0":-1}}'}, "ending", by_partition(p0=LATEST)),
    (T | {"startingTimestamp": " 1500 "}, "starting", OffsetForTime(1500)),
    (T | {"endingTimestamp": "1600"}, "ending", OffsetForTime(1600, latest_if_no_match=True)),
    (T | {"isolationLevel": "read_uncommitted"}, "committed_only", False),
    (T | {"kafka.isolation.level": "read_uncommitted"}, "committed_only", False),
    (T | {"kafka.isolation.level": "read_committed"}, "committed_only", True),
    (
        T | {"isolationLevel": "read_committed", "kafka.isolation.level": "read_committed"},
        "committed_only",
        True,
    ),
    (T | {"includeHeaders": "TRUE"}, "columns", COLUMNS),
    (T | {"failOnDataLoss": "False"}, "fail_on_data_loss", False),
    (T | {"minPartitions": "12"}, "task_limits", TaskLimits(12)),
    (T | {"minPartitions": "+2147483647"}, "task_limits", TaskLimits(MAX_INT)),
    (
        T | {"maxRecordsPerPartition": "7", "maxBytesPerPartition": "64m"},
        "task_limits",
        TaskLimits(0, 7, 64 << 20),
    ),
    (T | {"startingOffsets": "-100"}, "starting", LastOffsets(100)),
    (T | {"startingOffsets": "NOW-10m"}, "starting", OffsetForAge(600_000)),
    (T | {"startingTimestamp": "now"}, "starting", OffsetForAge(0)),
    (T | {"endingTimestamp": "now-2h"}, "ending", OffsetForAge(7_200_000)),
    (T | {"startingOffsets": "1970-01-01T00:00:01.5Z"}, "starting", OffsetForTime(1500)),
    (T | {"startingTimestamp": "1970-01-01T02:00:01+02:00"}, "starting", OffsetForTime(1000)),
    (T | {"startingTimestamp": "1970-01-01T00:00:00.0001Z"}, "starting", OffsetForTime(1)),
    (T | {"startingTimestamp": "-1"}, "starting", LATEST),
    (T | {"startingTimestamp": "-2"}, "starting", EARLIEST),
    (T | {"startingTimestamp": "-3"}, "starting", MaxTimestampOffset()),
    (T | {"startingTimestamp": "+5"}, "starting", OffsetForTime(5)),
    (T | {"startingTimestamp": str(MAX_LONG)}, "starting", OffsetForTime(MAX_LONG)),
    (T | {"startingOffsets": "1969-12-31T23:59:59Z"}, "starting", OffsetForTime(-1000)),
    (
        T | {"startingOffsetsByTimestamp": '{"t":{"0":5,"1":-1}}'},
        "starting",
        by_partition(p0=OffsetForTime(5), p1=LATEST),
    ),
    (
        T
        | {
            "startingOffsetsByTimestamp": '{"t":{"0":5}}',
            "startingOffsetsByTimestampStrategy": "Latest",
        },
        "starting",
        by_partition(p0=OffsetForTime(5, latest_if_no_match=True)),
    ),
    (
        T | {"endingOffsetsByTimestamp": '{"t":{"0":5}}'},
        "ending",
        by_partition(p0=OffsetForTime(5, latest_if_no_match=True)),
    ),
    (T | {"columns": "Offset, VALUE"}, "columns", ("value", "offset")),
    (T | {"columns": "headers", "includeHeaders": "true"}, "columns", ("headers",)),
    (T | {"columns": "timestamptype"}, "columns", ("timestampType",)),
]


@pytest.mark.parametrize(("options", "field", "value"), VALUES)
def test_values(options: dict[str, str], field: str, value: Any) -> None:
    assert getattr(parse_read_options(options), field) == value


@pytest.mark.parametrize("name", ["startingOffsets", "STARTINGOFFSETS", "startingoffsets"])
def test_names_have_any_case(name: str) -> None:
    limit = by_partition(p0=SpecificOffset(1))
    assert parse(**{name: '{"t":{"0":1}}'}).starting == limit


def test_pattern_is_a_regular_expression() -> None:
    strategy = parse_read_options({"subscribePattern": " a|b\n"}).consumer_strategy
    assert isinstance(strategy, SubscribePattern)
    assert strategy.pattern.pattern == "a|b"
    assert strategy.pattern.search("xbx")
