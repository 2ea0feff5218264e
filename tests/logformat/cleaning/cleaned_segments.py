"""One segment cleaned by signs: a sign a record says whether it is retained.

`x` is a record that is retained, `t` a tombstone that is retained, `.` a record that is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klog.logformat.array_types import Longs
from klog.logformat.batches.rewrite_offsets import BatchRun
from klog.logformat.cleaning.batch_retention import CleaningContext
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.filter_records import compiled_filter
from klog.logformat.cleaning.retained_bitmap import RetainedBitmap
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.logformat.cleaning.kafka_cleaner_model import Batch, batches
from tests.support.batch_bytes import Record
from tests.support.kernels import record_kernels

NOW_MS, RETENTION_MS = 5000, 86_400_000
HORIZON_MS = NOW_MS + RETENTION_MS
FOUR = [Record(10 + n, 1000 + n, b"k%d" % n, b"v%d" % n) for n in range(4)]


def bitmap_of(signs: str) -> RetainedBitmap:
    retained, tombstones = (
        np.packbits(np.array([sign in chosen for sign in signs], np.bool_)).tobytes()
        for chosen in ("xt", "t")
    )
    return RetainedBitmap(len(signs), retained, tombstones if "t" in signs else b"", is_plain=False)


def context_of(
    *retain_empty: int,
    removable: Sequence[int] = (),
    now_ms: int = NOW_MS,
    horizon_ms: int = HORIZON_MS,
) -> CleaningContext:
    return CleaningContext(now_ms, horizon_ms, longs(retain_empty), longs(removable))


def longs(numbers: Sequence[int]) -> Longs:
    return np.array(numbers, np.int64)


def cleaned_bytes(data: bytes, signs: str, context: CleaningContext | None = None) -> bytes:
    return b"".join(run.data for run in cleaned_runs(data, signs, context))


def cleaned_runs(data: bytes, signs: str, context: CleaningContext | None = None) -> list[BatchRun]:
    """Clean a segment by columns and by kernels; the runs must describe their bytes."""
    context = context or context_of()
    by_columns = SegmentCleaner(bitmap_of(signs), context)
    runs = list(by_columns.clean(data, scan(data)))
    by_columns.close()
    by_kernels = SegmentCleaner(bitmap_of(signs), context, compiled_filter(record_kernels))
    assert [run.data for run in by_kernels.clean(data, scan(data))] == [run.data for run in runs]
    for run in runs:
        described, scanned = run.batches, scan(run.data)
        assert described.starts.tolist() == scanned.starts.tolist()
        assert described.ends.tolist() == scanned.ends.tolist()
        assert described.headers.tobytes() == scanned.headers.tobytes()
        assert described.ends[-1] == len(run.data)
    return runs


def only_batch(data: bytes) -> Batch:
    (batch,) = batches(data)
    return batch
