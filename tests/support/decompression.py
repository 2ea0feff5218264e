"""The records of one batch, decompressed at once."""

from __future__ import annotations

import pytest

from klog.errors import CorruptRecordError
from klog.logformat.batches.batch_limits import MAX_BATCH_BYTES
from klog.logformat.codecs.decompress import decompress_chunks


def decompress(codec: int, data: bytes, limit: int = MAX_BATCH_BYTES) -> bytes:
    """See `decompress_chunks`; return its chunks as one bytes object."""
    return b"".join(decompress_chunks(codec, memoryview(data), limit))


def refused(codec: int, data: bytes, reason: str, limit: int = MAX_BATCH_BYTES) -> None:
    """Assert that bytes are damage, for a reason."""
    with pytest.raises(CorruptRecordError, match=reason):
        decompress(codec, data, limit)
