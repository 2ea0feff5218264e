"""How the corpus is written: librdkafka's producer and admin, in the few calls its scenes need.

The rule: one `batch` call is one record batch on disk, so a scene says where batches end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.support.kafka_broker import Broker
from tests.support.waiting import TIMEOUT_SECONDS

EPOCH_2024 = 1_704_067_200_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Sent(NamedTuple):
    """A record to send."""

    key: bytes | None
    value: bytes | None
    timestamp: int = EPOCH_2024  # milliseconds; librdkafka takes 0 for "now"
    headers: Sequence[tuple[str, bytes | None]] = ()


class Client:
    """Creates topics on one broker, remembers what each is for, and makes producers."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.notes: dict[str, str] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.reconnect()

    def reconnect(self) -> None:
        """Follow the broker to its new port after a restart."""
        self._common: dict[str, Any] = {
            "bootstrap.servers": self.broker.bootstrap,
            "log_level": 0,
        }
        self.admin = AdminClient(self._common)

    def create(
        self, topic: str, note: str, config: Mapping[str, str] | None = None, partitions: int = 1
    ) -> str:
        """Create a topic and return its name."""
        self.notes[topic] = note
        self.configs[topic] = dict(config or {})
        new = NewTopic(topic, partitions, 1, config=self.configs[topic])
        self.admin.create_topics([new])[topic].result(TIMEOUT_SECONDS)
        return topic

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Alter settings of a topic and give the broker a moment to take them in."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_SECONDS)
        time.sleep(1)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move a partition's log start offset up to `before`."""
        where = TopicPartition(topic, partition, before)
        self.admin.delete_records([where])[where].result(TIMEOUT_SECONDS)

    def producer(self, codec: str = "none", **settings: Any) -> Producer:
        """Make a producer that sends nothing before it is flushed."""
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer(
            {
                **self._common,
                "linger.ms": 30_000,
                "compression.type": codec,
                "message.max.bytes": 16 << 20,
                "queue.buffering.max.kbytes": 64 << 10,
                **dotted,
            }
        )

    def transactional(self, name: str, codec: str = "none") -> Producer:
        """Make a transactional producer, initialised, whose transactions stay open for an hour."""
        producer = self.producer(codec, transactional_id=name, transaction_timeout_ms=3_600_000)
        producer.init_transactions(TIMEOUT_SECONDS)
        return producer


def batch(producer: Producer, topic: str, records: Iterable[Sent], partition: int = 0) -> int:
    """Send records as one batch, wait for the broker, and return the last one's offset."""
    failed: list[KafkaError] = []
    last = -1

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal last
        if error is not None:
            failed.append(error)
        else:
            last = max(last, message.offset() or 0)

    # Without the topic's metadata the first records wait elsewhere, and a flush splits them.
    producer.list_topics(topic, TIMEOUT_SECONDS)
    for key, value, timestamp, headers in records:
        producer.produce(topic, value=value, key=key, partition=partition,
                         timestamp=timestamp, headers=list(headers) or None,
                         on_delivery=delivered)  # fmt: skip
    left = producer.flush(TIMEOUT_SECONDS)
    if failed or left:
        raise RuntimeError(f"{topic}-{partition}: {left} records not sent, errors {failed}")
    return last


def numbered(count: int, start: int = 0, size: int = 24) -> list[Sent]:
    """Return `count` records that differ, a second apart, their values `size` bytes or a bit more.

    The filler is the same letter throughout, so any codec makes a batch of them smaller.
    """
    return [
        Sent(f"k{i:05}".encode(), f"v{i:05}-".encode().ljust(size, b"."), EPOCH_2024 + i * 1000)
        for i in range(start, start + count)
    ]
