"""Write the text files of a log directory and read them back."""

from __future__ import annotations

from klog.logformat.broker_files.checkpoint_files import (
    decode_epoch_checkpoint,
    decode_offset_checkpoint,
    encode_epoch_checkpoint,
    encode_offset_checkpoint,
)
from klog.logformat.broker_files.leader_epochs import EpochEntry
from klog.logformat.broker_files.metadata_files import (
    MetaProperties,
    decode_clean_shutdown,
    decode_meta_properties,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
)
from klog.logformat.topic_partition import TopicPartition


def epoch_checkpoint_round_trip(*entries: tuple[int, int]) -> list[tuple[int, int]]:
    """Write (epoch, start offset) pairs and read them."""
    return epoch_checkpoint(encode_epoch_checkpoint(EpochEntry(*entry) for entry in entries))


def epoch_checkpoint(data: bytes) -> list[tuple[int, int]]:
    """Read a leader epoch checkpoint, and hold that the same bytes are written."""
    checkpoint = decode_epoch_checkpoint(data)
    assert encode_epoch_checkpoint(checkpoint.entries) == data
    return [(entry.epoch, entry.start_offset) for entry in checkpoint.entries]


def offset_checkpoint_round_trip(
    *entries: tuple[tuple[str, int], int],
) -> list[tuple[tuple[str, int], int]]:
    """Write offsets by topic and partition and read them."""
    offsets = {TopicPartition(*name): offset for name, offset in entries}
    return [*decode_offset_checkpoint(encode_offset_checkpoint(offsets)).items()]


def offset_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    """Read an offset checkpoint, and hold that the same bytes are written."""
    offsets = decode_offset_checkpoint(data)
    assert not data or encode_offset_checkpoint(offsets) == data
    return offsets


def partition_metadata(data: bytes) -> str:
    """Read a topic id, and hold that the same bytes are written."""
    topic_id = decode_partition_metadata(data)
    assert encode_partition_metadata(topic_id) == data
    return topic_id


def clean_shutdown(data: bytes) -> int:
    """Read a broker's epoch."""
    return decode_clean_shutdown(data)


def clean_shutdown_written(epoch: int) -> bytes:
    """Write a broker's epoch."""
    return encode_clean_shutdown(epoch)


def meta_properties(text: str) -> tuple[int, int | None, str | None, str | None]:
    """Read a `meta.properties`, and hold that it is the same once written."""
    properties = decode_meta_properties(text.encode())
    assert decode_meta_properties(encode_meta_properties(properties, "Sat Nov 21")) == properties
    return properties.version, properties.node_id, properties.cluster_id, properties.directory_id


def meta_properties_written(*fields: object) -> bytes:
    """Write a `meta.properties`."""
    return encode_meta_properties(MetaProperties(*fields), "now")  # type: ignore[arg-type]
