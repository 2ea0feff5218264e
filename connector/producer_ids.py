"""Producer ids and epochs: a pure function of the writer's name, the task and the batch.

Tasks write batches before anyone could assign producer ids, and ids are covered by the CRC. So:

    name      the transactional id; the write id for a write without one
    number    the batch of that writer: a stream's micro-batch, a batch write's transactionVersion,
              0 for a write without a transactional id
    hash      BLAKE2b with a digest of 8 bytes over: task index, number div 32767, both as 8 bytes
              big-endian, and the name in UTF-8; the upper 62 bits of the digest
    producer  id 2^62 + hash, epoch number mod 32767, sequences from 0 in each partition

A new cluster assigns low ids, which never meet these. A batch that is written again under its name
has the same ids, on any machine. The commit makes a write exactly once, by the topic's record of
transactional ids; the ids here let a broker that mounts an export see well-behaved producers.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

EPOCH_COUNT = (1 << 15) - 1
"""Epochs are below this: after Kafka's last one, 32767, a producer needs another id."""
MIN_PRODUCER_ID = 1 << 62

_encode_numbers = struct.Struct(">QQ").pack


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """The producer in the headers of one task's batches."""

    producer_id: int
    epoch: int


def producer_identity(name: str, task: int, number: int = 0) -> ProducerIdentity:
    """Return the producer of a task's batches.

    Args:
        name: The transactional id, or the write id.
        task: The number of the task in its write, from 0.
        number: The batch of the writer, from 0.

    Raises:
        ValueError: The task or the number is negative.
    """
    if task < 0 or number < 0:
        raise ValueError(f"task and number must be from 0, got task {task} and number {number}")
    generation, epoch = divmod(number, EPOCH_COUNT)
    data = _encode_numbers(task, generation) + name.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=8).digest()
    return ProducerIdentity(MIN_PRODUCER_ID + (int.from_bytes(digest, "big") >> 2), epoch)
