"""How much a compaction has to do, and with that whether it is worth loading compiled loops.

The rule: a process decides by all that it does, not by one partition. It loads the loops once what
it has cleaned without them, and its share of what the job has still to do, is worth it
(`compiling.Rented`), and uses them from then on. The driver knows the share, for it knows all tasks
and how many processes do them (`jobs/shares.py`), and each task brings it.

The unit is a record that is read or written once without loops. A batch costs as much as some
records, however few it has: in batches of 126 records the loops save five times as much of a record
as in those of 4,000.
"""

from __future__ import annotations

from klog.jobs.entry_rows import EntryRows
from klog.logformat.compiled.compiling import WORTH_RECORDS, Loops, Rented, loops

BATCH_RECORDS = 400
"""A batch costs as much as so many records: some 60 us in each half, a record 0.15."""
HALVES = 2
"""A compaction without loops reads records to mark them, and again to write what is left."""
CLEANING = Rented(loops, WORTH_RECORDS)
"""The loops of all compactions in this process."""


def workload(segments: EntryRows) -> int:
    """Return what one half of a compaction of some segments costs without loops, in records."""
    records, batches = segments.numbers("record_count"), segments.numbers("batch_count")
    return int(records.sum()) + BATCH_RECORDS * int(batches.sum())


def cleaning_loops(segments: EntryRows, remaining: int) -> Loops | None:
    """Return the loops for one half of a compaction of some segments, None if not worth it.

    Args:
        segments: The segments that are read.
        remaining: What this process has still to do, as a `workload`, these segments included.
    """
    return CLEANING.given(workload(segments), remaining)
