"""Who wrote a batch, as its header says: a pure function of the writer's name and the batch.

Tasks stamp batches before anyone could give out ids, and ids lie under the CRC. So

    name      the transactional id; of a write without one, its write id
    number    the batch of that writer: a stream's micro-batch, a batch write's transactionVersion,
              0 for a write without a name
    hash      BLAKE2b with 8 bytes of digest over: task index, number div 32767, both as 8 bytes
              big-endian, and the name in UTF-8; the upper 62 bits of the digest
    producer  id 2^62 + hash, epoch number mod 32767, sequences from 0 in each partition

Ids that high never meet those that a new cluster gives out. A batch written again under its name
has the same ids, from whatever machine. It is the commit that makes a write exactly once, by the
topic's account of names; a broker that mounts an export sees producers that keep its rules.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

EPOCHS = (1 << 15) - 1
"""An epoch is below this: Kafka's last one, 32767, asks for another producer id."""
LOWEST_ID = 1 << 62

_numbers = struct.Struct(">QQ").pack


@dataclass(frozen=True, slots=True)
class Identity:
    """What the batches of one task say of their producer."""

    producer_id: int
    epoch: int


def identity_of(name: str, task: int, number: int = 0) -> Identity:
    """Give the producer of a task's batches. `ValueError` for a task or a number below 0."""
    if task < 0 or number < 0:
        raise ValueError(f"there is no task {task} of batch {number}")
    generation, epoch = divmod(number, EPOCHS)
    said = _numbers(task, generation) + name.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(said, digest_size=8).digest()
    return Identity(LOWEST_ID + (int.from_bytes(digest, "big") >> 2), epoch)


def attempt_id(write_id: str, attempt: int) -> str:
    """Give the 16 hex digits that tell the files of one attempt of a task from all others.

    `attempt` numbers the attempts of all tasks of the write (Spark's task attempt id). Counting on
    from where the write id points, not hashing each, keeps those of one write apart for certain. A
    file is put in place of one of its name, so two that were equal would cost what was committed.
    """
    begin = int.from_bytes(hashlib.blake2b(write_id.encode(), digest_size=8).digest(), "big")
    return f"{(begin + attempt) % (1 << 64):016x}"
