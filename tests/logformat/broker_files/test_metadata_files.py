"""The files that name a topic and a broker, and that a clean stop leaves (docs/format.md, 13)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klog.errors import CorruptRecordError
from klog.logformat.broker_files.metadata_files import (
    MetaProperties,
    decode_clean_shutdown,
    decode_meta_properties,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
    parse_topic_id,
)

TOPIC_ID = "ASNFZ4mrze_-3LqYdlQyEA"
UUIDS = st.from_regex(r"[A-Za-z0-9_-]{22}", fullmatch=True)


def test_topic_id_of_a_file() -> None:
    assert parse_topic_id(f"version: 0\ntopic_id: {TOPIC_ID}".encode()) == TOPIC_ID
    assert parse_topic_id(f"version: 1\ntopic_id: {TOPIC_ID}\n".encode()) == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"version: 0\n", id="no id"),
        pytest.param(f"topic_id: {TOPIC_ID}".encode(), id="no version"),
        pytest.param(f"version: -1\ntopic_id: {TOPIC_ID}".encode(), id="negative version"),
        pytest.param(f"version: x\ntopic_id: {TOPIC_ID}".encode(), id="no number"),
        pytest.param(f"version 0\ntopic_id: {TOPIC_ID}".encode(), id="no colon"),
        pytest.param(f"version: 0\ntopic_id: {TOPIC_ID}\n\xff".encode("latin-1"), id="not ASCII"),
    ],
)
def test_malformed_partition_metadata_is_none(data: bytes) -> None:
    assert parse_topic_id(data) is None


@pytest.mark.parametrize(
    "topic_id", ["AAAAAAAAAAAAAAAAAAAAAA", "", "short", TOPIC_ID + "A", "?" * 22]
)
def test_malformed_topic_id_is_none(topic_id: str) -> None:
    # docs/format.md, 13: 22 characters of URL-safe base64, not all of the bytes zero.
    assert parse_topic_id(f"version: 0\ntopic_id: {topic_id}".encode()) is None


@given(UUIDS)
def test_topic_id_round_trip(topic_id: str) -> None:
    assert parse_topic_id(encode_partition_metadata(topic_id)) == topic_id


@pytest.mark.parametrize("topic_id", ["", "A" * 22, TOPIC_ID + "="])
def test_malformed_topic_id_is_not_written(topic_id: str) -> None:
    with pytest.raises(ValueError, match="is not a topic id"):
        encode_partition_metadata(topic_id)


@given(st.integers(-1, (1 << 63) - 1))
def test_broker_epoch_round_trip(epoch: int) -> None:
    assert decode_clean_shutdown(encode_clean_shutdown(epoch)) == epoch


def test_clean_shutdown_file_without_an_epoch() -> None:
    assert decode_clean_shutdown(b"{}") == -1
    assert encode_clean_shutdown() == b'{"version":0,"brokerEpoch":-1}'


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"7", b'{"brokerEpoch":"7"}', b'{"brokerEpoch":true}', b"\xff", b"[" * 9999],
)
def test_malformed_clean_shutdown_file_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="kafka_cleanshutdown"):
        decode_clean_shutdown(data)


META = st.one_of(
    st.builds(
        MetaProperties,
        st.just(0),
        st.none() | st.integers(0, (1 << 31) - 1),
        st.none() | st.text(min_size=1),
        st.none() | UUIDS,
    ),
    st.builds(
        MetaProperties,
        st.just(1),
        st.integers(0, (1 << 31) - 1),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | UUIDS,
    ),
)


@given(META, st.text())
def test_meta_properties_round_trip(meta: MetaProperties, comment: str) -> None:
    assert decode_meta_properties(encode_meta_properties(meta, comment)) == meta


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=x", "version 'x' is not a 32-bit integer"),
        ("version=1\nnode.id=9999999999\ncluster.id=c", "is not a 32-bit integer"),
        ("version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short", "is not an id"),
        ("version=\\u12", "hex digits"),
    ],
)
def test_malformed_meta_properties_are_corrupt(text: str, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_meta_properties(text.encode())


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (MetaProperties(2), "versions 0 and 1"),
        (MetaProperties(1, None, "c"), "needs node.id"),
        (MetaProperties(1, 4), "needs cluster.id"),
    ],
)
def test_incomplete_meta_properties_are_not_written(meta: MetaProperties, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_meta_properties(meta)


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_corrupt(data: bytes) -> None:
    for text in (data, b"version: 0\ntopic_id: " + data):
        topic_id = parse_topic_id(text)
        assert topic_id is None or encode_partition_metadata(topic_id)
    for text in (data, b"version=0\ncluster.id=" + data):
        with suppress(CorruptRecordError):
            meta = decode_meta_properties(text)
            assert decode_meta_properties(encode_meta_properties(meta)) == meta
    with suppress(CorruptRecordError):
        assert type(decode_clean_shutdown(data)) is int
