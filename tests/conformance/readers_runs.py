"""Read files in chunks and logs on disk for the cases of Kafka's readers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from klog.connector.kafka_dir.log_bounds import RecoveryPoint
from klog.connector.kafka_dir.log_end import find_segment_end
from klog.connector.kafka_dir.offset_for_time import offset_for_time
from klog.connector.segment_chunks import CHUNK_BYTES, read_chunks
from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_checksum import check_batch_crcs
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.codecs.decompress import decompress_chunks
from tests.connector.log_dirs import open_log, open_segment, write_log

UNCLEAN = RecoveryPoint(0, is_cleanly_shut_down=False, is_locked_by_broker=False)


class Bytes:
    """A file in memory, which may claim to be longer than its bytes."""

    identity = stamp = "bytes"

    def __init__(self, data: bytes, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._data = data

    def read(self, begin: int, end: int) -> bytes:
        return self._data[begin:end]

    def close(self) -> None:
        pass


def batches_of(
    data: bytes, begin: int = 0, end: int | None = None, chunk_bytes: int = CHUNK_BYTES
) -> list[tuple[int, int]]:
    """Read a file between two positions: (last offset, max timestamp) of each batch."""
    file = Bytes(data, len(data))
    result = []
    for chunk in read_chunks(
        file, begin, len(data) if end is None else end, chunk_bytes=chunk_bytes
    ):
        check_batch_crcs(chunk.data, chunk.batches)
        lasts = (chunk.batches.next_offsets - 1).tolist()
        times = chunk.batches.headers["max_timestamp"].tolist()
        result += list(zip(lasts, times, strict=True))
    return result


def lasts(data: bytes, begin: int = 0, end: int | None = None) -> list[int]:
    """Return the last offsets of the batches between two positions."""
    return [last for last, _ in batches_of(data, begin, end)]


def lasts_before_damage(data: bytes) -> tuple[list[int], bool]:
    """Return the last offsets before the reader stops, and whether an error stopped it."""
    offsets: list[int] = []
    try:
        for chunk in read_chunks(Bytes(data, len(data)), 0, len(data)):
            offsets += (chunk.batches.next_offsets - 1).tolist()
    except CorruptRecordError:
        return offsets, True
    return offsets, False


def first_of(data: bytes, size_bytes: int) -> int:
    """Return the last offset of the first batch of a file of this size."""
    chunk = next(read_chunks(Bytes(data, size_bytes), 0, size_bytes))
    return int(chunk.batches.next_offsets[0]) - 1


def end_on_disk(data: bytes) -> tuple[int, int]:
    """Find the end of a log after an unclean shutdown: (next offset, position)."""
    with TemporaryDirectory() as root:
        reader = open_segment(write_log(Path(root), {0: [data]}, clean=False))
        try:
            end = find_segment_end(reader, UNCLEAN)
        finally:
            reader.close()
    return end.next_offset, end.position


def searched_by_time(data: bytes, timestamp_ms: int) -> int | None:
    """Find the first offset at or after a time."""
    with TemporaryDirectory() as root:
        write_log(Path(root), {0: [data]})
        return offset_for_time(open_log(Path(root)), timestamp_ms, 1 << 62)


def decompressed(codec: int, data: bytes, magic: int) -> bytes:
    """Decompress as for a batch of a format."""
    return b"".join(decompress_chunks(codec, memoryview(data), MAX_BATCH_BYTES, magic))
