"""Sequence numbers of producers: they number a producer's records in a partition, and wrap.

The rule: 0 follows 2147483647, and -1 means that there is no sequence (docs/format.md, 2; Kafka's
`DefaultRecordBatch.incrementSequence`).
"""

from __future__ import annotations

MAX_SEQUENCE = (1 << 31) - 1
NO_SEQUENCE = -1


def increment_sequence(sequence: int, steps: int) -> int:
    """Return the sequence number some steps later.

    Args:
        sequence: A sequence number; `NO_SEQUENCE` stays.
        steps: May be negative.
    """
    return sequence if sequence == NO_SEQUENCE else (sequence + steps) & MAX_SEQUENCE
