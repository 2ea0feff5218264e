"""Write a log directory as a broker would hold it after default Java producers wrote to it.

The rule: bytes as a broker keeps them, so every Kafka reader can be timed on the same file. Framing
is that of Kafka's Java client: lz4 frames of independent 64 KiB blocks, xerial snappy, zstd without
a content size. A producer fills a batch of 16 KiB by its estimate of the *compressed* size, so a
better codec has more records in it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cramjam
import google_crc32c
import lz4.frame
import numpy as np
import zstandard
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.records import KEY_BYTES, Bytes, records
from klog.logformat.batches.record_batch import CRC_START, FRAME_BYTES, HEADER_BYTES
from klog.logformat.codecs.codec_names import CODEC_NAMES, GZIP, LZ4, NONE, SNAPPY, ZSTD

TOPIC = "records"
PARTITIONS = 4
FIRST_TIMESTAMP_MS = 1_700_000_000_000
INDEX_INTERVAL_BYTES = 4096
SMALL_BATCHES, LARGE_BATCHES = "16 KiB", "512 KiB"
"""The size of a batch: 16 KiB after compression (a producer's default), or 512 KiB before it."""

_RECORD_OVERHEAD_BYTES = KEY_BYTES + 10
_UNCOMPRESSED_RECORDS = 126
"""Records of 100 bytes in a default batch of a Java producer, without a codec."""
_PRODUCER_ESTIMATE = {"none": 1.0, "gzip": 217 / 126, "snappy": 1.5, "lz4": 1.5, "zstd": 217 / 126}
"""How many times more records a default batch holds because they get smaller."""
_LARGE_BYTES = 512 << 10
_XERIAL_BLOCK_BYTES = 32 << 10
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)

_base_offset = struct.Struct(">q")
_length = struct.Struct(">i")
_crc = struct.Struct(">I")
_index_entry = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class Shape:
    """One log to measure on: codec name, kind of batch, bytes of a value, records in all."""

    codec: str
    batch: str
    value_bytes: int
    records: int

    @property
    def batch_records(self) -> int:
        """Return the number of records in a full batch."""
        record_bytes = self.value_bytes + _RECORD_OVERHEAD_BYTES
        if self.batch == LARGE_BATCHES:
            return _LARGE_BYTES // record_bytes
        like_100_bytes = _UNCOMPRESSED_RECORDS * (100 + _RECORD_OVERHEAD_BYTES) / record_bytes
        return int(like_100_bytes * _PRODUCER_ESTIMATE[self.codec])


def shape_records(shape: Shape) -> Bytes:
    """Make the records of a shape, a row each; they depend on its sizes only."""
    return np.concatenate(list(records(shape.records, shape.value_bytes)))


def partition_logs(shape: Shape, rows: Bytes) -> Iterator[bytes]:
    """Make the log of each partition: a quarter of the records, 1 ms apart."""
    for part in np.array_split(rows, PARTITIONS):
        yield b"".join(batches(shape, part))


def batches(shape: Shape, rows: Bytes) -> Iterator[bytes]:
    """Make the batches of one partition, offsets from 0."""
    size, width = shape.batch_records, rows.shape[1]
    for first in range(0, len(rows), size):
        data = rows[first : first + size].tobytes()
        builder = DefaultRecordBatchBuilder(2, NONE, False, -1, -1, -1, len(data) * 2 + 4096)
        for index, at in enumerate(range(0, len(data), width)):
            timestamp_ms = FIRST_TIMESTAMP_MS + first + index
            key, value = data[at : at + KEY_BYTES], data[at + KEY_BYTES : at + width]
            if builder.append(index, timestamp_ms, key, value, []) is None:
                raise ValueError("the builder's buffer is too small")
        yield encode_batch(bytes(builder.build()), CODEC_NAMES.index(shape.codec), first)


def encode_batch(uncompressed: bytes, codec: int, base_offset: int) -> bytes:
    """Compress a batch as a producer would, and give it its offset as a leader does."""
    packed = _COMPRESS[codec](uncompressed[HEADER_BYTES:])
    batch = bytearray(uncompressed[:HEADER_BYTES] + packed)
    _base_offset.pack_into(batch, 0, base_offset)
    _length.pack_into(batch, 8, len(batch) - FRAME_BYTES)
    batch[CRC_START + 1] |= codec
    _crc.pack_into(batch, 17, google_crc32c.value(bytes(batch[CRC_START:])))
    return bytes(batch)


def write_log_directory(root: Path, shape: Shape, rows: Bytes) -> None:
    """Write `<topic>-<partition>` directories, each with one segment and its offset index."""
    for partition, part in enumerate(np.array_split(rows, PARTITIONS)):
        write_segment(root / f"{TOPIC}-{partition}", batches(shape, part))


def write_segment(directory: Path, segment_batches: Iterator[bytes]) -> int:
    """Write one partition's first segment, batch by batch; return its size."""
    directory.mkdir(parents=True)
    position = indexed = 0
    index = bytearray()
    with (directory / f"{0:020}.log").open("wb") as file:
        for batch in segment_batches:
            if position - indexed > INDEX_INTERVAL_BYTES:
                base, delta = _base_offset.unpack_from(batch)[0], _length.unpack_from(batch, 23)[0]
                index += _index_entry.pack(base + delta, position)
                indexed = position
            position += file.write(batch)
    (directory / f"{0:020}.index").write_bytes(index)
    return position


def _gzip(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=31)
    return stream.compress(data) + stream.flush()


def _snappy(data: bytes) -> bytes:
    """Write a xerial stream: a header, then blocks with their sizes."""
    pieces = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        pieces += (_length.pack(len(block)), block)
    return b"".join(pieces)


def _lz4(data: bytes) -> bytes:
    packed: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return packed


def _zstd(data: bytes) -> bytes:
    stream = zstandard.ZstdCompressor(level=3).compressobj()
    return stream.compress(data) + stream.flush()


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    NONE: bytes,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
