"""Cases of hashes, partitions and checksums."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from klog.logformat.batches import record_batch as v2
from klog.logformat.batches.batch_checksum import check_batch_crcs, has_valid_crc32c
from klog.logformat.batches.scan_batches import scan_batches
from klog.logformat.partitioner import (
    coordinator_partition,
    java_hash,
    key_partitions,
    murmur2,
    sticky_runs,
    to_positive,
)


def hashes(keys: Sequence[bytes]) -> list[int]:
    result: list[int] = murmur2(pa.array(keys, pa.binary())).to_pylist()
    return result


def positives(hashed: Sequence[int]) -> list[int]:
    result: list[int] = to_positive(np.array(hashed, np.int32)).tolist()
    return result


def partitions(keys: Sequence[bytes], count: int) -> list[int]:
    result: list[int] = key_partitions(pa.array(keys, pa.binary()), count).to_pylist()
    return result


def coordinator(name: str, count: int) -> tuple[int, int]:
    return java_hash(name), coordinator_partition(name, count)


def runs_of(sizes: Sequence[int], batch_bytes: int) -> list[int]:
    result: list[int] = sticky_runs(np.array(sizes, np.int64), batch_bytes).tolist()
    return result


def holds_crc(checked: bytes, crc: int) -> bool:
    """Return whether klog accepts this CRC-32C for the bytes that follow it in a batch."""
    return has_valid_crc32c(bytes(v2.MAGIC_AT + 1) + struct.pack(">I", crc) + checked)


def checks_inside(before: bytes, batch: bytes, after: bytes) -> int:
    """Check the CRC of a batch that lies inside a buffer; return where it ends."""
    data = before + batch + after
    batches = scan_batches(data, len(before), len(before) + len(batch))
    check_batch_crcs(data, batches)
    return int(batches.ends[-1])
