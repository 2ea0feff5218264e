"""The plain topics of the corpus: what a record, a batch, a timestamp and a segment may be.

The rule: one function a topic or a family of topics, and its note says what the topic shows.
"""

from __future__ import annotations

import random
import time
from importlib import import_module
from itertools import product
from pathlib import Path

from tests.corpus.clients import CODECS, EPOCH_2024, Client, Sent, batch, numbered

LONGEST_NAME = "n" * 249
NAMES = ("x", "x-0", "x-0-1", "-dash.first", "__hidden.like", LONGEST_NAME)
SMALL_SEGMENTS = {
    "internal.segment.bytes": "2048",
    "segment.index.bytes": "512",
    "index.interval.bytes": "300",
}
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
LARGE_BATCH_RECORDS = 10_000
LARGE_RECORD_BYTES = 5_000_000


def write_codecs(client: Client) -> None:
    """Write every codec from three independent producers; librdkafka's snappy has no framing."""
    topic = client.create("codecs", "partition n holds codec n", partitions=len(CODECS))
    mixed = client.create("codecs.mixed", "all codecs in one partition, twice")
    for number, codec in enumerate(CODECS):
        producer = client.producer(codec)
        for start in (0, 20, 40):
            batch(producer, topic, numbered(20, start, 200), number)
    for number, codec in enumerate(CODECS * 2):
        batch(client.producer(codec), mixed, numbered(10, number * 10, 200))
    _write_codecs_java(client)
    _write_codecs_kafka_python(client)


def _write_codecs_java(client: Client) -> None:
    topic = client.create("codecs.java", "all codecs from Java's idempotent producer, headers")
    for codec in CODECS:
        lines = [f"h:{i},codec:{codec}\tk{i}\t{codec * 30}-{i}\n" for i in range(20)]
        client.broker.tool(
            "org.apache.kafka.tools.ConsoleProducer",
            *("--bootstrap-server", client.broker.bootstrap, "--topic", topic),
            *("--compression-codec", codec, "--timeout", "1000"),
            *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
            stdin="".join(lines).encode(),
        )


def _write_codecs_kafka_python(client: Client) -> None:
    kafka = import_module("kafka")  # untyped, and only `make corpus` needs it
    topic = client.create("codecs.kafka-python", "kafka-python's; its snappy wants a package more")
    for number, codec in enumerate(("none", "gzip", "lz4", "zstd")):
        producer = kafka.KafkaProducer(
            bootstrap_servers=client.broker.bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=500,
        )
        for sent in numbered(20, number * 20, 200):
            producer.send(topic, value=sent.value, key=sent.key, timestamp_ms=sent.timestamp)
        producer.flush()
        producer.close()


def write_records(client: Client) -> None:
    """Write the shapes of keys, values and headers."""
    note = "none beside some; twice a name; null, empty, not ASCII"  # codespell:ignore
    topic = client.create("headers", note)
    shapes: list[list[tuple[str, bytes | None]]] = [
        [],
        [("one", b"1")],
        [("same", b"1"), ("other", b"2"), ("same", b"3"), ("same", b"1")],
        [("null", None), ("empty", b""), ("null", b"not null")],
        [],
        [("", b"a name without letters")],
        [("größe-日本-🙂", b"\xff\x00"), ("z", b"after"), ("a", b"order is kept")],
        [(f"h{i}", bytes([i])) for i in range(50)],
    ]
    records = [Sent(b"k", str(i).encode(), EPOCH_2024 + i, shape) for i, shape in enumerate(shapes)]
    for codec in ("none", "zstd"):
        batch(client.producer(codec), topic, records)
    batch(client.producer(), topic, records[:1] * 3)

    topic = client.create("nulls", "every pair of null, empty, some, for key and value")
    contents: tuple[bytes | None, ...] = (None, b"", b"some")
    pairs = [Sent(key, value) for key, value in product(contents, contents)]
    batch(client.producer(), topic, pairs)
    for pair in pairs:
        batch(client.producer(), topic, [pair])


