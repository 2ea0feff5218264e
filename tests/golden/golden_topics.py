"""The topics of the golden vectors: each message format, every codec, indexes and snapshots.

The rule: partition n of a topic holds codec n, and its note says what the topic shows. A format is
a version of `message.format.version`, or None where the broker knows v2 alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition

from tests.corpus.cleaned_topics import NEVER
from tests.corpus.clients import CODECS, EPOCH_2024, Client, Sent, batch, numbered
from tests.corpus.transactions import end
from tests.support.kafka_classes import JavaProducer
from tests.support.waiting import TIMEOUT_SECONDS

V0, V1, V2 = "0.9.0", "0.10.0", "2.8"
CODECS_OF = {V0: CODECS[:4], V1: CODECS[:4], V2: CODECS, None: CODECS}
COMPACTION_SECONDS = 120
KEYS = 7

SHAPES = (
    Sent(b"key", b"value", EPOCH_2024 + 5),
    Sent(None, b"no key", EPOCH_2024 + 9),
    Sent(b"tombstone", None, EPOCH_2024 + 1),
    Sent(b"", b"", EPOCH_2024),
    Sent(None, None, EPOCH_2024 + 9),
    Sent(b"\x00\xff", b"long " * 60, EPOCH_2024 + 3),
)
HEADERS = (("one", b"1"), ("one", None), ("größe", b""))


def format_config(version: str | None) -> dict[str, str]:
    """Return the config that sets a topic's message format."""
    return {} if version is None else {"message.format.version": version}


def write_shapes(client: Client, gateway: Any, topic: str, version: str | None) -> None:
    """Write batches of several records and of one, from librdkafka and from Java."""
    codecs = CODECS_OF[version]
    with_headers = version in (V2, None)
    client.create(
        topic,
        "nulls, tombstones, times out of order; batches of several records and of one",
        format_config(version),
        len(codecs),
    )
    for number, codec in enumerate(codecs):
        producer = client.producer(codec)
        java = JavaProducer(
            gateway, client.broker.bootstrap, compression_type=codec, enable_idempotence="false"
        )
        batch(producer, topic, SHAPES, number)
        batch(producer, topic, numbered(1), number)
        java.batch(topic, number, [*SHAPES, *numbered(4)])
        java.batch(topic, number, numbered(1, 9))
        if with_headers:
            java.batch(topic, number, [SHAPES[0]._replace(headers=HEADERS), SHAPES[1]])
        java.close()


def write_kafka_python(client: Client) -> None:
    """Write v1 as a client of its time sends it: the broker keeps its wrappers as they come."""
    kafka = import_module("kafka")  # untyped, and only `make golden` needs it
    codecs = ("none", "gzip", "lz4")  # its snappy wants a package more
    topic = client.create("v1.kafka-python", "wrappers that a client made; partition 2 is lz4",
                          format_config(V1), len(codecs))  # fmt: skip
    for number, codec in enumerate(codecs):
        producer = kafka.KafkaProducer(
            bootstrap_servers=client.broker.bootstrap,
            api_version=(0, 10),
            compression_type=None if codec == "none" else codec,
            linger_ms=500,
        )
        for start in (0, 20):
            for sent in numbered(6, start, 60):
                producer.send(topic, value=sent.value, key=sent.key, partition=number,
                              timestamp_ms=sent.timestamp)  # fmt: skip
            producer.flush()
        producer.close()


def write_append_time(client: Client, topic: str, version: str | None) -> None:
    """Write CreateTime, LogAppendTime and CreateTime again into one segment."""
    codecs = CODECS_OF[version]
    client.create(topic, "CreateTime, LogAppendTime, CreateTime", format_config(version),
                  len(codecs))  # fmt: skip
    for start, kind in enumerate(("CreateTime", "LogAppendTime", "CreateTime")):
        client.configure(topic, {"message.timestamp.type": kind})
        for number, codec in enumerate(codecs):
            producer = client.producer(codec)
            batch(producer, topic, numbered(3, start * 10), number)
            batch(producer, topic, numbered(1, start * 10 + 5), number)


def write_mixed(client: Client) -> None:
    """Raise the format of one topic midway, twice: all three in one segment."""
    topic = client.create("mixed", "v0, then v1, then v2, in one segment", format_config(V0),
                          len(CODECS_OF[V0]))  # fmt: skip
    for stage, version in enumerate((V0, V1, V2)):
        client.configure(topic, format_config(version))
        for number, codec in enumerate(CODECS_OF[V0]):
            producer = client.producer(codec)
            batch(producer, topic, numbered(4, stage * 20), number)
            batch(producer, topic, [SHAPES[stage]], number)
            batch(producer, topic, numbered(3, stage * 20 + 10), number)


