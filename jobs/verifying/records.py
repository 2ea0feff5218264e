"""Records decoded, all of them: what the deep form does besides CRCs.

The rule: of many batches each that does not decode is found. Keys and values are not copied out;
their lengths are checked all the same, and headers are decoded for their names have to be UTF-8.
"""

from __future__ import annotations

import numpy as np

from klog.connector.log.segment import Chunk
from klog.errors import CorruptRecordError
from klog.jobs.verifying.findings import Findings
from klog.logformat import batch as v2
from klog.logformat.columnar import Columns, decode_parts
from klog.logformat.index import Longs, Mask

_COLUMNS = ("timestamp_ms", "headers")
NO_TIMES = ((1 << 63) - 1, v2.NO_TIMESTAMP)
"""The least and the largest of none."""
_NONE_SEEN = np.iinfo(np.int64).min


def undecodable(chunk: Chunk, good: Mask, findings: Findings) -> tuple[Mask, tuple[int, int]]:
    """Tell which good batches have records that do not decode, and say so.

    With them come the least and the largest time of the others' records, ms.
    """
    bad = np.zeros(len(good), np.bool_)
    numbers = np.flatnonzero(good)
    try:
        return bad, _times(chunk, chunk.batches.where(good), findings)
    except CorruptRecordError:
        pass  # One or more: which, is found one by one.
    least, most = NO_TIMES
    for number in numbers.tolist():
        try:
            times = _times(chunk, chunk.batches.part(number, number + 1), findings)
        except CorruptRecordError as exc:
            bad[number] = True
            position = chunk.position + int(chunk.batches.starts[number])
            findings.add("records", f"its records do not decode: {exc.reason}", position)
        else:
            least, most = min(least, times[0]), max(most, times[1])
    return bad, (least, most)


def _times(chunk: Chunk, batches: v2.Batches, findings: Findings) -> tuple[int, int]:
    """Decode batches and give the least and the largest time.

    A batch whose header has another largest time than its records is told.
    """
    least, most = NO_TIMES
    largest = np.full(len(batches), _NONE_SEEN)
    has_legacy = bool(batches.is_legacy.any())
    if not has_legacy:
        batches = _relaid(batches)
    nexts = batches.next_offsets
    for part in decode_parts(chunk.data, batches, _COLUMNS):
        times = part.timestamp_ms
        if times is None or not len(times):
            continue
        least, most = min(least, int(times.min())), max(most, int(times.max()))
        if not has_legacy:
            _raise_to(largest, nexts, part, times)
    _tell_times(chunk, batches, largest, findings)
    return least, most


def _relaid(batches: v2.Batches) -> v2.Batches:
    """Give batches offsets that follow each other: whether theirs do is asked elsewhere."""
    headers = batches.headers.copy()
    spans = headers["last_offset_delta"].astype(np.int64) + 1
    headers["base_offset"] = np.cumsum(spans) - spans
    return v2.Batches(batches.starts, batches.ends, headers)


def _raise_to(largest: Longs, nexts: Longs, part: Columns, times: Longs) -> None:
    """Bring the times of some records into the largest of their batches, found by `nexts`."""
    of_batch = np.searchsorted(nexts, part.offset, "right")
    starts = np.flatnonzero(np.append(True, of_batch[1:] != of_batch[:-1]))
    found = of_batch[starts]
    largest[found] = np.maximum(largest[found], np.maximum.reduceat(times, starts))


def _tell_times(chunk: Chunk, batches: v2.Batches, largest: Longs, findings: Findings) -> None:
    flags = batches.attributes
    said = batches.headers["max_timestamp"].astype(np.int64)
    seen = (largest != _NONE_SEEN) & ((flags & v2.CONTROL) == 0)
    # A broker's producer takes -1 for the largest of times that all lie below it.
    wrong = (said != largest) & (said != np.maximum(largest, v2.NO_TIMESTAMP))
    for number in np.flatnonzero(seen & wrong).tolist():
        findings.add(
            "records",
            f"the largest time of its records is {largest[number]} and its header says "
            f"{said[number]}",
            chunk.position + int(batches.starts[number]),
        )
