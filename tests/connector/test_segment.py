"""Chunks of whole batches, and an index that has to prove itself."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from klog.connector.log import segment as segment_module
from klog.connector.log.segment import SegmentReader, chunks
from klog.connector.store.local import LocalFile
from klog.errors import CorruptRecordError
from tests.connector.logs import entries_of, many, offset_index, open_segment, time_index, write_log
from tests.encode import Record, batch, plain
from tests.logformat.golden import LEGACY

BATCHES = many(200)
SIZE = len(BATCHES[0])


class Bytes:
    """A file in memory that counts what is read."""

    identity = stamp = "bytes"

    def __init__(self, data: bytes) -> None:
        self.data, self.size_bytes = data, len(data)
        self.reads: list[tuple[int, int]] = []

    def read(self, begin: int, end: int) -> bytes:
        self.reads.append((begin, end))
        return self.data[begin:end]

    def close(self) -> None: ...


def flat(pieces: list[list[int]]) -> list[int]:
    return [offset for piece in pieces for offset in piece]


def found(data: bytes, chunk_bytes: int, begin: int = 0, end: int | None = None) -> list[list[int]]:
    """Read in chunks: the base offsets of each."""
    file = Bytes(data)
    end = len(data) if end is None else end
    result, position = [], begin
    for chunk in chunks(file, begin, end, chunk_bytes=chunk_bytes):
        assert chunk.position == position
        position = chunk.end
        result.append(chunk.batches.base_offsets.tolist())
    assert all(stop <= end for _, stop in file.reads)
    return result


@pytest.mark.parametrize("chunk_bytes", [61, SIZE - 1, SIZE, SIZE + 1, 5 * SIZE + 7, 1 << 20])
def test_chunks_of_any_size_give_every_batch_once(chunk_bytes: int) -> None:
    data = b"".join(BATCHES[:20])
    pieces = found(data, chunk_bytes)
    assert flat(pieces) == list(range(20))
    assert max(map(len, pieces)) <= max(chunk_bytes // SIZE, 1)


def test_one_batch_longer_than_a_chunk() -> None:
    data = plain(0) + plain(1, [b"v" * 9000]) + plain(2)
    assert flat(found(data, 100)) == [0, 1, 2]


@pytest.mark.parametrize("chunk_bytes", [SIZE, 3 * SIZE, 1 << 20])
def test_chunks_end_where_no_whole_batch_fits(chunk_bytes: int) -> None:
    data = b"".join(BATCHES[:5])
    for end in range(3 * SIZE, 4 * SIZE):
        assert flat(found(data, chunk_bytes, SIZE, end)) == [1, 2]
    assert found(data, chunk_bytes, 5 * SIZE) == []


def until_damage(data: bytes, chunk_bytes: int) -> tuple[list[int], int]:
    """Read up to an error: the base offsets before it and the position it names."""
    seen: list[int] = []
    try:
        for chunk in chunks(Bytes(data), 0, len(data), chunk_bytes=chunk_bytes):
            seen += chunk.batches.base_offsets.tolist()
    except CorruptRecordError as exc:
        return seen, exc.position
    raise AssertionError("no damage was found")


@pytest.mark.parametrize("chunk_bytes", [SIZE, 3 * SIZE, 1 << 20])
@pytest.mark.parametrize("damage", [bytes(100), BATCHES[3], b"\xff" * 300])
def test_what_is_good_before_damage_is_given(chunk_bytes: int, damage: bytes) -> None:
    data = b"".join(BATCHES[:7]) + damage
    assert until_damage(data, chunk_bytes) == (list(range(7)), 7 * SIZE)


@pytest.mark.parametrize("chunk_bytes", [10 * SIZE, 1 << 20])
def test_what_is_good_before_two_damages_is_given(chunk_bytes: int) -> None:
    # `chunks`: batches before the bad one are given, the position is the one in the file.
    data = b"".join([*BATCHES[:7], BATCHES[3], bytes(100)])
    assert until_damage(data, chunk_bytes) == (list(range(7)), 7 * SIZE)


@pytest.mark.parametrize("chunk_bytes", [SIZE, 1 << 20])
def test_offsets_rise_across_chunks(chunk_bytes: int) -> None:
    data = plain(0, [b"v" * 92]) + plain(5, [b"v" * 92]) + plain(3, [b"v" * 92])
    with pytest.raises(CorruptRecordError) as caught:
        list(chunks(Bytes(data), 0, len(data), chunk_bytes=chunk_bytes))
    assert caught.value.position == 2 * len(plain(0, [b"v" * 92]))


def test_offsets_begin_at_the_first_that_may_be() -> None:
    data = b"".join(BATCHES[5:9])
    assert len(list(chunks(Bytes(data), 0, len(data), 5))) == 1
    with pytest.raises(CorruptRecordError, match="offset 5 behind offset 5"):
        list(chunks(Bytes(data), 0, len(data), 6))


def test_a_batch_beyond_the_limit_is_refused_before_it_is_read() -> None:
    head = batch([Record(0, 0)], length=(1 << 31) - 1)

    class Endless(Bytes):
        def read(self, begin: int, end: int) -> bytes:
            assert end - begin <= 1 << 20
            return super().read(begin, end)

    file = Endless(head)
    file.size_bytes = 1 << 32
    with pytest.raises(CorruptRecordError, match="is refused, the limit is"):
        list(chunks(file, 0, 1 << 32, chunk_bytes=1 << 20))


def test_other_message_formats_between() -> None:
    data = plain(0) + LEGACY["v1 gzip (CreateTime)"] + plain(8)
    for size in (61, 100, 150, 4096):
        found = list(chunks(Bytes(data), 0, len(data), chunk_bytes=size))
        assert [n for c in found for n in c.batches.next_offsets.tolist()] == [1, 8, 9]
        assert found[-1].end == len(data)


# A segment on disk, with index files of every kind.

TRUE = entries_of(BATCHES, 10)
KINDS: dict[str, bytes | None] = {
    "true": offset_index(TRUE),
    "preallocated": offset_index(TRUE) + bytes(8000),
    "missing": None,
    "empty": b"",
    "zeros": bytes(800),
    "garbage": b"garbage",
    "a byte more": offset_index(TRUE) + b"\0",
    "no batches there": offset_index([(offset, position + 1) for offset, position in TRUE]),
    "past the end": offset_index([*TRUE, (199, 1 << 30)]),
    "too small offsets": offset_index([(offset - 9, position) for offset, position in TRUE]),
    "one too small": offset_index([(20, 90 * SIZE), *TRUE[9:]]),
    "last one wrong": offset_index([*TRUE[:-1], (191, 195 * SIZE)]),
}


def reader_with(root: Path, index: bytes | None) -> SegmentReader:
    directory = write_log(root, {0: BATCHES})
    if index is not None:
        (directory / "00000000000000000000.index").write_bytes(index)
    return open_segment(directory)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_from_the_position_meets_the_offset(tmp_path: Path, kind: str) -> None:
    for offset in range(210):
        reader = reader_with(tmp_path, KINDS[kind])
        position = reader.position_before(offset)
        assert position % SIZE == 0
        assert position // SIZE <= min(offset, 199)
        reader.close()


@pytest.mark.parametrize("kind", ["true", "preallocated"])
def test_a_good_index_is_used(tmp_path: Path, kind: str) -> None:
    reader = reader_with(tmp_path, KINDS[kind])
    assert reader.index().positions.tolist() == [position for _, position in TRUE]
    assert reader.position_before(57) == 50 * SIZE
    reader.close()


@pytest.mark.parametrize("kind", ["missing", "garbage", "no batches there", "last one wrong"])
def test_another_is_made_from_the_log(tmp_path: Path, kind: str) -> None:
    reader = reader_with(tmp_path, KINDS[kind])
    index = reader.index()
    assert index.offsets.tolist() == [position // SIZE for position in index.positions.tolist()]
    assert (index.positions[1:] - index.positions[:-1]).max() <= 4096 + SIZE
    assert reader.position_before(199) >= 199 * SIZE - 4096 - SIZE
    reader.close()


def test_an_index_made_from_a_damaged_log_ends_before_the_damage(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: [*BATCHES[:100], bytes(500)]})
    reader = open_segment(directory)
    assert 0 < int(reader.index().positions[-1]) < 100 * SIZE
    reader.close()


def test_cut_at(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {50: [plain(50), plain(60)]})
    reader = open_segment(directory, 50)
    one, whole = len(plain(50)), reader.file.size_bytes
    assert [reader.cut_at(at) for at in (0, one, 1, one - 1, whole, whole + 9)] == [
        50, 60, None, None, None, None,
    ]  # fmt: skip
    assert reader.is_batch(one, 60)
    assert not reader.is_batch(one, 59)
    reader.close()


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(batch([Record(60, 0)], magic=1), id="magic"),
        pytest.param(batch([Record(60, 0)], length=48), id="short"),
        pytest.param(batch([Record(60, 0)], length=9000), id="past the end"),
        pytest.param(plain(49), id="below the segment"),
        pytest.param(plain(50 + (1 << 31)), id="above the segment"),
    ],
)
def test_what_is_no_batch_of_the_segment(tmp_path: Path, one: bytes) -> None:
    reader = open_segment(write_log(tmp_path, {50: [one]}), 50)
    assert reader.cut_at(0) is None
    reader.close()


def test_the_time_index(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: BATCHES})
    path = directory / "00000000000000000000.timeindex"
    for data, timestamps in (
        (None, None),
        (b"x", None),
        (time_index([(1500, 5), (1600, 9)]), [1500, 1600]),
    ):
        if data is not None:
            path.write_bytes(data)
        reader = open_segment(directory)
        index = reader.time_index()
        assert (None if index is None else index.timestamps.tolist()) == timestamps
        reader.close()
    reader = open_segment(directory)
    path.unlink()
    assert reader.time_index() is None
    reader.close()


def test_reads_are_of_the_open_file(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {0: BATCHES})
    reader = open_segment(directory)
    (directory / "00000000000000000000.log").unlink()
    assert isinstance(reader.file, LocalFile)
    assert struct.unpack(">q", reader.file.read(7 * SIZE, 7 * SIZE + 8)) == (7,)
    assert segment_module.CHUNK_BYTES >= 1 << 20
    reader.close()
