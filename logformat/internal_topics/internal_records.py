"""Records of `__consumer_offsets` and `__transaction_state` (docs/format.md, 16).

The rule: key and value each start with an int16 version. In `__consumer_offsets` the key's version
is the kind of the record. A kind or a version newer than these schemas is reported and not decoded.
A null value is a tombstone. Names are those of Kafka's message files, spelt as in its JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.logformat.internal_topics.group_records import (
    CONSUMER_GROUPS,
    SHARE_GROUPS,
    RecordSchemas,
)
from klog.logformat.internal_topics.streams_group_records import STREAMS_GROUPS
from klog.logformat.protocol import message_schema, primitive_types
from klog.logformat.protocol.message_schema import Array, Field, Fields, Schema

OFFSET_COMMIT_KEY = Schema(
    "OffsetCommitKey",
    0,
    1,
    (Field("group", "string"), Field("topic", "string"), Field("partition", "int32")),
)
OFFSET_COMMIT_VALUE = Schema(
    "OffsetCommitValue",
    0,
    4,
    (
        Field("offset", "int64"),
        Field("leaderEpoch", "int32", since=3),
        Field("metadata", "string"),
        Field("commitTimestamp", "int64"),
        Field("expireTimestamp", "int64", since=1, until=2),
        Field("topicId", "uuid", since=4, tag=0, default="A" * 22),
    ),
    flexible=4,
)
GROUP_METADATA_KEY = Schema("GroupMetadataKey", 2, 2, (Field("group", "string"),))
GROUP_METADATA_VALUE = Schema(
    "GroupMetadataValue",
    0,
    4,
    (
        Field("protocolType", "string"),
        Field("generation", "int32"),
        Field("protocol", "string", nullable=True),
        Field("leader", "string", nullable=True),
        Field("currentStateTimestamp", "int64", since=2),
        Field(
            "members",
            Array(
                (
                    Field("memberId", "string"),
                    Field("groupInstanceId", "string", since=3, nullable=True),
                    Field("clientId", "string"),
                    Field("clientHost", "string"),
                    Field("rebalanceTimeout", "int32", since=1),
                    Field("sessionTimeout", "int32"),
                    Field("subscription", "bytes"),
                    Field("assignment", "bytes"),
                )
            ),
        ),
    ),
    flexible=4,
)
_PARTITIONS = Array((Field("topic", "string"), Field("partitions", Array("int32"))))
SUBSCRIPTION = Schema(
    "ConsumerProtocolSubscription",
    0,
    3,
    (
        Field("topics", Array("string")),
        Field("userData", "bytes", nullable=True),
        Field("ownedPartitions", _PARTITIONS, since=1),
        Field("generationId", "int32", since=2),
        Field("rackId", "string", since=3, nullable=True),
    ),
)
ASSIGNMENT = Schema(
    "ConsumerProtocolAssignment",
    0,
    3,
    (Field("assignedPartitions", _PARTITIONS), Field("userData", "bytes", nullable=True)),
)
TRANSACTION_LOG_KEY = Schema("TransactionLogKey", 0, 0, (Field("transactionalId", "string"),))
TRANSACTION_LOG_VALUE = Schema(
    "TransactionLogValue",
    0,
    1,
    (
        Field("producerId", "int64"),
        Field("previousProducerId", "int64", since=1, tag=0, default=-1),
        Field("nextProducerId", "int64", since=1, tag=1, default=-1),
        Field("producerEpoch", "int16"),
        Field("nextProducerEpoch", "int16", since=1, tag=3, default=-1),
        Field("transactionTimeoutMs", "int32"),
        Field("transactionStatus", "int8"),
        Field(
            "transactionPartitions",
            Array((Field("topic", "string"), Field("partitionIds", Array("int32")))),
            nullable=True,
        ),
        Field("transactionLastUpdateTimestampMs", "int64"),
        Field("transactionStartTimestampMs", "int64"),
        Field("clientTransactionVersion", "int16", since=1, tag=2, default=0),
    ),
    flexible=1,
)

TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""By the number in `transactionStatus`."""
EMPTY = TRANSACTION_STATES.index("Empty")

