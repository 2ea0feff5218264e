"""Where the first micro-batch of a stream starts, also if it runs again after a restart.

The rule: the checkpoint has only where a micro-batch ends. Where the first one starts, Spark asks
the source again, at each run. All but given offsets can have another answer then: `latest` when
records came, `earliest` when retention took some away. So the end of the first micro-batch keeps
where its partitions started (`StreamOffsets.batch_start`). If it does not, as that of an older klog
or of Spark's Kafka source, which has a file of its own for it (`sources/0/0`), then a start such as
`latest` is data loss: it could skip records in silence.
"""

from __future__ import annotations

from collections.abc import Mapping

from klog.connector.options.offset_range_limit import (
    EarliestOffset,
    LimitsByPartition,
    OffsetForTime,
    OffsetRangeLimit,
    PartitionLimit,
    SpecificOffset,
)
from klog.connector.source.data_loss import Remedy, raise_or_warn
from klog.logformat.topic_partition import TopicPartition

_REMEDY = Remedy(
    "`klog checkpoint copy` makes a checkpoint that has it if the query was one of "
    'format("kafka"); else set startingOffsets to JSON of the offsets at which the query started'
)


def is_given_start(limit: OffsetRangeLimit, starts: Mapping[TopicPartition, int]) -> bool:
    """Return whether a start is at given offsets, the same whenever a query asks.

    Args:
        limit: Where the query starts.
        starts: The offsets that the limit means now.
    """
    return isinstance(limit, LimitsByPartition) and all(
        isinstance(start, SpecificOffset) and start.offset == starts.get(name)
        for name, start in limit.limits.items()
    )


def could_skip(limit: OffsetRangeLimit, starts: Mapping[TopicPartition, int]) -> bool:
    """Return whether a start that is asked for again could skip records that are there.

    A given offset after the end of the log could: it has become the latest offset.

    Args:
        limit: Where the query starts.
        starts: The offsets that the limit means now.
    """
    if not isinstance(limit, LimitsByPartition):
        return not _only_grows_with_loss(limit)
    return any(
        start.offset != starts.get(name)
        if isinstance(start, SpecificOffset)
        else not _only_grows_with_loss(start)
        for name, start in limit.limits.items()
    )


def _only_grows_with_loss(start: PartitionLimit) -> bool:
    """Return whether the offset of a start is another one only if records are gone."""
    if isinstance(start, OffsetForTime):
        return not start.latest_if_no_match
    return isinstance(start, EarliestOffset)


def report_unknown_start(option: str, *, fail_on_data_loss: bool) -> None:
    """Report that the first micro-batch runs again, and nothing says where it started.

    Args:
        option: The option that says where a new query starts.
        fail_on_data_loss: Whether it is an error, else a warning.

    Raises:
        DataLossError: `fail_on_data_loss` is true.
    """
    raise_or_warn(
        f"the first micro-batch was not finished, its checkpoint does not say where it started, "
        f"and {option} means other offsets now",
        _REMEDY,
        f"what {option} says now",
        fail_on_data_loss=fail_on_data_loss,
    )
