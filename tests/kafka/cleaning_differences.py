"""Logs that klog cleans differently from a broker on purpose: one function a difference.

The rule: a function makes one round; its docstring says what each side does and why.
"""

from __future__ import annotations

from tests.kafka.cleaning_workloads import DAY_MS, HOUR_MS, MINUTE_MS, Round
from tests.support.batch_bytes import GZIP, Record, batch
from tests.support.legacy_bytes import plain, wrapper

RATIO, OVERDUE = "differs.ratio", "differs.overdue"
LEGACY = {0: "differs.legacy.v0", 1: "differs.legacy.v1"}
COMPACT = {"cleanup.policy": "compact", "delete.retention.ms": str(DAY_MS)}


def differences(now_ms: int) -> dict[str, list[Round]]:
    """Return the one round of each topic."""
    return {
        RATIO: [_ratio(now_ms)],
        OVERDUE: [_overdue(now_ms)],
        **{LEGACY[magic]: [_legacy(now_ms, magic)] for magic in (0, 1)},
    }


def _ratio(now_ms: int) -> Round:
    """Begin the log inside the first of two segments of equal size.

    A broker counts the bytes of that segment as clean and as dirty, so two thirds are dirty. klog
    counts them as dirty only, as it cleans the segment for the first time, so all are dirty.
    """
    logs = {
        base: batch([Record(base + number, now_ms, b"k", b"v") for number in range(4)])
        for base in (0, 4)
    }
    return Round(
        logs, 8, {**COMPACT, "min.cleanable.dirty.ratio": "0.8"}, log_start=2, is_left=True
    )


def _overdue(now_ms: int) -> Round:
    """Put an old batch after a young one.

    A broker takes the age of a segment's first batch, klog that of its oldest record: the config
    promises for each record that it is cleaned by then.
    """
    young, old = now_ms - MINUTE_MS, now_ms - 3 * HOUR_MS
    log = batch([Record(0, young, b"k", b"v")]) + batch([Record(1, old, b"k", b"v")])
    config = {"min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": str(HOUR_MS)}
    return Round({0: log}, 2, {**COMPACT, **config}, is_left=True)


def _legacy(now_ms: int, magic: int) -> Round:
    """Write messages of format v0 or v1, some compressed, with a tombstone.

    A broker of version 4 converts all of them to batches v2. klog converts only what it must: a
    wrapper that loses records, and a tombstone, which needs a horizon.
    """
    rows = [
        Record(offset, now_ms + offset, b"k%d" % (offset % 3), b"v%d" % offset)
        for offset in range(12)
    ]
    rows[10] = Record(10, now_ms, b"k1", None)
    rows[7] = Record(7, now_ms, None, b"no key")
    rows[8] = Record(8, now_ms, b"in the wrapper", b"v8")
    log = plain(rows[:4], magic) + wrapper(rows[4:9], magic, GZIP) + plain(rows[9:], magic)
    return Round({0: log}, 12, {**COMPACT, "min.cleanable.dirty.ratio": "0.0"})
