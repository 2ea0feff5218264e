"""The truth about a scene: what a consumer of the running broker reads, at both levels.

The rule: a consumer reads a partition until its position is the end that the broker reports, not a
number of records, so it passes gaps, markers and an aborted tail.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.corpus import LONGEST_VALUE_KEPT_BYTES, Bounds, Digest
from tests.corpus.clients import Client
from tests.support.waiting import TIMEOUT_SECONDS

Where = tuple[str, int]
Account = dict[tuple[str, int, int], dict[str, Any]]
LEVELS = {
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
    "read_committed": IsolationLevel.READ_COMMITTED,
}


def write_truth(client: Client, into: Path, scene: str, stop: str) -> int:
    """Write `<scene>.json` and `<scene>.jsonl.gz` into a folder; return the number of records."""
    partitions = _partitions(client)
    earliest = offsets(client, partitions, OffsetSpec.earliest(), "read_uncommitted")
    high = offsets(client, partitions, OffsetSpec.latest(), "read_uncommitted")
    stable = offsets(client, partitions, OffsetSpec.latest(), "read_committed")
    everything = consume(client, earliest, high, "read_uncommitted")
    committed = consume(client, earliest, stable, "read_committed")
    bounds = {where: Bounds(earliest[where], high[where], stable[where]) for where in partitions}
    write_account(client, into, scene, stop, bounds, everything, committed)
    return len(everything)


def write_account(
    client: Client,
    into: Path,
    scene: str,
    stop: str,
    partitions: dict[Where, Bounds],
    everything: Account,
    committed: Account,
) -> None:
    """Write what any consumer has read; its two levels must not contradict each other."""
    for where, fields in committed.items():
        if everything[where] != fields:
            raise RuntimeError(f"{scene}: the two levels differ at {where}")
    bounds = [
        {"topic": topic, "partition": partition, **asdict(bound)}
        for (topic, partition), bound in sorted(partitions.items())
    ]
    about = {
        "kafka": client.broker.version,
        "stop": stop,
        "log_dirs": [folder.name for folder in client.broker.log_dirs],
        "notes": client.notes,
        "configs": client.configs,
        "partitions": bounds,
    }
    into.mkdir(parents=True, exist_ok=True)
    (into / f"{scene}.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    _write_records(into / f"{scene}.jsonl.gz", everything, set(committed))


def _write_records(path: Path, everything: Account, committed: set[tuple[str, int, int]]) -> None:
    lines = []
    for where in sorted(everything):
        fields = {**everything[where], "levels": "uc" if where in committed else "u"}
        lines.append(json.dumps(fields, ensure_ascii=False) + "\n")
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def _partitions(client: Client) -> list[Where]:
    topics = client.admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    return sorted((topic, partition) for topic in client.notes
                  for partition in topics[topic].partitions)  # fmt: skip


def offsets(
    client: Client, partitions: list[Where], spec: OffsetSpec, level: str
) -> dict[Where, int]:
    specs = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    answers = client.admin.list_offsets(specs, isolation_level=LEVELS[level])
    return {
        (where.topic, where.partition): answer.result(TIMEOUT_SECONDS).offset
        for where, answer in answers.items()
    }


class LogStartMovedError(Exception):
    """The broker has deleted records that were to be read."""


def consume(client: Client, start: dict[Where, int], end: dict[Where, int], level: str) -> Account:
    consumer = Consumer(
        {
            "bootstrap.servers": client.broker.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "isolation.level": level,
            "log_level": 0,
        }
    )
    consumer.assign(
        [TopicPartition(topic, partition, offset) for (topic, partition), offset in start.items()]
    )
    account: Account = {}
    waiting = set(start)
    while waiting:
        message = consumer.poll(TIMEOUT_SECONDS)
        if message is None:
            raise RuntimeError(f"nothing came for {TIMEOUT_SECONDS} s; waiting for {waiting}")
        error = message.error()
        where = (message.topic() or "", message.partition() or 0)
        if error is None:
            account[where[0], where[1], message.offset() or 0] = _fields(message)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            consumer.close()
            raise LogStartMovedError(f"{where}: {error}")
        elif error.code() != KafkaError._PARTITION_EOF:
            raise RuntimeError(f"{where}: {error}")
        elif (message.offset() or 0) >= end[where]:
            waiting.discard(where)
    consumer.close()
    return account


def _fields(message: Message) -> dict[str, Any]:
    kind, timestamp = message.timestamp()
    headers = message.headers()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp,
        "timestampType": kind - 1,  # librdkafka: 1 CreateTime, 2 LogAppendTime
        "key": text(message.key()),
        "value": _value(message.value()),
        "headers": [[header[0], text(header[1])] for header in headers] if headers else None,
    }


def text(content: Any) -> str | None:
    return None if content is None else b64encode(content).decode()


def _value(content: Any) -> Any:
    if content is None or len(content) <= LONGEST_VALUE_KEPT_BYTES:
        return text(content)
    digest = Digest.of(content)
    return {"sha256": digest.sha256, "size": digest.size}
