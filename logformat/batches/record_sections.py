"""Where the records of several batches lie, uncompressed: side by side in one buffer.

The rule: what is decoded many batches at a time has to lie in one buffer. Batches that are not
compressed stay where they are; others are decompressed one after the other into a buffer that is
used again and again, because new memory costs more than the copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from klog.errors import CorruptRecordError
from klog.logformat.array_types import Longs, Mask
from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.batches.varint import PADDING
from klog.logformat.codecs.decompress import decompress_chunks, decompress_into


@dataclass(frozen=True, slots=True)
class RecordSections:
    """The records of several batches, uncompressed, in one buffer.

    Attributes:
        data: The buffer, with padding at its end.
        starts: Where the records of each batch start.
        ends: Where the records of each batch end.
        origins: Where each batch starts in the bytes that were read, for errors.
    """

    data: bytes | bytearray
    starts: Longs
    ends: Longs
    origins: Longs

    def where(self, mask: Mask) -> RecordSections:
        """Return the sections for which a mask is true.

        Args:
            mask: A bool for each section.
        """
        return RecordSections(self.data, self.starts[mask], self.ends[mask], self.origins[mask])

    def origin_of(self, position: int) -> int:
        """Return the origin of the batch whose records are at a position of `data`.

        Args:
            position: A byte of the buffer.
        """
        return int(self.origins[max(int(np.searchsorted(self.starts, position, "right")) - 1, 0)])


@dataclass(frozen=True, slots=True)
class CompressedSections:
    """Sections before decompression, a row each.

    Attributes:
        codecs: The codec of each section.
        starts: Where each section starts.
        ends: Where each section ends.
        magics: The message format of the batch that each section lies in.
        origins: Where that batch starts.
    """

    codecs: npt.NDArray[np.integer[Any]]
    starts: Longs
    ends: Longs
    magics: npt.NDArray[np.integer[Any]]
    origins: Longs


def record_sections(
    data: bytes, batches: v2.Batches, part_bytes: int
) -> Iterator[tuple[v2.Batches, RecordSections]]:
    """Yield the records of batches, uncompressed, in parts.

    If no batch is compressed there is one part, and the records stay where they are. Otherwise the
    buffer of a part is valid until the next part is requested.

    Args:
        data: The buffer of the batches.
        batches: Batches of format v2.
        part_bytes: The decompressed bytes of a part.

    Raises:
        CorruptRecordError: A batch cannot be decompressed; its position is that of the batch.
    """
    codecs = batches.attributes & v2.CODEC_MASK
    starts, ends = batches.starts + v2.HEADER_BYTES, batches.ends
    if not codecs.any() and len(data) - int(ends.max(initial=0)) >= PADDING:
        yield batches, RecordSections(data, starts, ends, batches.starts)
        return
    magics = np.full(len(batches), v2.MAGIC)
    compressed = CompressedSections(codecs, starts, ends, magics, batches.starts)
    for first, sections in decompress_sections(data, compressed, part_bytes):
        yield batches.slice(first, first + len(sections.starts)), sections


def decompress_sections(
    data: bytes, compressed: CompressedSections, part_bytes: int
) -> Iterator[tuple[int, RecordSections]]:
    """Yield decompressed sections in parts, and the number of the first row of each part.

    The buffer of a part is valid until the next part is requested. Without sections there is one
    part without sections.

    Args:
        data: The buffer of the compressed sections.
        compressed: The sections.
        part_bytes: The decompressed bytes of a part.

    Raises:
        CorruptRecordError: A section cannot be decompressed; its position is the origin.
    """
    view, origins = memoryview(data), compressed.origins
    columns = compressed.codecs, compressed.starts, compressed.ends, compressed.magics
    buffer_bytes = part_bytes + part_bytes // 4
    with _reused_buffer(buffer_bytes + PADDING) as buffer:
        out = memoryview(buffer)[:buffer_bytes]
        sizes: list[int] = []
        first = used_bytes = 0
        for number, (codec, start, end, magic) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            section = view[start:end]
            # The size of the section before is the best estimate of this one's.
            size = None
            if not sizes or used_bytes + sizes[-1] <= part_bytes:
                size = decompress_into(codec, section, out[used_bytes:], magic)
            if size is None and sizes:
                yield first, adjacent_sections(buffer, sizes, origins[first:number])
                sizes, first, used_bytes = [], number, 0
                size = decompress_into(codec, section, out, magic)
            if size is None:
                yield number, _large_section(codec, section, magic, origins[number : number + 1])
                first = number + 1
            else:
                sizes.append(size)
                used_bytes += size
        if sizes or first == 0:
            yield first, adjacent_sections(buffer, sizes, origins[first:])


def adjacent_sections(data: bytes | bytearray, sizes: list[int], origins: Longs) -> RecordSections:
    """Return sections that follow each other from the start of a buffer.

    Args:
        data: The buffer.
        sizes: The bytes of each section.
        origins: Where the batch of each section starts.
    """
    ends = np.cumsum(np.array(sizes, np.int64))
    return RecordSections(data, ends - np.array(sizes, np.int64), ends, origins)


def _large_section(codec: int, section: memoryview, magic: int, origin: Longs) -> RecordSections:
    """Decompress a section that is larger than a part into a buffer of its own."""
    out = BytesIO()  # It grows in place; joined chunks would take twice the memory.
    try:
        out.writelines(decompress_chunks(codec, section, MAX_BATCH_BYTES, magic))
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, int(origin[0])) from exc
    out.write(bytes(PADDING))
    data = out.getvalue()
    return adjacent_sections(data, [len(data) - PADDING], origin)


@contextmanager
def _reused_buffer(size: int) -> Iterator[bytearray]:
    """Lend this thread's buffer, which was written before; a second user gets a new one."""
    free: list[bytearray] = _thread_state.__dict__.setdefault("free", [])
    buffer = free.pop() if free and len(free[-1]) >= size else bytearray(size)
    try:
        yield buffer
    finally:
        free[:] = [buffer]


_thread_state = threading.local()