def write_idempotent(client: Client, gateway: Any) -> None:
    """Let two idempotent producers take turns, librdkafka's and Java's."""
    topic = client.create("idempotent", "two idempotent producers, interleaved")
    producer = client.producer("lz4", enable_idempotence=True)
    java = JavaProducer(
        gateway, client.broker.bootstrap, enable_idempotence="true", acks="all",
        compression_type="zstd",
    )  # fmt: skip
    for start in range(0, 20, 5):
        batch(producer, topic, numbered(3, start))
        java.batch(topic, 0, numbered(2, start + 3))
    java.close()


def write_transactions(client: Client, gateway: Any, small: Mapping[str, str]) -> list[Producer]:
    """Interleave transactions that commit and abort over small segments; one stays open."""
    topic = client.create("txn", "committed, aborted, one open at the end; plain ones between",
                          small)  # fmt: skip
    plain = client.producer()
    first, second = client.transactional("txn-first"), client.transactional("txn-second", "zstd")
    for number in range(6):
        start = number * 20
        first.begin_transaction()
        second.begin_transaction()
        batch(first, topic, numbered(3, start, 60))
        batch(second, topic, numbered(2, start + 4, 60))
        batch(plain, topic, numbered(1, start + 7))
        end(first, commit=number % 2 == 0)
        batch(second, topic, numbered(2, start + 10, 60))
        end(second, commit=number % 3 == 0)
    java = JavaProducer(gateway, client.broker.bootstrap, transactional_id="txn-java",
                        compression_type="gzip")  # fmt: skip
    java.java.initTransactions()
    for number in range(3):
        java.java.beginTransaction()
        java.batch(topic, 0, [SHAPES[0]._replace(headers=HEADERS), *numbered(2, 200 + number * 5)])
        if number == 1:
            java.java.abortTransaction()
        else:
            java.java.commitTransaction()
    java.close()
    held = client.transactional("txn-held")
    held.begin_transaction()
    batch(held, topic, numbered(2, 300))
    first.begin_transaction()
    batch(first, topic, numbered(2, 310))
    end(first, commit=True)
    return [held]


def write_groups(client: Client) -> None:
    """Let a consumer join a group and commit, and delete some of what it committed."""
    group = "golden group"
    consumer = Consumer(
        {
            "bootstrap.servers": client.broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["txn"])
    messages = consumer.consume(4, TIMEOUT_SECONDS)
    for message in messages:
        consumer.commit(message=message, asynchronous=False)
    consumer.commit(
        offsets=[TopicPartition("idempotent", 0, 3, metadata="said by hand")], asynchronous=False
    )
    consumer.close()
    client.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, [TopicPartition("idempotent", 0, 5)])]
    )[group].result(TIMEOUT_SECONDS)
    for name, note in (
        ("__consumer_offsets", "a group that joined, committed and left"),
        ("__transaction_state", "the transactions of `txn`"),
    ):
        client.notes[name] = note
        client.configs[name] = {}


def write_compacted(
    client: Client, log_dir: Path, formats: Mapping[str, str | None], small: Mapping[str, str]
) -> None:
    """Write the same keys over and over and wait until the cleaner has been over all of them."""
    config = {
        **small,
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "0",
        "min.compaction.lag.ms": NEVER,
    }
    for topic, version in formats.items():
        codecs = CODECS_OF[version]
        client.create(topic, "cleaned: gaps inside batches and between them",
                      {**config, **format_config(version)}, len(codecs))  # fmt: skip
        for partition, codec in enumerate(codecs):
            producer = client.producer(codec)
            for number in range(16):
                batch(producer, topic, _round(number), partition)
    for topic in formats:
        client.configure(topic, {"min.compaction.lag.ms": "0"})
    _wait_for_rest(log_dir, {(t, p) for t, v in formats.items() for p in range(len(CODECS_OF[v]))})


def _round(number: int) -> list[Sent]:
    """Five records over seven keys, some of them tombstones, and two of keys of their own.

    Those two survive with a gap between them.
    """
    over = [
        Sent(
            b"k%d" % ((number * 3 + i) % KEYS),
            None if (number + i) % 6 == 0 else b"v%03d-%d-" % (number, i) + b"." * 30,
            EPOCH_2024 + number * 1000 + i,
        )
        for i in range(5)
    ]
    first, second = (Sent(b"%s%03d" % (name, number), b"kept") for name in (b"a", b"b"))
    return [over[0], first, *over[1:4], second, over[4]]


def _wait_for_rest(log_dir: Path, partitions: set[tuple[str, int]]) -> None:
    """Wait until the cleaner's checkpoint knows every partition and stands still."""
    deadline = time.monotonic() + COMPACTION_SECONDS
    path = log_dir / "cleaner-offset-checkpoint"
    last, rested_since = "", time.monotonic()
    while time.monotonic() < deadline:
        now = path.read_text() if path.exists() else ""
        if now != last:
            last, rested_since = now, time.monotonic()
        known = {tuple(line.split()[:2]) for line in now.splitlines()[2:]}
        every = all((topic, str(partition)) in known for topic, partition in partitions)
        if every and time.monotonic() - rested_since > 4:
            return
        time.sleep(0.2)
    raise RuntimeError(f"the cleaner did not come to rest: {last}")
