"""A broker's segment: headers by position, and an index that has to prove itself."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from klog.connector.kafka_dir.segment_reader import SegmentReader
from klog.connector.store.local_store import LocalFile
from tests.connector.log_dirs import (
    entries_of,
    many,
    offset_index,
    open_segment,
    time_index,
    write_log,
)
from tests.support.batch_bytes import Record, batch, plain

BATCHES = many(200)
SIZE = len(BATCHES[0])


# A segment on disk, with index files of every kind.

TRUE = entries_of(BATCHES, 10)
KINDS: dict[str, bytes | None] = {
    "true": offset_index(TRUE),
    "preallocated": offset_index(TRUE) + bytes(8000),
    "missing": None,
    "empty": b"",
    "zeros": bytes(800),
    "not an index": b"12345678901",
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
def test_scan_from_the_position_meets_the_offset(tmp_path: Path, kind: str) -> None:
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


def test_an_index_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = reader_with(tmp_path, KINDS["true"])
    checks = []

    def has_batch_at(self: SegmentReader, *entry: int) -> bool:
        checks.append(entry)
        return True

    monkeypatch.setattr(SegmentReader, "has_batch_at", has_batch_at)
    for _ in range(3):
        reader.index()
    assert checks == [(TRUE[-1][1], TRUE[-1][0])]
    reader.close()


@pytest.mark.parametrize("kind", ["missing", "not an index", "no batches there", "last one wrong"])
def test_index_that_does_not_fit_is_made_from_the_log(tmp_path: Path, kind: str) -> None:
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


def test_first_offset_at_a_position(tmp_path: Path) -> None:
    directory = write_log(tmp_path, {50: [plain(50), plain(60)]})
    reader = open_segment(directory, 50)
    second, end = len(plain(50)), reader.file.size_bytes
    positions = (0, second, 1, second - 1, end, end + 9)
    assert [reader.first_offset_at(position) for position in positions] == [
        50, 60, None, None, None, None,
    ]  # fmt: skip
    assert reader.has_batch_at(second, 60)
    assert not reader.has_batch_at(second, 59)
    reader.close()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(batch([Record(60, 0)], magic=1), id="magic"),
        pytest.param(batch([Record(60, 0)], length=48), id="short"),
        pytest.param(batch([Record(60, 0)], length=9000), id="past the end"),
        pytest.param(plain(49), id="below the segment"),
        pytest.param(plain(50 + (1 << 31)), id="above the segment"),
    ],
)
def test_bytes_that_are_not_a_batch_of_the_segment(tmp_path: Path, data: bytes) -> None:
    reader = open_segment(write_log(tmp_path, {50: [data]}), 50)
    assert reader.first_offset_at(0) is None
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
    reader.close()
