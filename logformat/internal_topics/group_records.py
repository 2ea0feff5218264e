"""Records of consumer groups and of share groups, whose members are assigned partitions.

These are the kinds 3 to 8 and 16 of `__consumer_offsets` (the consumer protocol, KIP-848) and 9 to
15 (share groups, KIP-932), with the names and fields of Kafka 4.2; kind 9 is that of Kafka 4.0, as
4.2 does not have it (docs/format.md, 16). Every key and every value has one version; values are
flexible.
"""

from __future__ import annotations

from typing import TypeAlias

from klog.logformat.protocol.message_schema import Array, Field, Schema

RecordSchemas: TypeAlias = dict[int, tuple[Schema, Schema]]
"""By the version of a key: the schemas of key and value."""

GROUP = (Field("groupId", "string"),)
MEMBER = (*GROUP, Field("memberId", "string"))
STRINGS = Array("string")
INT32S = Array("int32")
ASSIGNMENT_EPOCH = (Field("assignmentEpoch", "int32"),)
_PARTITIONS = Array((Field("topicId", "uuid"), Field("partitions", INT32S)))
_TOPIC = (Field("topicId", "uuid"), Field("topicName", "string"))
_TOPIC_PARTITIONS = Array((*_TOPIC, Field("partitions", INT32S)))
_TARGET = (Field("topicPartitions", _PARTITIONS),)
_RACKS = Array((Field("partition", "int32"), Field("racks", STRINGS)))
PARTITION_METADATA = (
    Field(
        "topics",
        Array((*_TOPIC, Field("numPartitions", "int32"), Field("partitionMetadata", _RACKS))),
    ),
)
"""The topics that a group reads; newer brokers store a hash of it."""


def record_schemas(
    number: int, name: str, key: tuple[Field, ...], value: tuple[Field, ...]
) -> tuple[int, tuple[Schema, Schema]]:
    """Return a kind of record with its schemas: a key of one version and a flexible value.

    Args:
        number: The version of its key.
        name: Kafka's name of the kind.
        key: The fields of the key.
        value: The fields of the value.
    """
    key_schema = Schema(f"{name}Key", number, number, key)
    return number, (key_schema, Schema(f"{name}Value", 0, 0, value, flexible=0))


CONSUMER_GROUPS: RecordSchemas = dict(
    (
        record_schemas(
            3,
            "ConsumerGroupMetadata",
            GROUP,
            (Field("epoch", "int32"), Field("metadataHash", "int64", tag=0, default=0)),
        ),
        record_schemas(4, "ConsumerGroupPartitionMetadata", GROUP, PARTITION_METADATA),
        record_schemas(
            5,
            "ConsumerGroupMemberMetadata",
            MEMBER,
            (
                Field("instanceId", "string", nullable=True),
                Field("rackId", "string", nullable=True),
                Field("clientId", "string"),
                Field("clientHost", "string"),
                Field("subscribedTopicNames", STRINGS),
                Field("subscribedTopicRegex", "string", nullable=True),
                Field("rebalanceTimeoutMs", "int32"),
                Field("serverAssignor", "string", nullable=True),
                Field(
                    "classicMemberMetadata",
                    (
                        Field("sessionTimeoutMs", "int32"),
                        Field(
                            "supportedProtocols",
                            Array((Field("name", "string"), Field("metadata", "bytes"))),
                        ),
                    ),
                    nullable=True,
                    tag=0,
                    default={"sessionTimeoutMs": 0, "supportedProtocols": []},
                ),
            ),
        ),
        record_schemas(6, "ConsumerGroupTargetAssignmentMetadata", GROUP, ASSIGNMENT_EPOCH),
        record_schemas(7, "ConsumerGroupTargetAssignmentMember", MEMBER, _TARGET),
        record_schemas(
            8,
            "ConsumerGroupCurrentMemberAssignment",
            MEMBER,
            (
                Field("memberEpoch", "int32"),
                Field("previousMemberEpoch", "int32"),
                Field("state", "int8"),
                Field("assignedPartitions", _PARTITIONS),
                Field("partitionsPendingRevocation", _PARTITIONS),
            ),
        ),
        record_schemas(
            16,
            "ConsumerGroupRegularExpression",
            (*GROUP, Field("regularExpression", "string")),
            (Field("topics", STRINGS), Field("version", "int64"), Field("timestamp", "int64")),
        ),
    )
)

SHARE_GROUPS: RecordSchemas = dict(
    (
        record_schemas(9, "ShareGroupPartitionMetadata", GROUP, PARTITION_METADATA),
        record_schemas(
            10,
            "ShareGroupMemberMetadata",
            MEMBER,
            (
                Field("rackId", "string", nullable=True),
                Field("clientId", "string"),
                Field("clientHost", "string"),
                Field("subscribedTopicNames", STRINGS),
            ),
        ),
        record_schemas(
            11,
            "ShareGroupMetadata",
            GROUP,
            (Field("epoch", "int32"), Field("metadataHash", "int64")),
        ),
        record_schemas(12, "ShareGroupTargetAssignmentMetadata", GROUP, ASSIGNMENT_EPOCH),
        record_schemas(13, "ShareGroupTargetAssignmentMember", MEMBER, _TARGET),
        record_schemas(
            14,
            "ShareGroupCurrentMemberAssignment",
            MEMBER,
            (
                Field("memberEpoch", "int32"),
                Field("previousMemberEpoch", "int32"),
                Field("state", "int8"),
                Field("assignedPartitions", _PARTITIONS),
            ),
        ),
        record_schemas(
            15,
            "ShareGroupStatePartitionMetadata",
            GROUP,
            (
                Field("initializingTopics", _TOPIC_PARTITIONS),
                Field("initializedTopics", _TOPIC_PARTITIONS),
                Field("deletingTopics", Array(_TOPIC)),
            ),
        ),
    )
)
