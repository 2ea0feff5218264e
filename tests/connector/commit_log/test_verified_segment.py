"""Segments read from their end: the same chunks, and the same said of what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.commit_log.root_discovery import find_root
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.verified_segment import read_verified, read_verified_backwards
from klog.connector.segment_chunks import Chunk
from klog.errors import CorruptFileError
from tests.jobs.compacted_topics import created, path_of, rows
from tests.jobs.partition_bytes import entries_of
from tests.jobs.written_root import WrittenRoot

CHUNK_BYTES = 1000


@pytest.fixture(name="segment")
def _segment(tmp_path: Path) -> tuple[KlogRoot, SegmentEntry]:
    root = WrittenRoot(str(tmp_path / "root"))
    created(root, segment_bytes="1000000")
    root.append("t", rows(0, 200, size=60), batch_size="400")
    (entry,) = entries_of(path_of(root))
    opened = find_root(root.location)
    assert opened is not None
    return opened, entry


def backwards(root: KlogRoot, entry: SegmentEntry, held: int) -> Iterator[Chunk]:
    return read_verified_backwards(root, entry, held, CHUNK_BYTES)


def contents(chunks: Iterator[Chunk]) -> list[tuple[int, bytes, list[int]]]:
    return [
        (
            chunk.position,
            chunk.data[: chunk.end_position - chunk.position],
            chunk.batches.base_offsets.tolist(),
        )
        for chunk in chunks
    ]


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_the_same_chunks_the_last_one_first(
    segment: tuple[KlogRoot, SegmentEntry], held: int
) -> None:
    root, entry = segment
    expected = contents(read_verified(root, entry, CHUNK_BYTES))
    assert len(expected) > 5
    assert contents(backwards(root, entry, held)) == expected[::-1]


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_nothing_is_given_of_a_damaged_segment(
    segment: tuple[KlogRoot, SegmentEntry], held: int
) -> None:
    root, entry = segment
    path = Path(root.path) / entry["file"]
    sound = path.read_bytes()
    for position in range(0, len(sound), 97):
        path.write_bytes(sound[:position] + bytes([sound[position] ^ 1]) + sound[position + 1 :])
        errors = [error_of(list, read(root, entry)) for read in (forwards, _of(held))]
        assert errors[0] == errors[1]
    path.unlink()
    assert "the file is missing" in error_of(next, backwards(root, entry, held))


def test_a_file_that_is_another_when_it_is_read_again(
    segment: tuple[KlogRoot, SegmentEntry],
) -> None:
    root, entry = segment
    path = Path(root.path) / entry["file"]
    sound = path.read_bytes()
    for position in range(0, len(sound), 97):
        path.write_bytes(sound)
        chunks = backwards(root, entry, 0)
        chunk = next(chunks)
        path.write_bytes(sound[:position] + bytes([sound[position] ^ 1]) + sound[position + 1 :])
        if position < chunk.position:
            error = error_of(list, chunks)
            path.write_bytes(
                sound[:position] + bytes([sound[position] ^ 1]) + sound[position + 1 :]
            )
            if "has changed since" not in error:
                assert error == error_of(list, forwards(root, entry))
            else:
                assert str(path) in error


def forwards(root: KlogRoot, entry: SegmentEntry) -> Iterator[Chunk]:
    return read_verified(root, entry, CHUNK_BYTES)


def _of(held: int) -> Callable[[KlogRoot, SegmentEntry], Iterator[Chunk]]:
    return lambda root, entry: backwards(root, entry, held)


def error_of(take: Callable[[Any], object], chunks: Iterator[Chunk]) -> str:
    with pytest.raises(CorruptFileError) as caught:
        take(chunks)
    return str(caught.value)
