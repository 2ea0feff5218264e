"""What names a partition's topic and a broker's directory: three small files (docs/format.md, 13).

    partition.metadata     `version: 0`, `topic_id: <22 characters of URL-safe base64>`
    .kafka_cleanshutdown   {"version":0,"brokerEpoch":7}
    meta.properties        version, the broker's number, the cluster's id, the directory's id

The `decode` functions say what is wrong; the `read` ones give None there. That
`.kafka_cleanshutdown` exists is what matters to a broker, not what it says. (Kafka's
`PartitionMetadata`, `CleanShutdownFileHandler`, `MetaProperties`.)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from klog.errors import CorruptRecordError
from klog.logformat.properties import decode_properties, encode_properties

UNKNOWN_BROKER_EPOCH = -1
NODE_ID_KEYS = ("broker.id", "node.id")
"""By version of `meta.properties`: ZooKeeper's brokers, KRaft's."""

_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_NO_UUID = "A" * 22
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_LINE = re.compile(r":\s+")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """What `meta.properties` says; None for what it does not.

    Version 0 is ZooKeeper's, where all may be missing; version 1 is KRaft's and needs `node_id` and
    `cluster_id`, any text.
    """

    version: int
    node_id: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None


def is_topic_id(text: str) -> bool:
    """Tell whether a text is a topic id: 22 characters of URL-safe base64, not all zeros."""
    return _UUID.fullmatch(text) is not None and text != _NO_UUID


def decode_partition_metadata(data: bytes) -> str:
    """Give the topic id that a `partition.metadata` names, 22 characters of URL-safe base64.

    Raises `CorruptRecordError` if it names none; the id of all zeros is none.
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
        raise CorruptRecordError(f"partition.metadata: {topic_id!r} is no topic id")
    return topic_id


def read_topic_id(data: bytes) -> str | None:
    """Give the topic id that a `partition.metadata` names; None if it names none."""
    try:
        return decode_partition_metadata(data)
    except CorruptRecordError:
        return None


def encode_partition_metadata(topic_id: str) -> bytes:
    """Encode a `partition.metadata`; raises `ValueError` for what is no topic id."""
    if not is_topic_id(topic_id):
        raise ValueError(f"{topic_id!r} is no topic id: 22 characters of URL-safe base64")
    return f"version: 0\ntopic_id: {topic_id}".encode()


def decode_clean_shutdown(data: bytes) -> int:
    """Give the broker epoch of a `.kafka_cleanshutdown`, `UNKNOWN_BROKER_EPOCH` if it has none.

    Fields that are not known are passed over. Raises `CorruptRecordError` for what is no such JSON.
    """
    try:
        fields = json.loads(data.decode())
    except (ValueError, RecursionError) as exc:
        raise CorruptRecordError(f".kafka_cleanshutdown is not JSON: {exc}") from exc
    epoch = fields.get("brokerEpoch", UNKNOWN_BROKER_EPOCH) if isinstance(fields, dict) else None
    if type(epoch) is not int:
        raise CorruptRecordError(".kafka_cleanshutdown has no number as its brokerEpoch")
    return epoch


def encode_clean_shutdown(broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> bytes:
    """Encode a `.kafka_cleanshutdown`."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def decode_meta_properties(data: bytes) -> MetaProperties:
    """Decode a `meta.properties` of version 0 or 1.

    Raises `CorruptRecordError` for another version, a key that its version needs and it lacks, or a
    value that its key cannot have.
    """
    fields = decode_properties(data)
    version = _integer(fields, "version")
    if version not in (0, 1):
        raise CorruptRecordError(f"meta.properties of version {version}, known are 0 and 1")
    directory_id = fields.get("directory.id")
    if directory_id is not None and _UUID.fullmatch(directory_id) is None:
        raise CorruptRecordError(f"meta.properties: directory.id {directory_id!r} is no id")
    found = MetaProperties(
        version, _integer(fields, NODE_ID_KEYS[version]), fields.get("cluster.id"), directory_id
    )
    if (lacking := _lacking(found)) is not None:
        raise CorruptRecordError(f"meta.properties of version {version} without {lacking}")
    return found


def read_meta_properties(data: bytes) -> MetaProperties | None:
    """Decode a `meta.properties`; None if it is malformed."""
    try:
        return decode_meta_properties(data)
    except CorruptRecordError:
        return None


def encode_meta_properties(meta: MetaProperties, written: str = "") -> bytes:
    """Encode a `meta.properties`; `written` is the comment that says when, in any words.

    Raises `ValueError` for another version than 0 and 1, or where its version needs more.
    """
    if meta.version not in (0, 1):
        raise ValueError(f"meta.properties has versions 0 and 1, not {meta.version}")
    if (lacking := _lacking(meta)) is not None:
        raise ValueError(f"meta.properties of version {meta.version} needs {lacking}")
    values = {
        "cluster.id": meta.cluster_id,
        "directory.id": meta.directory_id,
        NODE_ID_KEYS[meta.version]: None if meta.node_id is None else str(meta.node_id),
        "version": str(meta.version),
    }
    known = {key: value for key, value in values.items() if value is not None}
    return encode_properties(known, ("", written))


def _lacking(meta: MetaProperties) -> str | None:
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
        raise CorruptRecordError(f"meta.properties: {key} {value!r} is no number")
    return int(value)
