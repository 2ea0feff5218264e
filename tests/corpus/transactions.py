"""The transactional topics of the corpus: committed, aborted, fenced and still open.

The rule: a producer whose transaction is to stay open is returned, and the caller holds it until
the broker has stopped.
"""

from __future__ import annotations

import random

from confluent_kafka import Producer
from confluent_kafka.admin import OffsetSpec

from tests.corpus.clients import Client, batch, numbered
from tests.corpus.corpus_topics import SMALL_SEGMENTS
from tests.corpus.oracle import LEVELS, offsets
from tests.support.waiting import TIMEOUT_SECONDS, wait_until

STEPS = 90


def write_transactions(client: Client) -> list[Producer]:
    """Write all transactional topics of a cleanly stopped broker; return the open producers."""
    held = write_interleaved(client, "txn.interleaved", STEPS)
    held += write_open(client, "txn.open")
    _write_aborted(client)
    _write_fenced(client)
    _write_marker_first(client)
    _write_java(client)
    return held


def write_interleaved(client: Client, topic: str, steps: int) -> list[Producer]:
    """Let four transactional producers and a plain one take turns on two partitions.

    Two of them end with a transaction open; the plain one writes after them.
    """
    client.create(
        topic, "four producers interleaved over segments, committed, aborted, two open at the end",
        SMALL_SEGMENTS, 2,
    )  # fmt: skip
    chance = random.Random(topic)
    plain = client.producer()
    producers = [
        client.transactional(f"{topic}-{number}", codec)
        for number, codec in enumerate(("none", "lz4", "none", "zstd"))
    ]
    is_open = [False] * len(producers)
    for step in range(steps):
        number = chance.randrange(len(producers))
        producer = producers[number]
        if not is_open[number]:
            producer.begin_transaction()
            is_open[number] = True
        for partition in chance.choice(((0,), (1,), (0, 1))):
            batch(producer, topic, numbered(chance.randint(1, 6), step * 10, 60), partition)
        if chance.random() < 0.45:
            end(producer, commit=chance.random() < 0.5)
            is_open[number] = False
        if chance.random() < 0.2:
            batch(plain, topic, numbered(2, step * 10 + 8), chance.randrange(2))
    for number, producer in enumerate(producers[:2]):
        if not is_open[number]:
            producer.begin_transaction()
        batch(producer, topic, numbered(2, steps * 10, 60), number)
    for number in (2, 3):
        if is_open[number]:
            end(producers[number], commit=number == 2)
    batch(plain, topic, numbered(2, steps * 10 + 8), 0)
    return producers[:2]


def write_open(client: Client, topic: str) -> list[Producer]:
    """Open a transaction early, and let committed and aborted ones and plain records follow it."""
    client.create(topic, "open from offset 2 on; what follows is not stable", SMALL_SEGMENTS)
    plain, other = client.producer(), client.transactional(f"{topic}-other")
    batch(plain, topic, numbered(2))
    held = client.transactional(f"{topic}-held")
    held.begin_transaction()
    batch(held, topic, numbered(3, 10))
    for number in range(8):
        other.begin_transaction()
        batch(other, topic, numbered(3, 20 + number * 10))
        end(other, commit=number % 2 == 0)
        batch(plain, topic, numbered(2, 25 + number * 10))
    return [held]


def _write_aborted(client: Client) -> None:
    topic = client.create("txn.aborted", "nothing but aborted transactions and their markers")
    producer = client.transactional(topic)
    for number in range(3):
        producer.begin_transaction()
        batch(producer, topic, numbered(4, number * 4))
        end(producer, commit=False)


def _write_fenced(client: Client) -> None:
    topic = client.create("txn.fenced", "aborted by the next producer of the same id, epoch raised")
    for number in range(3):
        producer = client.transactional(topic)
        producer.begin_transaction()
        batch(producer, topic, numbered(2, number * 4))
        if number != 1:  # the next producer's init aborts what this one leaves
            end(producer, commit=True)


def _write_marker_first(client: Client) -> None:
    topic = client.create(
        "txn.marker.first", "old records, markers of today: each marker starts a segment",
        {"segment.ms": "604800000"},
    )  # fmt: skip
    producer = client.transactional(topic)
    for number in range(3):
        producer.begin_transaction()
        batch(producer, topic, numbered(3, number * 3))
        end(producer, commit=number != 1)


def _write_java(client: Client) -> None:
    topic = client.create("txn.java", "transaction.version 2: the epoch rises at each transaction")
    client.broker.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--bootstrap-server", client.broker.bootstrap, "--topic", topic),
        *("--num-records", "60", "--throughput", "30", "--payload-monotonic"),
        *("--transactional-id", topic, "--transaction-duration-ms", "400"),
    )


def end(producer: Producer, *, commit: bool) -> None:
    """Commit or abort the open transaction."""
    if commit:
        producer.commit_transaction(TIMEOUT_SECONDS)
    else:
        producer.abort_transaction(TIMEOUT_SECONDS)


def end_in_log(
    client: Client, producer: Producer, topic: str, partition: int = 0, *, commit: bool
) -> None:
    """Commit or abort a transaction of one partition, and wait until its marker is in the log.

    A broker answers before it writes the markers, so the log may still grow after the answer.
    """
    end(producer, commit=commit)

    def has_marker() -> bool:
        where = [(topic, partition)]
        high, stable = (offsets(client, where, OffsetSpec.latest(), level) for level in LEVELS)
        return high == stable

    wait_until(has_marker, f"{topic}-{partition}: the marker of the transaction")
