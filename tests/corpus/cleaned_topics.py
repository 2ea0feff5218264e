"""The compacted topics of the corpus, in three moments: never cleaned, cleaned once, cleaned again.

The rule: the cleaner is held back by `min.compaction.lag.ms` until a scene wants it, and a scene
is taken only when the cleaner's checkpoint has come to rest. The lag goes by record timestamps, so
holding back means a lag no record is old enough for.
"""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Producer

from tests.corpus.clients import EPOCH_2024, Client, Sent, batch
from tests.corpus.corpus_topics import SMALL_SEGMENTS
from tests.corpus.transactions import end

NEVER = str(1 << 62)
KEYS = 12
COMPACTED = {
    **SMALL_SEGMENTS,
    "cleanup.policy": "compact",
    "delete.retention.ms": "86400000",
    "min.cleanable.dirty.ratio": "0.001",
    "min.compaction.lag.ms": NEVER,
}
TOPICS = (
    "compacted",
    "compacted.txn",
    "compacted.open",
    "compacted.emptied",
    "compacted.zero",
    "compacted.forgets",
)
Cleaned = dict[str, int]


def write_dirty(client: Client) -> list[Producer]:
    """Write all compacted topics for the first time; return the producer of an open transaction."""
    _create(client, "compacted", "keys written over and over, tombstones, mixed codecs, idempotent")
    _create(client, "compacted.txn", "committed and aborted values and tombstones of the same keys")
    _create(client, "compacted.open", "an open transaction in the middle holds the cleaner")
    _create(
        client,
        "compacted.emptied",
        "segments of one key; the last batch of a producer stays, empty",
    )
    _create(client, "compacted.zero", "segments of one key; nothing stays of the first: 0 bytes")
    _create(client, "compacted.forgets", "tombstones and markers go at the second cleaning",
            {"delete.retention.ms": "1"})  # fmt: skip
    held = _write_open(client)
    write_more(client, 0)
    return held


def write_more(client: Client, start: int) -> None:
    """Write further rounds over the same keys; `start` makes the values differ."""
    producers = [
        client.producer(codec, enable_idempotence=True) for codec in ("none", "gzip", "zstd")
    ]
    for number in range(start, start + 24):
        batch(producers[number % 3], "compacted", _round(number))
    only = client.producer(enable_idempotence=True)
    for number in range(start, start + 30):
        now = time.time_ns() // 1_000_000  # young enough for the producer to be kept
        same = [Sent(b"same", b"%060d" % (number * 4 + i), now) for i in range(4)]
        batch(only, "compacted.emptied", same)
        batch(
            producers[0], "compacted.zero", [sent._replace(timestamp=EPOCH_2024) for sent in same]
        )
    for topic in ("compacted.txn", "compacted.forgets"):
        _write_transactions(client, topic, start)


def clean(client: Client, log_dir: Path, before: Cleaned) -> Cleaned:
    """Let the cleaner run once to its end; return its checkpoint, by directory name."""
    _hold_back(client, "0")
    cleaned = _wait_for_rest(log_dir, before)
    _hold_back(client, NEVER)
    return cleaned


def _hold_back(client: Client, lag: str) -> None:
    for topic in TOPICS:
        client.configure(topic, {"min.compaction.lag.ms": lag})


def _wait_for_rest(log_dir: Path, before: Cleaned) -> Cleaned:
    deadline = time.monotonic() + 120
    last: Cleaned = {}
    rested_since = time.monotonic()
    while time.monotonic() < deadline:
        now = _checkpoint(log_dir)
        if now != last:
            last, rested_since = now, time.monotonic()
        moved = all(now.get(f"{t}-0", 0) > before.get(f"{t}-0", 0) for t in TOPICS
                    if t != "compacted.open" or not before)  # fmt: skip
        if moved and time.monotonic() - rested_since > 4:
            return now
        time.sleep(0.2)
    raise RuntimeError(f"the cleaner did not come to rest: {last}")


def _create(client: Client, topic: str, note: str, config: dict[str, str] | None = None) -> None:
    client.create(topic, note, {**COMPACTED, **(config or {})})


def _round(number: int) -> list[Sent]:
    """Seven records over twelve keys, every fifth a tombstone; two of keys no later round writes.

    Of those two, one is written once, the other gets a value and, a round later, a tombstone.
    """
    once = [
        Sent(b"once%04d" % number, b"kept", EPOCH_2024 + number * 1000),
        Sent(b"gone%04d" % (number // 2), None if number % 2 else b"soon gone"),
    ]
    return once + [
        Sent(
            b"k%02d" % ((number * 5 + i) % KEYS),
            None if (number + i) % 5 == 0 else b"v%04d-%d-" % (number, i) + b"." * 40,
            EPOCH_2024 + number * 1000 + i,
        )
        for i in range(7)
    ]


def _write_transactions(client: Client, topic: str, start: int) -> None:
    producers = [client.transactional(f"{topic}-{number}") for number in range(2)]
    for producer in producers:
        producer.begin_transaction()
    for number in range(start, start + 24):
        producer = producers[number % 2]
        batch(producer, topic, _round(number))
        if number % 3 == 2:
            end(producer, commit=number % 4 < 2)
            producer.begin_transaction()
    for number, producer in enumerate(producers):
        end(producer, commit=number == 0)
    plain = client.producer()
    for number in range(start + 24, start + 30):
        batch(plain, topic, _round(number))


def _write_open(client: Client) -> list[Producer]:
    topic = "compacted.open"
    plain, held = client.producer(), client.transactional(topic)
    for number in range(12):
        batch(plain, topic, _round(number))
    held.begin_transaction()
    batch(held, topic, _round(12))
    for number in range(13, 24):
        batch(plain, topic, _round(number))
    return [held]


def _checkpoint(log_dir: Path) -> Cleaned:
    path = log_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    fields = [line.split() for line in lines]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in fields}
