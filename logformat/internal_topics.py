"""Records of `__consumer_offsets` and `__transaction_state` (docs/format.md, 16).

Key and value each begin with an int16 version. In `__consumer_offsets` the key's version is the
kind of the record. A kind or a version that is newer than these tables is told and not decoded; a
null value is a tombstone. Names are those of Kafka's message files, spelt as in its JSON.
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.logformat import schema, wire
from klog.logformat.group_records import CONSUMER_GROUPS, SHARE_GROUPS, Kinds
from klog.logformat.schema import Array, Field, Fields, Schema
from klog.logformat.streams_groups import STREAMS_GROUPS

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

GROUP_SCHEMAS: Kinds = {
    0: (OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    1: (OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    2: (GROUP_METADATA_KEY, GROUP_METADATA_VALUE),
    **CONSUMER_GROUPS,
    **SHARE_GROUPS,
    **STREAMS_GROUPS,
}
"""By the version of a key in `__consumer_offsets`: the tables of key and value."""


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """One record of an internal topic.

    `name` is empty for a kind that is not known; nothing but `key_version` is read of it, and `key`
    is None. `value_version` is None for a tombstone; a value of a version that these tables do not
    have is None with its `value_version` given.
    """

    name: str
    key_version: int
    key: Fields | None
    value_version: int | None
    value: Fields | None


def read_group_record(key: bytes | memoryview, value: bytes | memoryview | None) -> InternalRecord:
    """Decode a record of `__consumer_offsets`; raises `CorruptRecordError`."""
    return _read(GROUP_SCHEMAS.get(version_of(key)), key, value)


def read_transaction_record(
    key: bytes | memoryview, value: bytes | memoryview | None
) -> InternalRecord:
    """Decode a record of `__transaction_state`; raises `CorruptRecordError`."""
    known = version_of(key) == TRANSACTION_LOG_KEY.last
    schemas = (TRANSACTION_LOG_KEY, TRANSACTION_LOG_VALUE) if known else None
    return _read(schemas, key, value)


def version_of(data: bytes | memoryview) -> int:
    """Give the version that a key or a value begins with."""
    return wire.Reader(data).integer("int16")


def read_versioned(table: Schema, data: bytes | memoryview) -> Fields | None:
    """Decode a key or a value that begins with its version; None for a version not in the table.

    Bytes behind the message are ignored, as Kafka ignores them. Raises `CorruptRecordError`.
    """
    reader = wire.Reader(data)
    version = reader.integer("int16")
    return schema.read(table, version, reader) if table.has(version) else None


def write_versioned(table: Schema, version: int, fields: Fields) -> bytes:
    """Encode a key or a value with its version in front; raises `ValueError` as the table says."""
    return wire.integer("int16", version) + schema.write(table, version, fields)


def write_transaction_state(fields: Fields, transaction_version: int) -> bytes:
    """Encode a value of `__transaction_state` for a cluster at this `transaction.version`.

    At 0 it is of version 0, which has no room for the producer ids before and after, so those are
    left out; from 1 on it is of version 1. Raises `ValueError` for an empty transaction with
    partitions.
    """
    if fields["transactionStatus"] == EMPTY and fields["transactionPartitions"]:
        raise ValueError("a transaction that is Empty has no partitions")
    version = min(transaction_version, TRANSACTION_LOG_VALUE.last)
    names = {one.name for one in TRANSACTION_LOG_VALUE.fields if one.since <= version}
    kept = {name: value for name, value in fields.items() if name in names}
    return write_versioned(TRANSACTION_LOG_VALUE, version, kept)


def _read(
    schemas: tuple[Schema, Schema] | None, key: bytes | memoryview, value: bytes | memoryview | None
) -> InternalRecord:
    if schemas is None:
        return InternalRecord("", version_of(key), None, None, None)
    of_key, of_value = schemas
    return InternalRecord(
        of_key.name.removesuffix("Key"),
        version_of(key),
        read_versioned(of_key, key),
        None if value is None else version_of(value),
        None if value is None else read_versioned(of_value, value),
    )
