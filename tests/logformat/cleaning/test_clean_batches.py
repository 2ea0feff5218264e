"""A segment cleaned: runs of batches, chunks, and segments that are not those of the bitmap."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.batches.rewrite_offsets import shift_offsets
from klog.logformat.cleaning.clean_batches import SegmentCleaner
from tests.logformat.cleaning.cleaned_segments import (
    FOUR,
    bitmap_of,
    cleaned_bytes,
    cleaned_runs,
    context_of,
    only_batch,
)
from tests.logformat.cleaning.cleaning_rounds import scan
from tests.logformat.cleaning.kafka_cleaner_model import batches
from tests.logformat.reference_decoder import decode_with_klog
from tests.support.batch_bytes import ABORT, CODECS, GZIP, ZSTD, Record, batch, marker, sealed


def test_batch_with_all_records_keeps_its_bytes() -> None:
    """Also with overlong varints, or from another compressor."""
    wide = batch(FOUR, wide=(3, 4, 2))
    compressed = [batch(FOUR, attributes=codec) for codec in CODECS]
    for data in (wide, gzip_stored(FOUR), *compressed):
        assert cleaned_bytes(data, "xxxx") == data


def gzip_stored(records: Sequence[Record]) -> bytes:
    """Write gzip as no encoder of klog does: without compression."""
    payload = gzip.compress(batch(records)[61:], 0, mtime=9)
    return batch(records, attributes=GZIP, payload=payload)


def test_unchanged_neighbours_are_one_run() -> None:
    segment = b"".join(
        batch([Record(offset, 1000, b"k", b"v"), Record(offset + 1, 1000, b"l", b"v")])
        for offset in range(0, 14, 2)
    )
    size = len(segment) // 7
    runs = cleaned_runs(segment, "xxxx..xxx.xxxx")
    assert [len(run.batches) for run in runs] == [2, 1, 1, 2]
    assert runs[0].data == segment[: 2 * size]
    assert runs[1].data == segment[3 * size : 4 * size]
    assert runs[3].data == segment[5 * size :]
    assert len(cleaned_runs(segment, "x" * 14)) == 1
    assert cleaned_runs(segment, "." * 14) == []


def test_shifted_batches_are_cleaned_at_their_new_offsets() -> None:
    """Unchanged batches keep their bytes until their offsets are rewritten."""
    data = batch(FOUR) + batch([Record(14, 9, b"x", b"1"), Record(15, 9, b"y", b"2")])
    cleaner = SegmentCleaner(bitmap_of("xxxx.x"), context_of())
    runs = list(cleaner.clean(data, shift_offsets(scan(data), 90)))
    assert [run.batches.base_offsets.tolist() for run in runs] == [[100], [104]]
    assert runs[0].data == batch(FOUR)
    rewritten = b"".join(run.rewritten().data for run in runs)
    assert [record.offset for record in decode_with_klog(rewritten)] == [100, 101, 102, 103, 105]
    assert [cleaned.last_offset for cleaned in batches(rewritten)] == [103, 105]
    emptier = SegmentCleaner(bitmap_of("......"), context_of(105))
    (run,) = emptier.clean(data, shift_offsets(scan(data), 90))
    assert only_batch(run.data).base_offset == 104


def test_segment_comes_in_chunks() -> None:
    log = batch(FOUR) + marker(14, 1, ABORT) + batch([Record(15, 1, b"x", b"y")])
    cleaner, cleaned = SegmentCleaner(bitmap_of("x..xx"), context_of()), b""
    log_batches = scan(log)
    for number in range(3):
        chunk = log_batches.slice(number, number + 1)
        cleaned += b"".join(run.data for run in cleaner.clean(log, chunk))
    cleaner.close()
    assert cleaned == cleaned_bytes(log, "x..xx")


def test_retains_all_writes_nothing() -> None:
    log = batch(FOUR) + marker(14, 1, ABORT)
    for signs, context, retains_all in (
        ("xxxx", context_of(), True),
        ("xxx.", context_of(), False),
        ("xxxt", context_of(), False),
        ("xxxx", context_of(removable=[14]), False),
        ("....", context_of(), False),
        ("xxxx", context_of(13), True),
    ):
        cleaner = SegmentCleaner(bitmap_of(signs), context)
        assert cleaner.retains_all(log, scan(log)) == retains_all
        cleaner.close()


def with_count(data: bytes, count: int) -> bytes:
    return sealed(data[:57] + count.to_bytes(4, "big") + data[61:])


SIGNS = ("xxxx", "x..x", "....", "xxx", "x.x", "xxxxx", "x...x")


@pytest.mark.parametrize(
    ("count", "signs"),
    # A batch that keeps all of as many records as it claims is not decoded.
    [(n, signs) for n in (0, 1, 3) for signs in SIGNS if (n, signs) != (3, "xxx")],
)
@pytest.mark.parametrize("codec", [0, ZSTD])
def test_wrong_record_count_is_detected(codec: int, count: int, signs: str) -> None:
    data = with_count(batch(FOUR, attributes=codec), count)
    cleaner = SegmentCleaner(bitmap_of(signs), context_of(13))
    with pytest.raises((CorruptRecordError, ValueError), match="record"):
        _clean_and_close(cleaner, data)


def _clean_and_close(cleaner: SegmentCleaner, data: bytes) -> None:
    list(cleaner.clean(data, scan(data)))
    cleaner.close()


def test_more_records_than_bits() -> None:
    cleaner = SegmentCleaner(bitmap_of("xxx"), context_of())
    with pytest.raises(ValueError, match="4 records, but the bitmap has 3"):
        list(cleaner.clean(batch(FOUR), scan(batch(FOUR))))


def test_fewer_records_than_bits() -> None:
    cleaner = SegmentCleaner(bitmap_of("xxxxx"), context_of())
    list(cleaner.clean(batch(FOUR), scan(batch(FOUR))))
    with pytest.raises(ValueError, match="4 records, but the bitmap has 5"):
        cleaner.close()
