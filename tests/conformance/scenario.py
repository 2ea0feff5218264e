"""The transactions that several of Kafka's tests share: four producers, interleaved.

Producers 1 and 2 abort, 3 and 4 commit; the markers are at offsets 29, 58, 74 and 89.
"""

from __future__ import annotations

from tests.conformance.state_runs import Step

T: tuple[Step, ...] = (
    ("txn", 1, 5),
    ("plain", 3),
    ("txn", 2, 2),
    ("txn", 1, 4),
    ("txn", 3, 3),
    ("plain", 2),
    ("txn", 1, 10),
    ("abort", 1),
    ("txn", 2, 6),
    ("txn", 4, 3),
    ("plain", 10),
    ("txn", 3, 9),
    ("commit", 3),
    ("txn", 4, 8),
    ("txn", 2, 7),
    ("abort", 2),
    ("plain", 10),
    ("txn", 4, 4),
    ("commit", 4),
)
T_ABORTED = [(1, 0, 29, 8), (2, 8, 74, 36)]
T_SEGMENTS: tuple[Step, ...] = (
    ("write", 0, *T[:8]),
    ("write", 30, *T[8:15]),
    ("write", 74, *T[15:]),
)
