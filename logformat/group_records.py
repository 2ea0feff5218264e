"""Records of consumer groups and of share groups, whose members are assigned partitions.

These are the kinds 3 to 8 and 16 of `__consumer_offsets` (the consumer protocol, KIP-848) and 9 to
15 (share groups, KIP-932), with the names and fields that Kafka 4.2 gives them, and 9 as Kafka 4.0
has it, for 4.2 does not know it (docs/format.md, 16). Every key and every value has one version;
values are flexible.
"""

from __future__ import annotations

from typing import TypeAlias

from klog.logformat.schema import Array, Field, Schema

Kinds: TypeAlias = dict[int, tuple[Schema, Schema]]
"""Of a key's version: the table of the key and the table of the value."""

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
"""Of the topics that a group reads, as brokers kept it before they kept a hash of it."""


def kind(
    number: int, name: str, key: tuple[Field, ...], value: tuple[Field, ...]
) -> tuple[int, tuple[Schema, Schema]]:
    """Give a kind of record with its tables: a key of this version and a flexible value."""
    keys = Schema(f"{name}Key", number, number, key)
    return number, (keys, Schema(f"{name}Value", 0, 0, value, flexible=0))


CONSUMER_GROUPS: Kinds = dict(
    (
        kind(
            3,
            "ConsumerGroupMetadata",
            GROUP,
            (Field("epoch", "int32"), Field("metadataHash", "int64", tag=0, default=0)),
        ),
        kind(4, "ConsumerGroupPartitionMetadata", GROUP, PARTITION_METADATA),
        kind(
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
        kind(6, "ConsumerGroupTargetAssignmentMetadata", GROUP, ASSIGNMENT_EPOCH),
        kind(7, "ConsumerGroupTargetAssignmentMember", MEMBER, _TARGET),
        kind(
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
        kind(
            16,
            "ConsumerGroupRegularExpression",
            (*GROUP, Field("regularExpression", "string")),
            (Field("topics", STRINGS), Field("version", "int64"), Field("timestamp", "int64")),
        ),
    )
)

SHARE_GROUPS: Kinds = dict(
    (
        kind(9, "ShareGroupPartitionMetadata", GROUP, PARTITION_METADATA),
        kind(
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
        kind(
            11,
            "ShareGroupMetadata",
            GROUP,
            (Field("epoch", "int32"), Field("metadataHash", "int64")),
        ),
        kind(12, "ShareGroupTargetAssignmentMetadata", GROUP, ASSIGNMENT_EPOCH),
        kind(13, "ShareGroupTargetAssignmentMember", MEMBER, _TARGET),
        kind(
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
        kind(
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
