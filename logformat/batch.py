"""Record batch v2: where batches begin, what their headers say, whether their checksum holds.

    offset  size  field
         0     8  baseOffset            outside the CRC, set by the leader
         8     4  batchLength           total size - 12
        12     4  partitionLeaderEpoch  outside the CRC
        16     1  magic                 2
        17     4  crc                   CRC-32C of byte 21 to the end
        21     2  attributes            bits 0-2 codec, 3 LogAppendTime, 4 transactional,
                                        5 control, 6 delete horizon
        23     4  lastOffsetDelta
        27     8  baseTimestamp         ms, or the delete horizon
        35     8  maxTimestamp          ms
        43     8  producerId
        51     2  producerEpoch
        53     4  baseSequence
        57     4  recordsCount
        61        records, or their compressed form

(Format notes 1.1 and 1.2; Kafka's `DefaultRecordBatch`, `FileLogInputStream`.) A length is believed
only as far as the bytes at hand reach; what does not fit ends the scan and is left to the caller,
who knows whether the file goes on.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TypeAlias

import google_crc32c
import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError, UnsupportedFormatError

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
HEADER_BYTES = HEADER.itemsize
FRAME_BYTES = 12
CHECKED_FROM = 21
MAGIC_AT = 16
MIN_LENGTH = HEADER_BYTES - FRAME_BYTES
MIN_LEGACY_LENGTH = 14
MIN_FRAME_BYTES = 17
"""Up to the magic, which tells the formats apart."""
MAX_OFFSET_DELTA = (1 << 31) - 1
MAX_OFFSET = (1 << 63) - 2

_CRC_STEP_BYTES = 64 << 10

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

Headers: TypeAlias = npt.NDArray[np.void]
Longs: TypeAlias = npt.NDArray[np.int64]

_frame = struct.Struct(">iiB").unpack_from
_crc = struct.Struct(">I").unpack_from


@dataclass(frozen=True, slots=True)
class Batches:
    """Consecutive batches of one buffer: a row of each array is one batch.

    `starts` and `ends` are positions in the buffer; `headers` has dtype `HEADER`.
    """

    starts: Longs
    ends: Longs
    headers: Headers

    def __len__(self) -> int:
        """Give the number of batches."""
        return len(self.starts)

    @property
    def base_offsets(self) -> Longs:
        """Give the base offset of each batch."""
        offsets: Longs = self.headers["base_offset"].astype(np.int64)
        return offsets

    @property
    def next_offsets(self) -> Longs:
        """Give the offset behind the last one of each batch, whether or not it has a record."""
        offsets: Longs = self.base_offsets + self.headers["last_offset_delta"] + 1
        return offsets

    @property
    def attributes(self) -> npt.NDArray[np.int16]:
        """Give the attributes of each batch in the machine's byte order."""
        return self.headers["attributes"].astype(np.int16)

    def where(self, mask: npt.NDArray[np.bool_]) -> Batches:
        """Keep the batches for which `mask` holds."""
        return Batches(self.starts[mask], self.ends[mask], self.headers[mask])

    def part(self, begin: int, end: int) -> Batches:
        """Keep the batches from `begin` to before `end`, by number."""
        return Batches(self.starts[begin:end], self.ends[begin:end], self.headers[begin:end])


def scan(data: bytes, begin: int, end: int) -> Batches:
    """Find the whole batches that lie between two positions of `data`.

    The scan stops at the first batch that is not whole; `ends[-1]` (or `begin`) says where.
    Raises `CorruptRecordError` at a length that no batch can have or at offsets that do not rise,
    `UnsupportedFormatError` at a magic this klog does not read.
    """
    starts: list[int] = []
    position = begin
    while position + MIN_FRAME_BYTES <= end:
        length, _, magic = _frame(data, position + 8)
        behind = position + FRAME_BYTES + length
        if magic != 2 or length < MIN_LENGTH:
            legacy = magic in (0, 1) and length >= MIN_LEGACY_LENGTH
            if legacy and behind <= end and _is_legacy(data[position:behind]):
                raise UnsupportedFormatError(
                    f"message format v{magic}; this klog reads format v2 (Kafka 0.11 and later)",
                    position,
                )
            if end - position < HEADER_BYTES or (legacy and behind > end):
                break
            raise CorruptRecordError(_fault(data[position:behind], length, magic), position)
        if behind > end:
            break
        starts.append(position)
        position = behind
    batches = _gather(data, starts, position)
    check_offsets(batches)
    return batches


def _is_legacy(entry: bytes) -> bool:
    """Tell whether an entry is a message of format v0 or v1: its CRC-32 says so."""
    return bool(_crc(entry, FRAME_BYTES)[0] == zlib.crc32(entry[MAGIC_AT:]))


def _fault(batch: bytes, length: int, magic: int) -> str:
    """Say what is wrong with a frame that is not a whole batch of format v2."""
    if magic == 2:
        return f"batch length {length} is below {MIN_LENGTH}"
    if len(batch) >= HEADER_BYTES and is_intact(batch):
        return f"magic {magic} on a batch of format v2"
    return f"magic {magic}, but no message of such a format"


def _gather(data: bytes, starts: list[int], end: int) -> Batches:
    at = np.array(starts, np.int64)
    ends = np.append(at[1:], end) if len(at) else at
    if not len(at):
        return Batches(at, ends, np.empty(0, HEADER))
    view: Headers = np.ndarray((len(data) - HEADER_BYTES + 1,), HEADER, data, 0, (1,))
    return Batches(at, ends, view[at])


def check_offsets(batches: Batches) -> None:
    """Refuse offsets that do not rise: they lie outside the CRC, so only order can tell."""
    deltas = batches.headers["last_offset_delta"].astype(np.int64)
    counts = batches.headers["count"].astype(np.int64)
    bases, nexts = batches.base_offsets, batches.next_offsets
    fault = (deltas < 0) | (counts < 0) | (counts > deltas + 1)
    fault |= (bases < 0) | (bases > MAX_OFFSET - MAX_OFFSET_DELTA)
    fault[1:] |= bases[1:] < nexts[:-1]
    if fault.any():
        first = int(np.argmax(fault))
        raise CorruptRecordError(
            f"batch of {counts[first]} records at offset {bases[first]} and {deltas[first]} more"
            f"{f' behind offset {nexts[first - 1] - 1}' if first else ''}",
            int(batches.starts[first]),
        )


def is_intact(batch: bytes) -> bool:
    """Tell whether one whole batch, given from its first byte to its last, keeps its CRC."""
    return bool(_crc(batch, 17)[0] == _crc32c(batch, CHECKED_FROM, len(batch)))


def check_crcs(data: bytes, batches: Batches) -> None:
    """Compare every batch with its stored CRC-32C; raise `CorruptRecordError` at the first bad."""
    stored = batches.headers["crc"].tolist()
    spans = zip(batches.starts.tolist(), batches.ends.tolist(), stored, strict=True)
    for start, end, crc in spans:
        computed = _crc32c(data, start + CHECKED_FROM, end)
        if computed != crc:
            raise CorruptRecordError(
                f"CRC-32C is {computed:#010x}, the batch says {crc:#010x}", start
            )


def _crc32c(data: bytes, begin: int, end: int) -> int:
    """Sum `data[begin:end]` in steps whose copies, which the library needs, stay in cache."""
    crc = google_crc32c.value(data[begin : min(begin + _CRC_STEP_BYTES, end)])
    for at in range(begin + _CRC_STEP_BYTES, end, _CRC_STEP_BYTES):
        crc = google_crc32c.extend(crc, data[at : min(at + _CRC_STEP_BYTES, end)])
    return int(crc)
