"""Writers that keep a broker busy while klog reads its directory, and what consumers read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from confluent_kafka import Producer
from confluent_kafka.admin import OffsetSpec

from tests.corpus.clients import Client
from tests.corpus.oracle import Account, LogStartMovedError, consume, offsets
from tests.corpus.transactions import end

SMALL_SEGMENTS = {
    "internal.segment.bytes": "65536",
    "segment.index.bytes": "4096",
    "index.interval.bytes": "1024",
}
MOVES = 10


@contextmanager
def writing(client: Client, topic: str, partitions: int, keys: int = 0) -> Iterator[None]:
    """Keep transactions coming, each third one aborted, until the block ends.

    `keys` is how many distinct keys there are, 0 for a new one each time.
    """
    stop = threading.Event()
    producer = client.producer(
        "lz4", transactional_id=f"live-{topic}", linger_ms=5, transaction_timeout_ms=60_000
    )
    producer.init_transactions(60)

    def write() -> None:
        number = 0
        while not stop.wait(0.01):
            number = _transaction(producer, topic, partitions, keys, number)

    with ThreadPoolExecutor(1) as executor:
        done = executor.submit(write)
        try:
            yield
        finally:
            stop.set()
            done.result(60)


def _transaction(producer: Producer, topic: str, partitions: int, keys: int, number: int) -> int:
    producer.begin_transaction()
    for _ in range(100):
        key = f"key-{number % keys if keys else number}"
        value = f"value {number} " + "x" * (number % 200)
        producer.produce(topic, value, key, partition=number % partitions)
        number += 1
    producer.flush(60)  # An abort drops unsent records, and may leave no transaction to end.
    end(producer, commit=number // 100 % 3 != 0)
    return number


def account(client: Client, topic: str, partitions: int, level: str) -> Account:
    """Return the records that the real consumer reads of a topic from start to end.

    It begins again if a broker that expires the log has moved its start.
    """
    where = [(topic, partition) for partition in range(partitions)]
    for _ in range(MOVES):
        start = offsets(client, where, OffsetSpec.earliest(), "read_uncommitted")
        end = offsets(client, where, OffsetSpec.latest(), level)
        with suppress(LogStartMovedError):
            return consume(client, start, end, level)
    raise RuntimeError(f"{topic}: its start has moved {MOVES} times while it was read")
