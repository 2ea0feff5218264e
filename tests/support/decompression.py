"""The records of one batch, decompressed at once."""

from __future__ import annotations

from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.codecs.decompress import decompress_chunks


def decompress(codec: int, data: bytes, limit: int = MAX_BATCH_BYTES) -> bytes:
    """See `decompress_chunks`; return its chunks as one bytes object."""
    return b"".join(decompress_chunks(codec, memoryview(data), limit))
