"""What a running stream has lost, reported once however often Spark asks.

The rule: a loss is an error each time, or with `failOnDataLoss=false` one warning for as long as it
lasts. Spark asks an idle stream for its latest offset many times a minute, and the answer is the
same. A loss that ends and comes again is a new one. What was reported is the reader's to know: a
process can have many streams, also of topics with the same name in different roots.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from klog.connector.source.data_loss import raise_or_warn, stream_remedy
from klog.logformat.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamLoss:
    """Something that a stream has counted on and that is gone.

    Two are the same if their cause is, also if a log has grown between two looks.

    Attributes:
        cause: What has happened, to which topic or partition, and at which id, commit or offset.
        message: What is gone, for the user.
        remainder: What a stream with `failOnDataLoss=false` goes on with.
    """

    cause: tuple[str, str | TopicPartition, str | int]
    message: str = field(compare=False)
    remainder: str = field(compare=False)


class LossReports:
    """Raises the losses of one stream, or warns of each once."""

    def __init__(self, *, fail_on_data_loss: bool) -> None:
        """Start with nothing reported.

        Args:
            fail_on_data_loss: Whether a loss is an error, else a warning.
        """
        self._fail_on_data_loss = fail_on_data_loss
        self._last_losses: frozenset[StreamLoss] = frozenset()
        self._warnings: set[str] = set()

    def report(self, losses: Iterable[StreamLoss]) -> None:
        """Report what one look at the logs shows and the look before did not.

        Args:
            losses: The losses that the look shows.

        Raises:
            DataLossError: `fail_on_data_loss` is true, and there is one.
        """
        losses = tuple(losses)
        for loss in losses:
            if loss not in self._last_losses:
                self.report_planned(loss)
        self._last_losses = frozenset(losses)

    def report_planned(self, loss: StreamLoss) -> None:
        """Report what the plan of one micro-batch shows.

        Args:
            loss: The loss.

        Raises:
            DataLossError: `fail_on_data_loss` is true.
        """
        raise_or_warn(
            loss.message,
            stream_remedy(loss.remainder),
            loss.remainder,
            fail_on_data_loss=self._fail_on_data_loss,
        )

    def warn_once(self, message: str) -> None:
        """Log a warning if it is the first time.

        Args:
            message: The warning.
        """
        if message not in self._warnings:
            self._warnings.add(message)
            _log.warning(message)


def find_new_partition_loss(name: TopicPartition, start_offset: int | None) -> StreamLoss | None:
    """Return what is gone of a partition that is new to a running stream, or of a new topic.

    Args:
        name: The partition.
        start_offset: Where it starts; None if it is gone.
    """
    if start_offset is None:
        return StreamLoss(
            ("new partition", name, ""),
            f"{name}: the partition is new to the stream, and was deleted before the stream could "
            "read it",
            "the other partitions",
        )
    if start_offset > 0:
        return StreamLoss(
            ("new partition", name, start_offset),
            f"{name}: the partition is new to the stream, and offsets 0 to {start_offset - 1} were "
            "deleted before the stream could read them",
            f"the log start, offset {start_offset}",
        )
    return None
