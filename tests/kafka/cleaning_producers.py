"""Rounds for a cleaner that Java's producers write, with the broker's own offsets.

The rule: a seed decides what is sent; the broker decides on segments and markers. A topic is not
compacted while they write, because it then rejects records without a key.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

from tests.corpus.clients import Sent
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import JavaProducer

IDEMPOTENT, TRANSACTIONAL = "produced.idempotent", "produced.transactional"
PRODUCED = (IDEMPOTENT, TRANSACTIONAL)
STEPS = 12


def use_transaction_version(broker: Broker, version: int) -> None:
    """Set the cluster's transaction version: 0 keeps a producer's epoch, 2 raises it."""
    broker.tool(
        "org.apache.kafka.tools.FeatureCommand",
        *("--bootstrap-server", broker.bootstrap),
        *("downgrade", "--feature", f"transaction.version={version}"),
    )


def produce(gateway: Any, broker: Broker, number: int) -> None:
    """Write a round of all topics."""
    chance = random.Random(f"producing {number}")
    now_ms = time.time_ns() // 1_000_000
    plain = [
        JavaProducer(gateway, broker.bootstrap, acks="all", compression_type=codec)
        for codec in ("none", "zstd")
    ]
    for _ in range(STEPS):
        chance.choice(plain).batch(IDEMPOTENT, 0, _rows(chance, now_ms))
    # The broker rejects at version 0 an id that was used at version 2.
    names = {codec: f"cleaned {number} {codec}" for codec in ("none", "lz4")}
    both = [
        JavaProducer(gateway, broker.bootstrap, transactional_id=name, compression_type=codec)
        for codec, name in names.items()
    ]
    for producer in both:
        producer.java.initTransactions()
        producer.java.beginTransaction()
    for _ in range(STEPS):
        producer = chance.choice(both)
        producer.batch(TRANSACTIONAL, 0, _rows(chance, now_ms))
        if chance.random() < 0.5:
            _end(producer, commit=chance.random() < 0.5)
            producer.java.beginTransaction()
    for producer in both:
        _end(producer, commit=chance.random() < 0.5)
    plain[0].batch(TRANSACTIONAL, 0, _rows(chance, now_ms))
    for producer in (*plain, *both):
        producer.close()


def _end(producer: JavaProducer, *, commit: bool) -> None:
    if commit:
        producer.java.commitTransaction()
    else:
        producer.java.abortTransaction()


def _rows(chance: random.Random, now_ms: int) -> Sequence[Sent]:
    return [
        Sent(
            None if chance.random() < 0.1 else b"k%d" % chance.randrange(12),
            None if chance.random() < 0.25 else b"v%d" % chance.randrange(1 << 40),
            now_ms - chance.randrange(10_000),
            (("one", b"1"),) if chance.random() < 0.1 else (),
        )
        for _ in range(chance.choice((1, 2, 3, 5)))
    ]
