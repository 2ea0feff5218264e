"""The checksums of batches: CRC-32C of format v2, CRC-32 of v0 and v1.

The rule: base offset, length, leader epoch and magic lie outside the CRC of a batch v2; of a
message, offset and length do (docs/format.md, 1 and 2). A batch whose magic was changed is found by
its CRC-32C.
"""

from __future__ import annotations

import struct

import google_crc32c
import numpy as np

from klog.errors import CorruptRecordError
from klog.logformat.batches import legacy_messages
from klog.logformat.batches import record_batch as v2

_CRC_AT = 17

_unpack_crc = struct.Struct(">I").unpack_from


def has_valid_crc(batch: bytes) -> bool:
    """Return whether one complete batch has the CRC that it stores.

    Args:
        batch: The bytes of a batch, or of an entry of format v0 or v1.
    """
    if batch[v2.MAGIC_AT] < v2.MAGIC:
        return legacy_messages.has_valid_crc32(batch)
    return has_valid_crc32c(batch)


def has_valid_crc32c(batch: bytes) -> bool:
    """Return whether bytes are a batch v2, whatever their magic: its CRC-32C is valid.

    Args:
        batch: At least `HEADER_BYTES` bytes.
    """
    checked_bytes = np.frombuffer(batch, np.uint8)[v2.CRC_START :]
    return bool(_unpack_crc(batch, _CRC_AT)[0] == google_crc32c.value(checked_bytes))


def check_batch_crcs(data: bytes, batches: v2.Batches) -> None:
    """Check the CRC of every batch; those of messages in wrappers are checked when they are read.

    Args:
        data: The buffer of the batches.
        batches: The batches.

    Raises:
        CorruptRecordError: A batch does not have the CRC that it stores; its position is that of
            the first such batch.
    """
    is_legacy = batches.is_legacy
    if is_legacy.any():
        _check_legacy(data, batches.where(is_legacy))
        batches = batches.where(~is_legacy)
    stored_crcs = batches.headers["crc"].tolist()
    rows = zip(batches.starts.tolist(), batches.ends.tolist(), stored_crcs, strict=True)
    view = np.frombuffer(data, np.uint8)  # The library copies a memoryview, and not an array.
    for start, end, stored in rows:
        computed = google_crc32c.value(view[start + v2.CRC_START : end])
        if computed != stored:
            raise CorruptRecordError(
                f"CRC-32C is {computed:#010x}, the batch says {stored:#010x}", start
            )


def _check_legacy(data: bytes, batches: v2.Batches) -> None:
    try:
        stored_crcs = batches.headers["crc"].astype(np.int64)
        legacy_messages.check_message_crcs(data, batches.starts, batches.ends, stored_crcs)
    except CorruptRecordError as exc:
        end = int(batches.ends[np.searchsorted(batches.starts, exc.position)])
        batch = data[exc.position : end]
        if len(batch) >= v2.HEADER_BYTES and has_valid_crc32c(batch):
            reason = f"magic {batch[v2.MAGIC_AT]} on a batch of format v2"
            raise CorruptRecordError(reason, exc.position) from exc
        raise
