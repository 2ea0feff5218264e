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
    view = memoryview(data)
    spans = zip(codecs.tolist(), starts.tolist(), ends.tolist(), strict=True)
    room_bytes = part_bytes + part_bytes // 4
    with _lent_buffer(room_bytes + PADDING) as buffer:
        out = memoryview(buffer)[:room_bytes]
        sizes: list[int] = []
        begin = held = 0
        for number, (codec, start, end) in enumerate(spans):
            # The one before is the best guess of how large this one is.
            size = None
            if not sizes or held + sizes[-1] <= part_bytes:
                size = decompress_into(codec, view[start:end], out[held:])
            if size is None and sizes:
                part = batches.part(begin, number)
                yield part, laid_out(buffer, sizes, part.starts)
                sizes, begin, held = [], number, 0
                size = decompress_into(codec, view[start:end], out)
            if size is None:
                yield _lone(codec, view, batches.part(number, number + 1))
                begin = number + 1
            else:
                sizes.append(size)
                held += size
        if sizes or begin == 0:
            part = batches.part(begin, len(batches))
            yield part, laid_out(buffer, sizes, part.starts)


def _lone(codec: int, view: memoryview, batch: v2.Batches) -> tuple[v2.Batches, Sections]:
    """Give a batch that is larger than a part a buffer of its own."""
    start = int(batch.starts[0])
    laid = BytesIO()  # It grows in place, where joining would hold all pieces and the whole.
    try:
        laid.writelines(
            decompress_pieces(codec, view[start + v2.HEADER_BYTES : int(batch.ends[0])])
        )
    except CorruptRecordError as exc:
        raise CorruptRecordError(exc.reason, start) from exc
    laid.write(bytes(PADDING))
    data = laid.getvalue()
    return batch, laid_out(data, [len(data) - PADDING], batch.starts)


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
