"""Cases of a log that changes: between two runs of a stream, under one, or between load and read.

The rule: both sources read the same topic, which no other case uses, and the change waits for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewPartitions
from confluent_kafka.error import KafkaException

from tests.corpus.clients import Client
from tests.corpus.clients import batch as send
from tests.corpus.transactions import end_in_log
from tests.kafka.two_sources.compared_topics import (
    KEPT,
    SMALL_SEGMENTS,
    log_start,
    seconds,
    until_settled,
    write,
)
from tests.support.waiting import TIMEOUT_SECONDS, wait_until


class Moment(Enum):
    """When the log changes."""

    BETWEEN_RUNS = "between two runs of a stream"
    WHILE_RUNNING = "while a stream runs"
    AFTER_LOAD = "after the load of a batch"


@dataclass(slots=True)
class Topic:
    """The topic of one case, and what can be done to it."""

    client: Client
    log_dir: Path
    name: str
    partitions: int = 1

    def create(self, config: Mapping[str, str] | None = None) -> None:
        """Create it; again if the broker has not forgotten the deleted one yet."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                self.client.create(
                    self.name, "changes", {**KEPT, **(config or {})}, self.partitions
                )
                return
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def delete(self) -> None:
        """Delete it."""
        self.client.admin.delete_topics([self.name])[self.name].result(TIMEOUT_SECONDS)

    def write(self, *counts: int, first: int = 0) -> None:
        """Append so many records to partitions 0, 1, ..."""
        for partition, count in enumerate(counts):
            write(self.client, self.name, partition, seconds(range(first, first + count)))

    def transaction(self, count: int, *, is_kept: bool) -> None:
        """Append records of a transaction, and commit or abort it."""
        writer = self.client.transactional(f"{self.name}.writer")
        writer.begin_transaction()
        send(writer, self.name, seconds(range(count)))
        end_in_log(self.client, writer, self.name, commit=is_kept)

    def trim(self, before: int, partition: int = 0) -> None:
        """Delete the records of a partition below an offset."""
        self.client.delete_records(self.name, partition, before)
        self._until_start(before, partition)

    def add_partitions(self, count: int) -> None:
        """Make it so many partitions."""
        self.client.admin.create_partitions([NewPartitions(self.name, count)])[self.name].result(
            TIMEOUT_SECONDS
        )
        self.partitions = count
        self._until_led()

    def expire(self, size_bytes: int, above: int) -> None:
        """Let retention delete segments until the log starts above an offset."""
        self.client.configure(
            self.name, {"retention.bytes": str(size_bytes), "file.delete.delay.ms": "0"}
        )
        self._until_start(above)

    def settle(self) -> None:
        """Wait until klog can see what consumers see."""
        until_settled(self.client, self.log_dir, [self.name])

    def _until_led(self) -> None:
        def are_led() -> bool:
            topic = self.client.admin.list_topics(self.name, TIMEOUT_SECONDS).topics[self.name]
            leaders = [partition.leader for partition in topic.partitions.values()]
            return len(leaders) == self.partitions and min(leaders) >= 0

        wait_until(are_led, f"{self.name}: leaders of all partitions")

    def _until_start(self, offset: int, partition: int = 0) -> None:
        wait_until(
            lambda: log_start(self.log_dir, self.name, partition) >= offset,
            f"{self.name}-{partition}: the log start at {offset}",
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A log that changes while it is read.

    Attributes:
        name: What the case is about; unique among all tables.
        prepare: Writes the topic, which is there and empty.
        change: What happens to it.
        options: The options of both sources besides the subscription.
        again: The options of the second run of a stream, if they are others.
        moment: When it happens.
        partitions: How many partitions the topic has.
        by_pattern: Whether the subscription is a pattern.
        config: Configs of the topic.
    """

    name: str
    prepare: Callable[[Topic], None]
    change: Callable[[Topic], None]
    options: Mapping[str, str] = field(default_factory=dict)
    again: Mapping[str, str] | None = None
    moment: Moment = Moment.BETWEEN_RUNS
    partitions: int = 1
    by_pattern: bool = False
    config: Mapping[str, str] | None = None

    def subscription(self, topic: str) -> dict[str, str]:
        """Return how both sources subscribe to the topic of this case."""
        return {"subscribePattern": f"^{topic}$"} if self.by_pattern else {"subscribe": topic}


def _created_again(*counts: int) -> Callable[[Topic], None]:
    def change(topic: Topic) -> None:
        topic.delete()
        topic.create()
        topic.write(*counts, first=100)

    return change


def _deleted_and_later_again(*counts: int) -> Callable[[Topic], None]:
    def change(topic: Topic) -> None:
        topic.delete()
        time.sleep(5)  # Both streams see that it is gone.
        topic.create()
        topic.write(*counts, first=100)

    return change


def _partition_added(topic: Topic) -> None:
    topic.add_partitions(2)
    topic.write(2, 4, first=100)


def _partition_added_and_trimmed(topic: Topic) -> None:
    topic.add_partitions(2)
    topic.write(0, 4, first=100)
    topic.trim(2, partition=1)


def _expired(topic: Topic) -> None:
    for number in range(20):
        send(topic.client.producer(), topic.name, seconds([number] * 5, 40))
    topic.expire(1500, 12)


def _committed_then_aborted(topic: Topic) -> None:
    topic.transaction(4, is_kept=True)
    topic.transaction(3, is_kept=False)


def _appended_then_trimmed(before: int) -> Callable[[Topic], None]:
    def change(topic: Topic) -> None:
        topic.write(10, first=100)
        topic.trim(before)

    return change


def ten(topic: Topic) -> None:
    """Write ten records to partition 0."""
    topic.write(10)


_ALLOWED: dict[str, str] = {"failOnDataLoss": "false"}
_COMMITTED: dict[str, str] = {"kafka.isolation.level": "read_committed"}
_RUNNING: dict[str, Any] = {"moment": Moment.WHILE_RUNNING}

CHANGES: tuple[Change, ...] = (
    Change("records appended", ten, lambda topic: topic.write(5, first=100)),
    Change("nothing appended", ten, lambda _: None),
    Change("another start on restart", ten, lambda topic: topic.write(5, first=100),
           again={"startingOffsets": "latest"}),
    Change("another limit on restart", ten, lambda topic: topic.write(5, first=100),
           again={"maxOffsetsPerTrigger": "2"}),
    Change("a partition added", ten, _partition_added),
    Change("a partition added and trimmed", ten, _partition_added_and_trimmed),
    Change("a partition added and trimmed, loss allowed", ten, _partition_added_and_trimmed,
           _ALLOWED),
    Change("read records deleted", ten, lambda topic: topic.trim(6)),
    Change("unread records deleted", ten, _appended_then_trimmed(14)),
    Change("unread records deleted, loss allowed", ten, _appended_then_trimmed(14), _ALLOWED),
    Change("all unread records deleted", ten, _appended_then_trimmed(20)),
    Change("all unread records deleted, loss allowed", ten, _appended_then_trimmed(20), _ALLOWED),
    Change("unread records expired", ten, _expired, config=SMALL_SEGMENTS),
    Change("unread records expired, loss allowed", ten, _expired, _ALLOWED, config=SMALL_SEGMENTS),
    Change("transactions, committed", ten, _committed_then_aborted, _COMMITTED),
    Change("an aborted transaction alone, committed", ten,
           lambda topic: topic.transaction(3, is_kept=False), _COMMITTED),
    Change("a topic deleted", ten, lambda topic: topic.delete()),
    Change("a topic deleted, loss allowed", ten, lambda topic: topic.delete(), _ALLOWED),
    Change("a topic of a pattern deleted", ten, lambda topic: topic.delete(), by_pattern=True),
    Change("a topic of a pattern deleted, loss allowed", ten, lambda topic: topic.delete(),
           _ALLOWED, by_pattern=True),
    Change("a topic created again, shorter", ten, _created_again(4)),
    Change("a topic created again, shorter, loss allowed", ten, _created_again(4), _ALLOWED),
    Change("a topic created again, longer", ten, _created_again(15)),
    Change("a topic created again, longer, loss allowed", ten, _created_again(15), _ALLOWED),
    Change("records appended under a stream", ten, lambda topic: topic.write(5, first=100),
           **_RUNNING),
    Change("a partition added under a stream", ten, _partition_added, **_RUNNING),
    Change("a topic created again under a stream", ten, _deleted_and_later_again(4), **_RUNNING),
    Change("a topic created again under a stream, loss allowed", ten,
           _deleted_and_later_again(4), _ALLOWED, by_pattern=True, **_RUNNING),
    Change("records appended after the load", ten, lambda topic: topic.write(5, first=100),
           moment=Moment.AFTER_LOAD),
    Change("records deleted after the load", ten, lambda topic: topic.trim(6),
           moment=Moment.AFTER_LOAD),
    Change("records deleted after the load, loss allowed", ten, lambda topic: topic.trim(6),
           _ALLOWED, moment=Moment.AFTER_LOAD),
)  # fmt: skip
