"""Several cleanings in a row, byte for byte compared to a model of Kafka's cleaner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.cleaning.clean_batches import SegmentCleaner
from klog.logformat.cleaning.offset_map import MIN_MAP_BYTES
from tests.logformat.cleaning.cleaning_rounds import (
    NEVER,
    Round,
    cleaned,
    marked,
    next_offset,
    scan,
)
from tests.logformat.cleaning.kafka_cleaner_model import (
    ActiveProducer,
    Batch,
    CleanerModel,
    active_producers,
    batches,
)
from tests.logformat.cleaning.random_logs import START_MS, cuts, logs
from tests.logformat.reference_decoder import decode_with_klog
from tests.support.batch_bytes import (
    ABORT,
    CODECS,
    CONTROL,
    TRANSACTIONAL,
    Record,
    batch,
    compress,
    control,
    sealed,
)
from tests.support.decompression import decompress

RETENTION_MS = 20


def cleaned_by_model(
    segments: list[bytes], round_: Round, producers: dict[int, ActiveProducer]
) -> list[Batch]:
    """Return what Kafka retains of a log."""
    own, _ = round_.split(segments)
    ends = [0, round_.dirty_from, *map(next_offset, own)]
    active = {
        producer_id: producer
        for producer_id, producer in producers.items()
        if round_.now_ms - producer.timestamp < round_.expiration_ms
    }
    model = CleanerModel(round_.dirty_from, max(ends), round_.now_ms, round_.retention_ms, active)
    return list(model.clean(batches_of(segments)))


def batches_of(segments: list[bytes]) -> list[Batch]:
    return [batch_ for segment in segments for batch_ in batches(segment)]


@st.composite
def rounds(draw: st.DrawFn, segments: list[bytes]) -> list[Round]:
    """Draw cleanings in a row; each is dirty from the end of the last one, or from before it."""
    drawn, end, now = [], 0, START_MS
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, len(segments)))
        if count and next_offset(segments[count - 1]) >= end:
            dirty_from = draw(st.integers(max(end - 2, 0), end))
            drawn.append(Round(dirty_from, count, now, RETENTION_MS))
            end = next_offset(segments[count - 1])
        now += draw(st.sampled_from((0, 1, RETENTION_MS - 1, RETENTION_MS, 3 * RETENTION_MS)))
    return drawn


@settings(max_examples=100)
@given(st.data())
def test_cleaning_equals_the_model(data: st.DataObject) -> None:
    """Unchanged batches have the same bytes, others those of the model."""
    segments = data.draw(cuts(data.draw(logs())))
    producers = active_producers(batches_of(segments))
    expiration_ms = data.draw(st.sampled_from((NEVER, NEVER, 0)))
    later_ms = 0 if expiration_ms else 100  # After all timestamps: all producers have expired.
    for drawn in data.draw(rounds(segments)):
        round_ = replace(drawn, expiration_ms=expiration_ms, now_ms=drawn.now_ms + later_ms)
        expected = cleaned_by_model(segments, round_, producers)
        segments = cleaned(segments, round_)
        actual = batches_of(segments)
        assert actual == expected
        for cleaned_batch, model_batch in zip(actual, expected, strict=True):
            assert cleaned_batch.data == (model_batch.data or model_batch.encoded())


def test_marker_at_the_end_of_the_cleaned_part_is_emptied() -> None:
    """Its producer is known by a later marker, but the last cleaned offset is its own."""
    segments = [_marker_of_epoch(0), _marker_of_epoch(1)]
    producers = active_producers(batches_of(segments))
    for now_ms in (START_MS, START_MS + RETENTION_MS):
        round_ = Round(0, 1, now_ms, RETENTION_MS)
        expected = cleaned_by_model(segments, round_, producers)
        segments = cleaned(segments, round_)
        assert batches_of(segments) == expected
    assert [len(cleaned_batch.records) for cleaned_batch in batches_of(segments)] == [0, 1]


def _marker_of_epoch(offset: int) -> bytes:
    """Write a marker whose epoch is its offset."""
    attributes = TRANSACTIONAL | CONTROL
    return control(
        offset,
        ABORT,
        producer_id=1,
        producer_epoch=offset,
        timestamp=START_MS,
        attributes=attributes,
    )


@settings(max_examples=60)
@given(st.data())
def test_codec_does_not_matter(data: st.DataObject) -> None:
    """Compressed batches are cleaned as uncompressed ones, and keep their codec."""
    plain = data.draw(cuts(data.draw(logs())))
    codec = data.draw(st.sampled_from(CODECS))
    segments = [_compressed(segment, codec) for segment in plain]
    for round_ in data.draw(rounds(plain)):
        plain, segments = cleaned(plain, round_), cleaned(segments, round_)
        assert [_uncompressed(segment, codec) for segment in segments] == plain


def _compressed(segment: bytes, codec: int) -> bytes:
    return b"".join(
        plain.data
        if plain.has(CONTROL)
        else _with_payload(plain.data, codec, compress(codec, plain.data[61:]))
        for plain in batches(segment)
    )


def _with_payload(data: bytes, codec: int, payload: bytes) -> bytes:
    """Replace the codec and the records of a batch."""
    length = (49 + len(payload)).to_bytes(4, "big")
    attributes = (int.from_bytes(data[21:23], "big") & ~7 | codec).to_bytes(2, "big")
    return sealed(data[:8] + length + data[12:21] + attributes + data[23:61] + payload)


def _uncompressed(segment: bytes, codec: int) -> bytes:
    """Decompress the batches of a segment; each one with records has the codec."""
    plain = b""
    scanned = scan(segment)
    for start, end in zip(scanned.starts.tolist(), scanned.ends.tolist(), strict=True):
        data = segment[start:end]
        attributes = int.from_bytes(data[21:23], "big")
        if len(data) == 61 or attributes & CONTROL:
            assert attributes & 7 == 0
            plain += data
        else:
            assert attributes & 7 == codec
            plain += _with_payload(data, 0, decompress(codec, data[61:]))
    return plain


def test_many_keys_in_little_memory() -> None:
    """If the offset map drops keys, others follow, and the result is the same."""
    numbers = np.random.default_rng(5).integers(0, 6_000, 12_000).tolist()
    records = [
        Record(offset, START_MS, b"%d" % n, None if n % 7 == 0 else b"%d" % offset)
        for offset, n in enumerate(numbers)
    ]
    segments = [
        b"".join(batch(records[row : row + 500]) for row in range(start, start + 4_000, 500))
        for start in range(0, 12_000, 4_000)
    ]
    large, small = Round(now_ms=5, map_bytes=1 << 24), Round(now_ms=5, map_bytes=MIN_MAP_BYTES)
    for later in ({}, {"dirty_from": 5_345}):
        expected = cleaned(segments, replace(large, **later))
        assert cleaned(segments, replace(small, **later)) == expected
    last = {record.key: record for record in records}
    retained = decode_with_klog(b"".join(cleaned(segments, small)))
    assert retained == sorted(last.values(), key=lambda record: record.offset)


@settings(max_examples=40)
@given(st.data())
def test_retains_all_predicts_the_bytes(data: st.DataObject) -> None:
    """It is True exactly if the cleaning leaves the same bytes; repeated cleanings converge."""
    segments = data.draw(cuts(data.draw(logs())))
    round_, is_stable = Round(now_ms=START_MS, retention_ms=RETENTION_MS), False
    for _ in range(4):
        bitmaps, context = marked(segments, (), round_)
        after = cleaned(segments, round_)
        for segment, bitmap, cleaned_segment in zip(segments, bitmaps, after, strict=True):
            cleaner = SegmentCleaner(bitmap, context)
            assert cleaner.retains_all(segment, scan(segment)) == (cleaned_segment == segment)
            cleaner.close()
        is_stable, segments = after == segments, after
    assert is_stable