def write_batches(client: Client) -> None:
    """Write the smallest and the largest batches and records."""
    topic = client.create("batches.single", "thirty batches of one record")
    producer = client.producer()
    for sent in numbered(30):
        batch(producer, topic, [sent])

    topic = client.create("batches.large", f"one batch of {LARGE_BATCH_RECORDS} records")
    producer = client.producer(batch_num_messages=LARGE_BATCH_RECORDS, batch_size=8 << 20)
    many = [Sent(None, str(i).encode(), EPOCH_2024 + i) for i in range(LARGE_BATCH_RECORDS)]
    batch(producer, topic, many)

    topic = client.create(
        "large.record", "5 MB in one record, zstd and gzip, small ones around",
        {"max.message.bytes": str(16 << 20)},
    )  # fmt: skip
    # The repeated piece fits gzip's window, so the batch stays far smaller than the record.
    piece = random.Random(1).randbytes(16_000)
    large = (piece * (LARGE_RECORD_BYTES // len(piece) + 1))[:LARGE_RECORD_BYTES]
    for codec in ("zstd", "gzip"):
        producer = client.producer(codec)
        batch(producer, topic, numbered(2))
        batch(producer, topic, [Sent(codec.encode(), large)])
        batch(producer, topic, numbered(2, 2))


def write_times(client: Client) -> None:
    """Write both timestamp types, and times that are odd."""
    topic = client.create("time.append", "LogAppendTime", APPEND_TIME)
    for codec in ("none", "lz4"):
        batch(client.producer(codec), topic, numbered(5))

    topic = client.create("time.switched", "CreateTime, then LogAppendTime, then CreateTime")
    for start, kind in enumerate(("CreateTime", "LogAppendTime", "CreateTime")):
        client.configure(topic, {"message.timestamp.type": kind})
        batch(client.producer(), topic, numbered(4, start * 10))
        batch(client.producer("gzip"), topic, numbered(4, start * 10 + 5))

    topic = client.create("time.before.1970", "negative times; maxTimestamp is -1 over them")
    times = (-1, -2, -1000, -86_400_001, -62_135_596_800_000, 1, EPOCH_2024)
    odd = [Sent(None, str(when).encode(), when) for when in times]
    batch(client.producer(), topic, odd)
    for sent in odd:
        batch(client.producer(), topic, [sent])

    topic = client.create("time.unfit", "times no datetime and no Spark timestamp can hold")
    for when in (-(1 << 62), -377_736_739_200_000_000):
        batch(client.producer(), topic, [Sent(None, str(when).encode(), when)])

    topic = client.create("time.disordered", "times fall and rise, in batches and across them")
    producer = client.producer()
    for start in (50, 0, 30, 20, 90):
        shuffled = numbered(10, start)
        random.Random(start).shuffle(shuffled)
        batch(producer, topic, shuffled)


def write_names(client: Client) -> None:
    """Write topics whose directories are easily misread, and many partitions."""
    for topic in NAMES:
        client.create(topic, "a legal name")
        batch(client.producer(), topic, [Sent(b"topic", topic.encode())])
    topic = client.create("partitions", "partition n holds n records", partitions=7)
    for partition in range(1, 7):
        batch(client.producer(), topic, numbered(partition), partition)
    client.create("empty", "never written")

    topic = client.create("idempotent", "two idempotent producers, interleaved", partitions=2)
    producers = [client.producer(enable_idempotence=True) for _ in range(2)]
    for number in range(12):
        batch(producers[number % 2], topic, numbered(3, number * 3), number // 2 % 2)


def write_segments(client: Client, log_dir: Path) -> None:
    """Write many segments, and topics that lost the first of them in each way there is."""
    topic = client.create("segments", "many segments with indexes", SMALL_SEGMENTS, 2)
    _fill(client, topic, 40, partition=0)
    _fill(client, topic, 8, partition=1)

    topic = client.create(
        "trimmed", "DeleteRecords: in the first segment, inside a batch; past segments; to the end",
        {"file.delete.delay.ms": "0", **SMALL_SEGMENTS}, 3,
    )  # fmt: skip
    for partition, before in enumerate((3, 77, 200)):
        _fill(client, topic, 40, partition)
        client.delete_records(topic, partition, before)

    at_once = {"file.delete.delay.ms": "0", **SMALL_SEGMENTS}
    plain = client.create("retained", "retention took the first segments", at_once)
    held = client.create(
        "retained.deleted", "the same, and their files are still there as .deleted",
        {"file.delete.delay.ms": "3600000", **SMALL_SEGMENTS},
    )  # fmt: skip
    expired = client.create("expired", "retention took everything", at_once)
    for topic in (plain, held, expired):
        _fill(client, topic, 40)
    client.configure(plain, {"retention.bytes": "6000"})
    client.configure(held, {"retention.bytes": "6000"})
    client.configure(expired, {"retention.ms": "1000"})
    _wait_until_gone(log_dir, (plain, held, expired))


def _fill(client: Client, topic: str, batches: int, partition: int = 0) -> None:
    producer = client.producer()
    for number in range(batches):
        batch(producer, topic, numbered(5, number * 5), partition)


def _wait_until_gone(log_dir: Path, topics: tuple[str, ...]) -> None:
    deadline = time.monotonic() + 60
    firsts = [log_dir / f"{topic}-0" / f"{0:020}.log" for topic in topics]
    while any(first.exists() for first in firsts):
        if time.monotonic() > deadline:
            raise RuntimeError(f"retention left {firsts}")
        time.sleep(0.2)
    time.sleep(2)  # the rest of the same check, and the checkpoint after it
