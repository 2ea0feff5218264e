"""How much work a cleaning is, and whether compiled kernels are worth loading for it.

The rule: a process decides by all its work, not by one partition. It loads the kernels once the
work that it has done without them, or the work that it still has, is worth it (`LazyKernel`), and
uses them from then on. The driver knows all tasks and how many processes run them
(`shared/process_shares.py`), so it knows how much work each process still has, and each task brings
that number.

The unit is a record that is read or written once without kernels. A batch costs as much as some
records, however few it has: in batches of 126 records the kernels save five times as much for each
record as in batches of 4,000.
"""

from __future__ import annotations

from functools import partial

from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking import compiled_kernels
from klog.logformat.cleaning.record_keys import KeyDecoder, decode_keys
from klog.logformat.compiled.kernel_types import CleaningKernels

BATCH_RECORDS = 400
"""A batch costs as much as so many records: some 60 us in each pass, a record 0.15."""
PASSES = 2
"""Without kernels a compaction reads records twice: to mark them, and to rewrite the rest."""


def workload(segments: EntryRows) -> int:
    """Return what one pass over segments costs without kernels, in records.

    Args:
        segments: The segments.
    """
    records, batches = segments.numbers("record_count"), segments.numbers("batch_count")
    return int(records.sum()) + BATCH_RECORDS * int(batches.sum())


def get_cleaning_kernels(segments: EntryRows, remaining_records: int) -> CleaningKernels | None:
    """Return the kernels for one pass over segments, None if they are not worth loading.

    Args:
        segments: The segments that are read.
        remaining_records: How much work this process still has, these segments included.
    """
    return compiled_kernels.get_cleaning_kernels(workload(segments), remaining_records)


def key_decoder(kernels: CleaningKernels | None) -> KeyDecoder:
    """Return what decodes keys with these kernels.

    Args:
        kernels: The compiled kernels; None to read without them.
    """
    return decode_keys if kernels is None else partial(decode_keys, kernels=kernels.records)
