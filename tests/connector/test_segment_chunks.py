"""Chunks of complete batches: every batch once, and errors with their position in the file."""

from __future__ import annotations

import pytest

from klog.connector.segment_chunks import CHUNK_BYTES, read_chunks
from klog.errors import CorruptRecordError
from tests.connector.log_dirs import many
from tests.logformat.golden_vectors import LEGACY
from tests.support.batch_bytes import Record, batch, plain

BATCHES = many(20)
SIZE = len(BATCHES[0])


class Bytes:
    """A file in memory that counts what is read."""

    identity = stamp = "bytes"

    def __init__(self, data: bytes) -> None:
        self.data, self.size_bytes = data, len(data)
        self.reads: list[tuple[int, int]] = []

    def read(self, start: int, end: int) -> bytes:
        self.reads.append((start, end))
        return self.data[start:end]

    def close(self) -> None: ...


def flat(chunks: list[list[int]]) -> list[int]:
    return [offset for offsets in chunks for offset in offsets]


def base_offsets(
    data: bytes, chunk_bytes: int, start: int = 0, end: int | None = None
) -> list[list[int]]:
    """Return the base offsets of each chunk."""
    file = Bytes(data)
    end = len(data) if end is None else end
    chunks, position = [], start
    for chunk in read_chunks(file, start, end, chunk_bytes=chunk_bytes):
        assert chunk.position == position
        position = chunk.end_position
        chunks.append(chunk.batches.base_offsets.tolist())
    assert all(stop <= end for _, stop in file.reads)
    return chunks


@pytest.mark.parametrize("chunk_bytes", [61, SIZE - 1, SIZE, SIZE + 1, 5 * SIZE + 7, 1 << 20])
def test_chunks_of_any_size_have_every_batch_once(chunk_bytes: int) -> None:
    data = b"".join(BATCHES[:20])
    chunks = base_offsets(data, chunk_bytes)
    assert flat(chunks) == list(range(20))
    assert max(map(len, chunks)) <= max(chunk_bytes // SIZE, 1)


def test_one_batch_longer_than_a_chunk() -> None:
    data = plain(0) + plain(1, [b"v" * 9000]) + plain(2)
    assert flat(base_offsets(data, 100)) == [0, 1, 2]


@pytest.mark.parametrize("chunk_bytes", [SIZE, 3 * SIZE, 1 << 20])
def test_chunks_end_if_no_complete_batch_fits(chunk_bytes: int) -> None:
    data = b"".join(BATCHES[:5])
    for end in range(3 * SIZE, 4 * SIZE):
        assert flat(base_offsets(data, chunk_bytes, SIZE, end)) == [1, 2]
    assert base_offsets(data, chunk_bytes, 5 * SIZE) == []


def until_damage(data: bytes, chunk_bytes: int) -> tuple[list[int], int]:
    """Read up to an error; return the base offsets before it and its position."""
    offsets: list[int] = []
    try:
        for chunk in read_chunks(Bytes(data), 0, len(data), chunk_bytes=chunk_bytes):
            offsets += chunk.batches.base_offsets.tolist()
    except CorruptRecordError as exc:
        return offsets, exc.position
    raise AssertionError("there is no damage")


@pytest.mark.parametrize("chunk_bytes", [SIZE, 3 * SIZE, 1 << 20])
@pytest.mark.parametrize("damage", [bytes(100), BATCHES[3], b"\xff" * 300])
def test_batches_before_damage_are_read(chunk_bytes: int, damage: bytes) -> None:
    data = b"".join(BATCHES[:7]) + damage
    assert until_damage(data, chunk_bytes) == (list(range(7)), 7 * SIZE)


@pytest.mark.parametrize("chunk_bytes", [10 * SIZE, 1 << 20])
def test_batches_before_the_first_of_two_damages_are_read(chunk_bytes: int) -> None:
    # `read_chunks`: the batches before it come first, the position is the one in the file.
    data = b"".join([*BATCHES[:7], BATCHES[3], bytes(100)])
    assert until_damage(data, chunk_bytes) == (list(range(7)), 7 * SIZE)


@pytest.mark.parametrize("chunk_bytes", [SIZE, 1 << 20])
def test_offsets_rise_across_chunks(chunk_bytes: int) -> None:
    data = plain(0, [b"v" * 92]) + plain(5, [b"v" * 92]) + plain(3, [b"v" * 92])
    with pytest.raises(CorruptRecordError) as caught:
        list(read_chunks(Bytes(data), 0, len(data), chunk_bytes=chunk_bytes))
    assert caught.value.position == 2 * len(plain(0, [b"v" * 92]))


def test_offsets_start_at_the_first_that_is_allowed() -> None:
    data = b"".join(BATCHES[5:9])
    assert len(list(read_chunks(Bytes(data), 0, len(data), 5))) == 1
    with pytest.raises(CorruptRecordError, match="offset 5 after offset 5"):
        list(read_chunks(Bytes(data), 0, len(data), 6))


def test_a_batch_beyond_the_limit_is_refused_before_it_is_read() -> None:
    head = batch([Record(0, 0)], length=(1 << 31) - 1)

    class Endless(Bytes):
        def read(self, start: int, end: int) -> bytes:
            assert end - start <= 1 << 20
            return super().read(start, end)

    file = Endless(head)
    file.size_bytes = 1 << 32
    with pytest.raises(CorruptRecordError, match="is refused, the limit is"):
        list(read_chunks(file, 0, 1 << 32, chunk_bytes=1 << 20))


def test_other_message_formats_between() -> None:
    data = plain(0) + LEGACY["v1 gzip (CreateTime)"] + plain(8)
    for size in (61, 100, 150, 4096):
        chunks = list(read_chunks(Bytes(data), 0, len(data), chunk_bytes=size))
        offsets = [chunk.batches.next_offsets.tolist() for chunk in chunks]
        assert flat(offsets) == [1, 8, 9]
        assert chunks[-1].end_position == len(data)


def test_a_chunk_has_enough_batches_to_decode_side_by_side() -> None:
    assert CHUNK_BYTES >= 1 << 20
