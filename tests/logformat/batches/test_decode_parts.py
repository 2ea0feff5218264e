"""Decoding in parts: their sizes, and that what was handed out stays what it was."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.batches.decode_records import decode_parts
from klog.logformat.batches.scan_batches import scan_batches
from tests.logformat.reference_decoder import ALL, to_records
from tests.support.batch_bytes import CODECS, NONE, ZSTD, Record, batch, sealed

SIZES = [10, 3000, 10, 10, 70000, 10, 200]


def _log(codec: int, letter: bytes) -> tuple[bytes, list[Record]]:
    """Make batches of one record each, of `SIZES`."""
    rows = [
        Record(offset, 1000 + offset, b"k%d" % offset, letter * size, (("h", letter),))
        for offset, size in enumerate(SIZES)
    ]
    return b"".join(batch([row], attributes=codec) for row in rows), rows


@pytest.mark.parametrize("part_bytes", [1, 100, 4000, 100_000])
@pytest.mark.parametrize("codec", CODECS)
def test_parts_make_the_whole(codec: int, part_bytes: int) -> None:
    """However small a part is, no batch is lost, cut or told twice; a large one is a part alone."""
    data, rows = _log(codec, b"a")
    parts = list(decode_parts(data, scan_batches(data, 0, len(data)), ALL, part_bytes))
    assert [row for part in parts for row in to_records(part)] == rows
    for part in parts:
        held = sum(len(row.value or b"") for row in to_records(part))
        assert len(part.offset) == 1 or held <= part_bytes * 1.25


@pytest.mark.parametrize("codec", set(CODECS) - {NONE})
def test_logs_decoded_in_turns_do_not_mix(codec: int) -> None:
    """Two logs decoded a part at a time, in turns, use different memory; parts kept stay right."""
    (log_a, records_a), (log_b, records_b) = _log(codec, b"a"), _log(codec, b"b")
    first = decode_parts(log_a, scan_batches(log_a, 0, len(log_a)), ALL, 100)
    second = decode_parts(log_b, scan_batches(log_b, 0, len(log_b)), ALL, 100)
    kept = list(zip_longest(first, second))
    assert [row for part, _ in kept if part for row in to_records(part)] == records_a
    assert [row for _, part in kept if part for row in to_records(part)] == records_b


def test_damage_after_good_batches_is_found_at_its_position() -> None:
    """What does not decompress is an error at its own batch, not at the part's first."""
    data, _ = _log(ZSTD, b"a")
    batches = scan_batches(data, 0, len(data))
    start, end = int(batches.starts[3]), int(batches.ends[3])
    bad = sealed(data[start : start + 61] + bytes(end - start - 61))
    data = data[:start] + bad + data[end:]
    with pytest.raises(CorruptRecordError, match="zstd data is damaged") as caught:
        list(decode_parts(data, scan_batches(data, 0, len(data)), ALL))
    assert caught.value.position == start
