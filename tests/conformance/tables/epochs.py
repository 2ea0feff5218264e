"""Section 23, LeaderEpochFileCacheTest; an entry is (epoch, start offset)."""

from __future__ import annotations

from tests.conformance.case import Case, NotApplicable
from tests.conformance.checkpoint_runs import epoch_checkpoint_round_trip
from tests.conformance.state_runs import Step, epochs

NONE = (-1, -1)
TRUNCATED = "shouldPreserveResetOffsetOnClearEarliestIfOneExists / shouldUpdateSavedOffset…"
NEIGHBOURS = "testPreviousEpoch / testFindNextEpoch / testFindPreviousEntry"
FOLLOWS = "shouldIncreaseAndTrackEpochs… (leaders, follower)"


def cached(*entries: tuple[int, int]) -> tuple[Step, ...]:
    """Assign epochs in this order."""
    return tuple(("assign", *entry) for entry in entries)


def case(name: str, steps: tuple[Step, ...], expect: list[object], label: str = "") -> Case:
    """Make a case of a script."""
    return Case(f"23 {name}", epochs, steps, expect, label)


def from_start(entries: tuple[tuple[int, int], ...], offset: int, *left: tuple[int, int]) -> Case:
    """Let the log begin at an offset."""
    steps = (*cached(*entries), ("truncate_from_start", offset), ("entries",))
    return case(TRUNCATED, steps, [list(left)], f"{entries[0]} at {offset}")


THREE = ((2, 6), (3, 8), (4, 11))

CASES = [
    case(
        "shouldAddEpochAndMessageOffsetToCache",
        (*cached((2, 10)), ("latest",), ("entries",), ("end", 2, 11)),
        [2, [(2, 10)], (2, 11)],
    ),
    case(
        "shouldReturnUndefinedOffsetIfUndefinedEpochRequested / …IfNoEpochRecorded",
        (*cached((2, 11), (3, 12)), ("end", -1, 20)),
        [NONE],
        "undefined",
    ),
    case(
        "shouldReturnUndefinedOffsetIfUndefinedEpochRequested / …IfNoEpochRecorded",
        (("end", 0, 0), ("end", 5, 9), ("latest",), ("epoch_for", 3)),
        [NONE, NONE, -1, -1],
        "none",
    ),
    case(
        "shouldNotOverwriteLogEndOffsetForALeaderEpochOnceItHasBeenAssigned",
        (*cached((2, 9), (2, 10)), ("entries",)),
        [[(2, 9)]],
    ),
    case(
        "shouldEnforceMonotonicallyIncreasingStartOffsets",
        (*cached((2, 9), (3, 9)), ("entries",)),
        [[(3, 9)]],
    ),
    case(
        "shouldReturnFirstEpochIfRequestedEpochLessThanFirstEpoch",
        (*cached((5, 11), (6, 12), (7, 13)), ("end", 4, 14)),
        [(4, 11)],
    ),
    case(
        "shouldTruncateIfMatchingEpochButEarlierStartingOffset",
        (*cached((5, 11), (6, 12), (7, 12)), ("end", 5, 14), ("end", 6, 14)),
        [(5, 12), (5, 12)],
    ),
    case(
        "shouldGetFirstOffsetOfSubsequentEpoch…",
        (*cached((1, 11), (2, 13), (3, 15)), ("end", 2, 16)),
        [(2, 15)],
    ),
    case(
        "shouldReturnNextAvailableEpochIfThereIsNoExactEpoch…",
        (*cached((0, 10), (2, 13), (4, 17)), ("end", 1, 20), ("end", 2, 20), ("end", 3, 20)),
        [(0, 13), (2, 17), (2, 17)],
    ),
    case(
        "shouldReturnInvalidOffsetIfEpochIsRequestedWhichIsNotCurrentlyTracked",
        (*cached((2, 100)), ("end", 3, 105)),
        [NONE],
    ),
    Case(
        "23 shouldPersistEpochsBetweenInstances",
        epoch_checkpoint_round_trip,
        ((2, 6),),
        [(2, 6)],
    ),
    case(
        "shouldEnforceMonotonicallyIncreasingEpochs",
        (*cached((1, 5), (2, 6), (1, 7)), ("entries",), ("end", 1, 8), ("end", 2, 8)),
        [[(1, 7)], (1, 8), NONE],
    ),
    case(
        "shouldEnforceOffsetsIncreaseMonotonically",
        (*cached((2, 6), (3, 5)), ("entries",)),
        [[(3, 5)]],
    ),
    case(
        FOLLOWS,
        (
            *cached((0, 0)),
            ("end", 0, 0),
            *cached((1, 0)),
            ("latest",),
            ("end", 0, 0),
            ("end", 1, 5),
            *cached((2, 5)),
            ("end", 1, 7),
            ("end", 2, 9),
        ),
        [(0, 0), 1, (0, 0), (1, 5), (1, 5), (2, 9)],
        "leaders",
    ),
    case(
        FOLLOWS,
        (
            *cached((0, 0), (0, 1), (0, 2)),
            ("end", 0, 3),
            *cached((1, 3), (1, 4), (1, 5)),
            ("end", 0, 6),
            ("end", 1, 6),
            *cached((2, 6), (2, 7), (2, 8)),
            ("end", 0, 9),
            ("end", 1, 9),
            ("end", 2, 9),
            ("epoch_for", 2),
            ("epoch_for", 3),
            ("epoch_for", 8),
        ),
        [(0, 3), (0, 3), (1, 6), (0, 3), (1, 6), (2, 9), 0, 1, 2],
        "follower",
    ),
    case(
        "shouldDropEntriesOnEpochBoundaryWhenRemovingLatestEntries",
        (*cached(*THREE), ("truncate_from_end", 8), ("entries",)),
        [[(2, 6)]],
    ),
    from_start(THREE, 8, (3, 8), (4, 11)),
    from_start(THREE, 9, (3, 9), (4, 11)),
    from_start(((0, 0), (1, 7), (2, 10)), 5, (0, 5), (1, 7), (2, 10)),
    from_start(THREE, 15, (4, 15)),
    from_start(THREE, 1, *THREE),
    from_start(THREE, 6, *THREE),
    from_start(THREE, 11, (4, 11)),
    case(
        "shouldDropEntriesBetweenEpochBoundaryWhenRemovingNewest",
        (*cached(*THREE), ("truncate_from_end", 9), ("entries",)),
        [[(2, 6), (3, 8)]],
    ),
    case(
        "shouldNotResetEpochHistoryHead/TailIfUndefinedPassed",
        (*cached(*THREE), ("truncate_from_end", -1), ("entries",)),
        [list(THREE)],
        "tail",
    ),
    case(
        "shouldNotResetEpochHistoryHead/TailIfUndefinedPassed",
        (*cached(*THREE), ("truncate_from_start", -1), ("entries",)),
        [list(THREE)],
        "head",
    ),
    case(
        NEIGHBOURS,
        (
            ("previous", 2),
            ("next", 2),
            *cached((2, 10), (4, 15), (10, 20)),
            ("previous", 2),
            ("previous", 4),
            ("previous", 10),
            ("previous", 11),
            ("next", 0),
            ("next", 2),
            ("next", 4),
            ("next", 10),
        ),
        [None, None, None, (2, 10), (4, 15), (10, 20), (2, 10), (4, 15), (10, 20), None],
    ),
]

NOT_APPLICABLE: list[NotApplicable] = []
