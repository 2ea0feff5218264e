"""Where the records of several batches lie, uncompressed: side by side in one buffer.

What is decoded many batches at a time has to lie in one piece of memory. Batches that are not
compressed are taken where they are; others are decompressed one behind the other into a buffer
that is lent again and again, because new memory costs more than the copy.
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
from klog.logformat import batch as v2
from klog.logformat.codecs import decompress_into, decompress_pieces
from klog.logformat.varint import PADDING, Longs


@dataclass(frozen=True, slots=True)
class Sections:
    """The records of several batches, uncompressed, in one buffer.

    `data` ends in padding; batch i's records are `data[starts[i]:ends[i]]`, and `origins[i]` is
    where the batch began in what was read, for messages.
    """

    data: bytes | bytearray
    starts: Longs
    ends: Longs
    origins: Longs

    def where(self, mask: npt.NDArray[np.bool_]) -> Sections:
        """Keep the batches for which `mask` holds."""
        return Sections(self.data, self.starts[mask], self.ends[mask], self.origins[mask])

    def origin_of(self, position: int) -> int:
        """Give the origin of the batch whose records hold a position in `data`."""
        return int(self.origins[max(int(np.searchsorted(self.starts, position, "right")) - 1, 0)])


def record_sections(
    data: bytes, batches: v2.Batches, part_bytes: int
) -> Iterator[tuple[v2.Batches, Sections]]:
    """Lay the records of some batches after others in one buffer, uncompressed.

    Batches that are all uncompressed stay where they are. Else the buffer holds what was yielded
    only until the next is asked for.
    """
    codecs = batches.attributes & v2.CODEC_MASK
    starts, ends = batches.starts + v2.HEADER_BYTES, batches.ends
    if not codecs.any() and len(data) - int(ends.max(initial=0)) >= PADDING:
        yield batches, Sections(data, starts, ends, batches.starts)
        return
    packed = Packed(codecs, starts, ends, np.full(len(batches), v2.MAGIC), batches.starts)
    for begin, sections in unpacked(data, packed, part_bytes):
        yield batches.part(begin, begin + len(sections.starts)), sections


@dataclass(frozen=True, slots=True)
class Packed:
    """What sections are made of, a row each: `data[starts[i]:ends[i]]`, compressed by a codec.

    `magics` are the formats of the batches that they lie in, `origins` where these begin.
    """

    codecs: npt.NDArray[np.integer[Any]]
    starts: Longs
    ends: Longs
    magics: npt.NDArray[np.integer[Any]]
    origins: Longs


def unpacked(data: bytes, packed: Packed, part_bytes: int) -> Iterator[tuple[int, Sections]]:
    """Decompress one behind the other; gives the number of the first row with each part.

    A part takes about `part_bytes`; its buffer holds it only until the next is asked for. Nothing
    packed is one part of no sections. Raises `CorruptRecordError`, its position an origin.
    """
    view, origins = memoryview(data), packed.origins
    columns = packed.codecs, packed.starts, packed.ends, packed.magics
    room_bytes = part_bytes + part_bytes // 4
    with _lent_buffer(room_bytes + PADDING) as buffer:
        out = memoryview(buffer)[:room_bytes]
        sizes: list[int] = []
        begin = held = 0
        for number, (codec, start, end, magic) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            piece = view[start:end]
            # The one before is the best guess of how large this one is.
            size = None
            if not sizes or held + sizes[-1] <= part_bytes:
                size = decompress_into(codec, piece, out[held:], magic)
            if size is None and sizes:
                yield begin, laid_out(buffer, sizes, origins[begin:number])
                sizes, begin, held = [], number, 0
                size = decompress_into(codec, piece, out, magic)
            if size is None:
                yield number, _lone(codec, piece, magic, origins[number : number + 1])
                begin = number + 1
            else:
                sizes.append(size)
                held += size
        if sizes or begin == 0:
            yield begin, laid_out(buffer, sizes, origins[begin:])


def _lone(codec: int, piece: memoryview, magic: int, origin: Longs) -> Sections:
    """Give what is larger than a part a buffer of its own."""
    laid = BytesIO()  # It grows in place, where joining would hold all pieces and the whole.
    try:
        laid.writelines(decompress_pieces(codec, piece, magic=magic))
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, int(origin[0])) from exc
    laid.write(bytes(PADDING))
    data = laid.getvalue()
    return laid_out(data, [len(data) - PADDING], origin)


def laid_out(data: bytes | bytearray, sizes: list[int], origins: Longs) -> Sections:
    """Say where sections of these sizes lie that follow each other from the start of `data`."""
    behind = np.cumsum(np.array(sizes, np.int64))
    return Sections(data, behind - np.array(sizes, np.int64), behind, origins)


@contextmanager
def _lent_buffer(size: int) -> Iterator[bytearray]:
    """Lend a buffer that was written before; who asks while it is lent gets one of their own."""
    free: list[bytearray] = _threads.__dict__.setdefault("free", [])
    buffer = free.pop() if free and len(free[-1]) >= size else bytearray(size)
    try:
        yield buffer
    finally:
        free[:] = [buffer]


_threads = threading.local()