GROUP_SCHEMAS: RecordSchemas = {
    0: (OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    1: (OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    2: (GROUP_METADATA_KEY, GROUP_METADATA_VALUE),
    **CONSUMER_GROUPS,
    **SHARE_GROUPS,
    **STREAMS_GROUPS,
}
"""By the version of a key in `__consumer_offsets`: the schemas of key and value."""


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """One record of an internal topic.

    Attributes:
        name: Of its kind, empty for an unknown kind. Then only `key_version` is set.
        key_version: Of the key.
        key: The fields of the key.
        value_version: Of the value, None for a tombstone.
        value: The fields of the value; None for a tombstone or an unknown version.
    """

    name: str
    key_version: int
    key: Fields | None
    value_version: int | None
    value: Fields | None


def decode_group_record(
    key: bytes | memoryview, value: bytes | memoryview | None
) -> InternalRecord:
    """Decode a record of `__consumer_offsets`.

    Args:
        key: The record's key.
        value: Its value, None for a tombstone.

    Raises:
        CorruptRecordError: For a malformed record.
    """
    return _decode(GROUP_SCHEMAS.get(decode_version(key)), key, value)


def decode_transaction_record(
    key: bytes | memoryview, value: bytes | memoryview | None
) -> InternalRecord:
    """Decode a record of `__transaction_state`.

    Args:
        key: The record's key.
        value: Its value, None for a tombstone.

    Raises:
        CorruptRecordError: For a malformed record.
    """
    is_known = decode_version(key) == TRANSACTION_LOG_KEY.last
    schemas = (TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE) if is_known else None
    return _decode(schemas, key, value)


def decode_version(data: bytes | memoryview) -> int:
    """Return the version of a key or a value.

    Args:
        data: The key or value.

    Raises:
        CorruptRecordError: If it is cut short.
    """
    return primitive_types.Reader(data).integer("int16")


def decode_versioned(schema: Schema, data: bytes | memoryview) -> Fields | None:
    """Decode a key or a value that starts with its version; None for an unknown version.

    Args:
        schema: Of the key or value.
        data: The key or value. Bytes after the message are ignored, as Kafka ignores them.

    Raises:
        CorruptRecordError: For a malformed message.
    """
    reader = primitive_types.Reader(data)
    version = reader.integer("int16")
    return (
        message_schema.decode_message(schema, version, reader)
        if schema.has_version(version)
        else None
    )


def encode_versioned(schema: Schema, version: int, fields: Fields) -> bytes:
    """Encode a key or a value with its version.

    Args:
        schema: Of the key or value.
        version: Of the key or value.
        fields: As `decode_versioned` returns them.

    Raises:
        ValueError: For a version or a value that the schema does not allow.
    """
    return primitive_types.integer("int16", version) + message_schema.encode_message(
        schema, version, fields
    )


def encode_transaction_state(fields: Fields, transaction_version: int) -> bytes:
    """Encode a value of `__transaction_state`.

    Args:
        fields: As `decode_transaction_record` returns them.
        transaction_version: The cluster's `transaction.version`. At 0 the value has version 0,
            which has no previous and next producer id, so these are left out.

    Raises:
        ValueError: For an empty transaction with partitions, or a value that the schema does not
            allow.
    """
    if fields["transactionStatus"] == EMPTY and fields["transactionPartitions"]:
        raise ValueError("a transaction in state Empty must have no partitions")
    version = min(transaction_version, TRANSACTION_LOG_VALUE.last)
    names = {field.name for field in TRANSACTION_LOG_VALUE.fields if field.since <= version}
    in_version = {name: value for name, value in fields.items() if name in names}
    return encode_versioned(TRANSACTION_LOG_VALUE, version, in_version)


def _decode(
    schemas: tuple[Schema, Schema] | None, key: bytes | memoryview, value: bytes | memoryview | None
) -> InternalRecord:
    if schemas is None:
        return InternalRecord("", decode_version(key), None, None, None)
    key_schema, value_schema = schemas
    return InternalRecord(
        key_schema.name.removesuffix("Key"),
        decode_version(key),
        decode_versioned(key_schema, key),
        None if value is None else decode_version(value),
        None if value is None else decode_versioned(value_schema, value),
    )
