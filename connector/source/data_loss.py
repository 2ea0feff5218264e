"""What happens when offsets are gone before they were read.

The rule: it is an error, or a warning with `failOnDataLoss=false`. A batch that is run again is
planned again and reads what is left. A stream plans the same offsets again, so its user continues
with what is left, or starts with a new checkpoint.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.connector.snapshot import PartitionSnapshot
from klog.errors import ChangedDuringReadError, DataLossError
from klog.logformat.topic_partition import TopicPartition
from klog.url_secrets import without_passwords

if TYPE_CHECKING:
    from klog.connector.source.load_plan import ResolvedRange

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remedy:
    """What a reader does about offsets that are gone.

    Attributes:
        text: What the error tells the user to do.
        error_class: The class of the error, which says whether it helps to read again.
    """

    text: str
    error_class: type[DataLossError] = DataLossError


BATCH_REMEDY = Remedy(
    "read again from earliest, or set failOnDataLoss=false to go on with what is left",
    ChangedDuringReadError,
)
"""For a batch whose records are deleted while they are read."""


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Offsets of a partition that are gone.

    Attributes:
        description: Which offsets are gone, and why.
        count: How many they are.
        remainder: What a reader with `failOnDataLoss=false` goes on with.
    """

    description: str
    count: int
    remainder: str

    def report(self, name: TopicPartition, *, is_streaming: bool, fail_on_data_loss: bool) -> None:
        """Raise the loss as an error, or log it as a warning.

        Args:
            name: The partition, as the message names it.
            is_streaming: Whether a stream reads, which has another next step.
            fail_on_data_loss: Whether it is an error.

        Raises:
            DataLossError: `fail_on_data_loss` is true.
        """
        if is_streaming:
            message = f"{name}: {self.description}: {self.count:,} that the stream has not read"
            remedy = stream_remedy(self.remainder)
        else:
            message = f"{name}: {self.description} since the read was planned"
            remedy = Remedy(
                f"read again, or set failOnDataLoss=false to go on with {self.remainder}",
                ChangedDuringReadError,
            )
        raise_or_warn(message, remedy, self.remainder, fail_on_data_loss=fail_on_data_loss)


def stream_remedy(remainder: str) -> Remedy:
    """Return what to do about a stream, which cannot read again.

    Args:
        remainder: What a reader with `failOnDataLoss=false` goes on with.
    """
    return Remedy(
        f"set failOnDataLoss=false to go on with {remainder}, or start the query with a new "
        "checkpoint"
    )


def raise_or_warn(message: str, remedy: Remedy, remainder: str, *, fail_on_data_loss: bool) -> None:
    """Raise a loss as an error with its remedy, or log it as a warning.

    Args:
        message: What is gone.
        remedy: What to do about it.
        remainder: What the warning says the reader goes on with.
        fail_on_data_loss: Whether it is an error.

    Raises:
        DataLossError: `fail_on_data_loss` is true.
    """
    if fail_on_data_loss:
        raise remedy.error_class(f"{message}; {remedy.text}")
    _log.warning(
        "%s; failOnDataLoss=false, going on with %s", without_passwords(message), remainder
    )


def restored_from(log: PartitionSnapshot, seen_restore: int | None) -> int | None:
    """Return the offset from which a restore has changed what a reader has seen; None if none has.

    Args:
        log: The partition now.
        seen_restore: The last restore that the reader has seen; None if it is not known.
    """
    return None if seen_restore is None else log.first_changed_offset(seen_restore)


def find_loss(log: PartitionSnapshot | None, planned: ResolvedRange) -> DataLoss | None:
    """Return what is gone of a range that was planned; None if all of it is there.

    Args:
        log: The partition now; None if it was deleted.
        planned: The range.
    """
    topic_id, start_offset, end_offset = planned.topic_id, planned.start_offset, planned.end_offset
    count, offsets = end_offset - start_offset, f"offsets {start_offset} to {end_offset - 1}"
    if log is None:
        return DataLoss(f"the partition was deleted, with {offsets}", count, "the other partitions")
    if topic_id and log.topic_id != topic_id:
        return DataLoss(
            f"the topic was deleted and created again, without {offsets}", count, "the new one"
        )
    changed = restored_from(log, planned.seen_restore)
    if changed is not None and changed < end_offset:
        start = max(changed, start_offset)
        return DataLoss(
            f"commit {log.last_restore} restored an earlier version of the topic, which has other "
            f"records or none at offsets {start} to {end_offset - 1}",
            end_offset - start,
            "what the topic has there now",
        )
    if log.log_start > start_offset:
        end = min(log.log_start, end_offset)
        return DataLoss(
            f"offsets {start_offset} to {end - 1} were deleted",
            end - start_offset,
            f"the log start, offset {log.log_start}",
        )
    if log.readable_end < end_offset:
        start = max(log.readable_end, start_offset)
        return DataLoss(
            f"offsets {start} to {end_offset - 1} were cut off",
            end_offset - start,
            f"offset {end_offset}, which leaves out what is written before it",
        )
    return None
