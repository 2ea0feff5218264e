"""Sequence numbers of producers: they count a producer's records in a partition, and wrap.

Behind 2147483647 comes 0; -1 stands where there is none (docs/format.md, 2; Kafka's
`DefaultRecordBatch.incrementSequence`).
"""

from __future__ import annotations

MAX_SEQUENCE = (1 << 31) - 1
NO_SEQUENCE = -1


def advance(sequence: int, steps: int) -> int:
    """Move a sequence on, or back, over the wrap from 2147483647 to 0; none stays none."""
    return sequence if sequence == NO_SEQUENCE else (sequence + steps) & MAX_SEQUENCE
