"""Where a read starts or ends: a closed choice, as Spark's `KafkaOffsetRangeLimit` is.

| here | Spark's Kafka connector |
|---|---|
| `EarliestOffset` | `EarliestOffsetRangeLimit` |
| `LatestOffset` | `LatestOffsetRangeLimit` |
| `OffsetForTime`, `MaxTimestampOffset` | `GlobalTimestampRangeLimit` |
| `LimitsByPartition` of `SpecificOffset` | `SpecificOffsetRangeLimit` |
| `LimitsByPartition` of `OffsetForTime` | `SpecificTimestampRangeLimit` |
| `LastOffsets`, `OffsetForAge` | |

Spark writes earliest and latest as -2 and -1 among the offsets of a partition, and passes these and
the other special timestamps of Kafka's ListOffsets to the broker. Here they are the same types as
for a whole read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

from klog.logformat.topic_partition import TopicPartition

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)


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

    @classmethod
    def of(cls, time: datetime, *, latest_if_no_match: bool = False) -> OffsetForTime:
        """Return the limit of a time; a part of a millisecond counts as a whole one.

        Args:
            time: The time, with its zone.
            latest_if_no_match: As the attribute.
        """
        return cls(-((_EPOCH - time) // _MILLISECOND), latest_if_no_match)


@dataclass(frozen=True, slots=True)
class OffsetForAge:
    """The offset of the first record that is at most so old; the latest offset if none is.

    Attributes:
        age_ms: The age, in ms before the clock of the reader when the offset is resolved.
    """

    age_ms: int


@dataclass(frozen=True, slots=True)
class MaxTimestampOffset:
    """The offset of the first record with the largest timestamp (-3 in Kafka's ListOffsets).

    Attributes:
        latest_if_no_match: Whether a partition without records means `LatestOffset`; otherwise it
            is an error.
    """

    latest_if_no_match: bool = False


@dataclass(frozen=True, slots=True)
class LastOffsets:
    """So many offsets before `LatestOffset`, or the log start if there are fewer."""

    count: int


PartitionLimit: TypeAlias = (
    EarliestOffset
    | LatestOffset
    | SpecificOffset
    | OffsetForTime
    | OffsetForAge
    | MaxTimestampOffset
    | LastOffsets
)


@dataclass(frozen=True, slots=True)
class LimitsByPartition:
    """A limit for each partition."""

    limits: Mapping[TopicPartition, PartitionLimit]


OffsetRangeLimit: TypeAlias = PartitionLimit | LimitsByPartition

EARLIEST = EarliestOffset()
LATEST = LatestOffset()
