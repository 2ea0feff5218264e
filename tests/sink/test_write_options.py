"""Options of a write: what they mean, the nearest name, one `OptionError` for each wrong word."""

from __future__ import annotations

import pytest

from klog.connector.sink.write_options import write_options
from klog.errors import OptionError


def test_what_is_given_is_what_is_meant() -> None:
    found = write_options(
        {
            "path": "/data/klog", "topic": "orders", "transactionalid": "etl",
            "transactionversion": "7", "createtopic": "FALSE", "numpartitions": "3",
            "deadlettertopic": "dead", "kafka.compression.type": "lz4", "batch.size": "1000",
            "includeheaders": "true", "storage.endpoint": "http://here",
        }
    )  # fmt: skip
    assert (found.path, found.topic, found.name, found.version) == (
        "/data/klog",
        "orders",
        "etl",
        7,
    )
    assert (found.create_topic, found.num_partitions) == (False, 3)
    assert found.dead_letter_topic == "dead"
    assert found.settings == {"compression.type": "lz4", "batch.size": "1000"}
    assert dict(found.storage.given) == {"endpoint": "http://here"}


def test_what_is_not_given_has_kafkas_or_sparks_default() -> None:
    found = write_options({"path": "/r"})
    assert (found.topic, found.name, found.version, found.create_topic) == (None, None, None, True)
    assert found.buffer_bytes == 64 << 20


def test_a_relative_path_is_as_seen_from_here(tmp_path: object) -> None:
    assert write_options({"path": "here"}).path.startswith("/")
    assert write_options({"path": "s3://bucket/root"}).path == "s3://bucket/root"


def test_options_of_a_brokers_client_are_warned_of_once() -> None:
    with pytest.warns(UserWarning, match=r"kafka.acks, kafka.bootstrap.servers have no effect"):
        write_options({"path": "/r", "kafka.bootstrap.servers": "b:9092", "kafka.acks": "all"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topik": "t"}, "topik: a write has no such option; did you mean topic?"),
        ({"subscribe": "t"}, "subscribe: a write has no such option"),
        ({"topic": "a/b"}, "'a/b' is no topic name"),
        ({"topic": "t", "deadlettertopic": "t"}, "deadLetterTopic: t is the topic itself"),
        ({"numpartitions": "0"}, "numPartitions: 0 is not from 1 to"),
        ({"numpartitions": "x"}, "numPartitions: 'x' is not a whole number"),
        ({"createtopic": "maybe"}, "createTopic: 'maybe' is none of true, false"),
        ({"transactionalid": "a"}, "transactionalId and transactionVersion: give both"),
        ({"transactionversion": "1"}, "transactionalId and transactionVersion: give both"),
        ({"transactionalid": "a", "transactionversion": "-1"}, "transactionVersion: -1 does not"),
        ({"transactionalid": "", "transactionversion": "1"}, "transactional id is empty"),
        ({"compression.type": "brotli"}, "compression.type is 'brotli'"),
        ({"batch.size": "1k"}, "batch.size is '1k'"),
        ({"batch.size": "1", "kafka.batch.size": "2"}, "batch.size and kafka.batch.size disagree"),
        ({"kafka.partitioner.class": "x.Y"}, "klog runs no Java partitioner"),
        ({"kafka.value.serializer": "x.Y"}, "kafka.value.serializer: values are written as"),
        ({"kafka.transactional.id": "x"}, "kafka.transactional.id: give transactionalId"),
        ({"storage.zzz": "x"}, "storage.zzz"),
        ({"path": ""}, "path: give the root to save"),
        ({"path": "memory://x"}, "lives in one process"),
    ],
)
def test_a_wrong_word_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        write_options({"path": "/r", **given})
    assert said in str(caught.value)


def test_a_stream_has_a_number_of_its_own() -> None:
    assert write_options({"path": "/r", "transactionalid": "a"}, streaming=True).name == "a"
    with pytest.raises(OptionError, match="a stream counts its batches itself"):
        write_options({"path": "/r", "transactionversion": "1"}, streaming=True)
