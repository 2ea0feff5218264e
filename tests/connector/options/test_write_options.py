"""Options of a write: what each value means, and one `OptionError` for each wrong one."""

from __future__ import annotations

import pytest

from klog.connector.options.option import Use
from klog.connector.options.option_map import REFUSED_KEYS
from klog.connector.options.write_options import parse_write_options
from klog.errors import OptionError


def test_values() -> None:
    options = parse_write_options(
        {
            "path": "/data/klog", "topic": "orders", "transactionalid": "etl",
            "transactionversion": "7", "createtopic": "FALSE", "numpartitions": "3",
            "deadlettertopic": "dead", "kafka.compression.type": "lz4", "batch.size": "1000",
            "includeheaders": "true", "storage.endpoint": "http://here",
        }
    )  # fmt: skip
    assert (options.path, options.topic) == ("/data/klog", "orders")
    assert (options.transactional_id, options.transaction_version) == ("etl", 7)
    assert (options.create_topic, options.num_partitions) == (False, 3)
    assert options.dead_letter_topic == "dead"
    assert options.segment_options == {"compression.type": "lz4", "batch.size": "1000"}
    assert dict(options.storage.values) == {"endpoint": "http://here"}


def test_defaults() -> None:
    options = parse_write_options({"path": "/r"})
    assert (options.topic, options.create_topic, options.num_partitions) == (None, True, None)
    assert (options.transactional_id, options.transaction_version) == (None, None)
    assert options.segment_options == {}
    assert options.buffer_bytes == 64 << 20


def test_options_of_a_client_are_one_warning() -> None:
    options = {"path": "/r", "kafka.bootstrap.servers": "b:9092", "kafka.acks": "all"}
    with pytest.warns(UserWarning, match=r"kafka.acks, kafka.bootstrap.servers have no effect"):
        parse_write_options(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topik": "t"}, "topik: unknown write option. Did you mean topic?"),
        ({"subscribe": "t"}, "subscribe: unknown write option"),
        ({"topic": "a/b"}, "topic: must be a topic name: 1 to 249 letters"),
        ({"deadlettertopic": ".."}, "deadLetterTopic: must be a topic name"),
        ({"topic": "t", "deadlettertopic": "t"}, "deadLetterTopic: must not be the topic of the"),
        ({"numpartitions": "0"}, "numPartitions: must be a whole number from 1 to 100000, got '0'"),
        ({"numpartitions": "100001"}, "numPartitions: must be a whole number from 1 to 100000"),
        ({"numpartitions": "x"}, "numPartitions: must be a whole number from 1 to 100000, got 'x'"),
        ({"createtopic": "maybe"}, "createTopic: must be true or false, got 'maybe'"),
        ({"includeheaders": "maybe"}, "includeHeaders: must be true or false, got 'maybe'"),
        ({"transactionalid": "a"}, "transactionalId, transactionVersion: must be set together"),
        ({"transactionversion": "1"}, "transactionalId, transactionVersion: must be set together"),
        (
            {"transactionalid": "a", "transactionversion": "-1"},
            "transactionVersion: must be a whole number of 64 bits from 0, got '-1'",
        ),
        (
            {"transactionalid": "", "transactionversion": "1"},
            "transactionalId: must be a text of 1 to 32767 bytes of UTF-8, got '' (it has 0 bytes)",
        ),
        ({"transactionalid": "é" * 16384, "transactionversion": "1"}, "(it has 32768 bytes)"),
        ({"compression.type": "brotli"}, "compression.type: must be one of none, gzip, snappy,"),
        ({"compression.zstd.level": "23"}, "compression.zstd.level"),
        ({"segment.bytes": "13"}, "segment.bytes"),
        ({"batch.size": "1k"}, "batch.size: must be a number of bytes, at most 134217728, got '1k"),
        ({"buffer.memory": "-1"}, "buffer.memory: must be a number of bytes"),
        ({"partitioner": "random"}, "partitioner: must be one of murmur2, sticky, round-robin, go"),
        (
            {"batch.size": "1", "kafka.batch.size": "2"},
            "batch.size: must agree with kafka.batch.size, got '1' and '2'",
        ),
        ({"kafka.partitioner.class": "x.Y"}, "klog does not run Java partitioners. Use the option"),
        ({"kafka.value.serializer": "x.Y"}, "kafka.value.serializer: klog writes values unchanged"),
        ({"kafka.transactional.id": "x"}, "Use transactionalId"),
        ({"storage.zzz": "x"}, "storage.zzz: unknown storage option"),
        ({"path": ""}, "path: give the root to save"),
    ],
)
def test_error_names_its_option_and_what_it_must_be(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_write_options({"path": "/r", **options})
    assert message in str(caught.value)


@pytest.mark.parametrize("key", REFUSED_KEYS[Use.WRITE])
def test_key_that_would_change_the_rows_is_refused(key: str) -> None:
    with pytest.raises(OptionError, match=f"^{key}: klog "):
        parse_write_options({"path": "/r", key: "x"})


def test_stream_has_no_version() -> None:
    options = {"path": "/r", "transactionalid": "a"}
    assert parse_write_options(options, is_streaming=True).transactional_id == "a"
    with pytest.raises(OptionError, match="transactionVersion: a stream counts its batches itself"):
        parse_write_options({"path": "/r", "transactionversion": "1"}, is_streaming=True)
