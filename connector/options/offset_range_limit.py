"""Where a read starts or ends: a closed choice, as Spark's `KafkaOffsetRangeLimit` is.

| here | Spark's Kafka connector |
|---|---|
| `EarliestOffset` | `EarliestOffsetRangeLimit` |
| `LatestOffset` | `LatestOffsetRangeLimit` |
| `OffsetForTime` | `GlobalTimestampRangeLimit` |
| `LimitsByPartition` of `SpecificOffset` | `SpecificOffsetRangeLimit` |
| `LimitsByPartition` of `OffsetForTime` | `SpecificTimestampRangeLimit` |

Spark writes earliest and latest as -2 and -1 among the offsets of a partition. Here they are the
same types as for a whole read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from klog.logformat.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class EarliestOffset:
    """The log start offset."""


@dataclass(frozen=True, slots=True)
class LatestOffset:
    """The last stable offset, or the log end offset for `read_uncommitted`."""


@dataclass(frozen=True, slots=True)
class SpecificOffset:
    """An offset as a user gives it; a start is inclusive, an end exclusive."""

    offset: int


@dataclass(frozen=True, slots=True)
class OffsetForTime:
    """The offset of the first record at or after a time, as Kafka's `offsetsForTimes` finds it.

    Attributes:
        timestamp_ms: The time, in ms since 1970.
        latest_if_no_match: Whether a time after the last record means `LatestOffset`; otherwise
            it is an error.
    """

    timestamp_ms: int
    latest_if_no_match: bool = False


PartitionLimit: TypeAlias = EarliestOffset | LatestOffset | SpecificOffset | OffsetForTime


@dataclass(frozen=True, slots=True)
class LimitsByPartition:
    """A limit for each partition."""

    limits: Mapping[TopicPartition, PartitionLimit]


OffsetRangeLimit: TypeAlias = PartitionLimit | LimitsByPartition

EARLIEST = EarliestOffset()
LATEST = LatestOffset()
