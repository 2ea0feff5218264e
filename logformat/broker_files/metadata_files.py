"""The files that name a partition's topic and a broker's directory (docs/format.md, 13).

    partition.metadata     `version: 0`, `topic_id: <22 characters of URL-safe base64>`
    .kafka_cleanshutdown   {"version":0,"brokerEpoch":7}
    meta.properties        version, node id, cluster id, directory id

The `decode` functions raise for a malformed file; `parse_topic_id` returns None. To a broker only
the existence of `.kafka_cleanshutdown` matters, not its content. (Kafka's `PartitionMetadata`,
`CleanShutdownFileHandler`, `MetaProperties`.)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from klog.errors import CorruptRecordError
from klog.logformat.broker_files.java_properties import decode_properties, encode_properties

UNKNOWN_BROKER_EPOCH = -1
NODE_ID_KEYS = ("broker.id", "node.id")
"""By version of `meta.properties`: 0 is ZooKeeper's, 1 is KRaft's."""

_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_NO_UUID = "A" * 22
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_LINE = re.compile(r":\s+")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The fields of `meta.properties`, None for missing ones.

    Version 0 is ZooKeeper's, and requires no field. Version 1 is KRaft's, and requires `node_id`
    and `cluster_id`.
    """

    version: int
    node_id: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None


def is_topic_id(text: str) -> bool:
    """Return whether a text is a topic id: 22 characters of URL-safe base64, not all zeros.

    Args:
        text: Any text.
    """
    return _UUID.fullmatch(text) is not None and text != _NO_UUID


def decode_partition_metadata(data: bytes) -> str:
    """Return the topic id of a `partition.metadata`, 22 characters of URL-safe base64.

    Args:
        data: The whole file.

    Raises:
        CorruptRecordError: If it has none; the id of all zeros does not count.
    """
    try:
        parts = [_LINE.split(line.decode("ascii")) for line in data.splitlines()]
    except UnicodeDecodeError as exc:
        raise CorruptRecordError("partition.metadata is not ASCII") from exc
    if [part[0] for part in parts] != ["version", "topic_id"] or {len(p) for p in parts} != {2}:
        raise CorruptRecordError("partition.metadata is not `version: n` and `topic_id: id`")
    (_, version), (_, topic_id) = parts
    if _NUMBER.fullmatch(version) is None or int(version) < 0:
        raise CorruptRecordError(f"partition.metadata of version {version!r}")
    if not is_topic_id(topic_id):
        raise CorruptRecordError(f"partition.metadata: {topic_id!r} is not a topic id")
    return topic_id


def parse_topic_id(data: bytes) -> str | None:
    """Return the topic id of a `partition.metadata`; None if it has none.

    Args:
        data: The whole file.
    """
    try:
        return decode_partition_metadata(data)
    except CorruptRecordError:
        return None


def encode_partition_metadata(topic_id: str) -> bytes:
    """Encode a `partition.metadata`.

    Args:
        topic_id: 22 characters of URL-safe base64.

    Raises:
        ValueError: For another text.
    """
    if not is_topic_id(topic_id):
        raise ValueError(
            f"{topic_id!r} is not a topic id: it must be 22 characters of URL-safe base64"
        )
    return f"version: 0\ntopic_id: {topic_id}".encode()


def decode_clean_shutdown(data: bytes) -> int:
    """Return the broker epoch of a `.kafka_cleanshutdown`, `UNKNOWN_BROKER_EPOCH` without one.

    Args:
        data: The whole file; unknown fields are ignored.

    Raises:
        CorruptRecordError: For a malformed file.
    """
    try:
        fields = json.loads(data.decode())
    except (ValueError, RecursionError) as exc:
        raise CorruptRecordError(f".kafka_cleanshutdown is not JSON: {exc}") from exc
    epoch = fields.get("brokerEpoch", UNKNOWN_BROKER_EPOCH) if isinstance(fields, dict) else None
    if type(epoch) is not int:
        raise CorruptRecordError(".kafka_cleanshutdown: brokerEpoch is not an integer")
    return epoch


def encode_clean_shutdown(broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> bytes:
    """Encode a `.kafka_cleanshutdown`.

    Args:
        broker_epoch: The broker's epoch.
    """
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Decode a `meta.properties` of version 0 or 1.

    Args:
        data: The whole file.

    Raises:
        CorruptRecordError: For another version, a missing key that the version requires, or a
            malformed value.
    """
    fields = decode_properties(data)
    version = _integer(fields, "version")
    if version not in (0, 1):
        raise CorruptRecordError(f"meta.properties of version {version}, must be 0 or 1")
    directory_id = fields.get("directory.id")
    if directory_id is not None and _UUID.fullmatch(directory_id) is None:
        raise CorruptRecordError(f"meta.properties: directory.id {directory_id!r} is not an id")
    meta = MetaProperties(
        version, _integer(fields, NODE_ID_KEYS[version]), fields.get("cluster.id"), directory_id
    )
    if (key := _missing_key(meta)) is not None:
        raise CorruptRecordError(f"meta.properties of version {version} without {key}")
    return meta


def encode_meta_properties(meta: MetaProperties, comment: str = "") -> bytes:
    """Encode a `meta.properties`.

    Args:
        meta: Its fields.
        comment: A broker writes the time here.

    Raises:
        ValueError: For another version than 0 and 1, or a missing field that the version requires.
    """
    if meta.version not in (0, 1):
        raise ValueError(f"meta.properties has versions 0 and 1, not {meta.version}")
    if (key := _missing_key(meta)) is not None:
        raise ValueError(f"meta.properties of version {meta.version} needs {key}")
    values = {
        "cluster.id": meta.cluster_id,
        "directory.id": meta.directory_id,
        NODE_ID_KEYS[meta.version]: None if meta.node_id is None else str(meta.node_id),
        "version": str(meta.version),
    }
    fields = {key: value for key, value in values.items() if value is not None}
    return encode_properties(fields, ("", comment))


def _missing_key(meta: MetaProperties) -> str | None:
    if meta.version == 0:
        return None
    if meta.node_id is None:
        return "node.id"
    return "cluster.id" if meta.cluster_id is None else None


def _integer(fields: dict[str, str], key: str) -> int | None:
    value = fields.get(key)
    if value is None:
        return None
    if _NUMBER.fullmatch(value) is None or not -(1 << 31) <= int(value) < 1 << 31:
        raise CorruptRecordError(f"meta.properties: {key} {value!r} is not a 32-bit integer")
    return int(value)
