"""Where a log ends, and up to where its broker has flushed it.

The rule: bytes before the recovery point are promised, so a log that ends below it is damaged.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_POSITION = -1


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log.

    Attributes:
        next_offset: The offset after the last record.
        position: The position after the last batch, in the last segment.
        last_batch: Where that batch begins, or `UNKNOWN_POSITION`.
    """

    next_offset: int
    position: int
    last_batch: int = UNKNOWN_POSITION


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """What a broker promises of a log.

    Attributes:
        offset: All below is flushed: its recovery point, or the high watermark while it runs.
        is_cleanly_shut_down: Whether it left `.kafka_cleanshutdown`.
        is_locked_by_broker: Whether it still runs.
    """

    offset: int
    is_cleanly_shut_down: bool
    is_locked_by_broker: bool
