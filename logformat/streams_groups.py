"""Records of streams groups, whose members are assigned the tasks of a topology.

These are the kinds 17 to 23 of `__consumer_offsets` (KIP-1071), with the names and fields that
Kafka 4.2 gives them, and 18, which only builds between 4.0 and 4.1 wrote (docs/format.md, 16).
"""

from __future__ import annotations

from klog.logformat.group_records import (
    ASSIGNMENT_EPOCH,
    GROUP,
    INT32S,
    MEMBER,
    PARTITION_METADATA,
    STRINGS,
    Kinds,
    kind,
)
from klog.logformat.schema import Array, Field

_INT16S = Array("int16")
_SETTINGS = Array((Field("key", "string"), Field("value", "string")))
_SUBTOPOLOGY_ID = Field("subtopologyId", "string")
_TARGET_TASKS = Array((_SUBTOPOLOGY_ID, Field("partitions", INT32S)))
_CURRENT_TASKS = Array(
    (
        _SUBTOPOLOGY_ID,
        Field("partitions", INT32S),
        Field("assignmentEpochs", INT32S, nullable=True, tag=0, default=[]),
    )
)
_TOPICS = Array(
    (
        Field("name", "string"),
        Field("partitions", "int32"),
        Field("replicationFactor", "int16"),
        Field("topicConfigs", _SETTINGS),
    )
)

STREAMS_GROUPS: Kinds = dict(
    (
        kind(
            17,
            "StreamsGroupMetadata",
            GROUP,
            (
                Field("epoch", "int32"),
                Field("metadataHash", "int64"),
                Field("validatedTopologyEpoch", "int32", tag=0, default=-1),
                Field("lastAssignmentConfigs", _SETTINGS, nullable=True, tag=1, default=[]),
            ),
        ),
        kind(18, "StreamsGroupPartitionMetadata", GROUP, PARTITION_METADATA),
        kind(
            19,
            "StreamsGroupMemberMetadata",
            MEMBER,
            (
                Field("instanceId", "string", nullable=True),
                Field("rackId", "string", nullable=True),
                Field("clientId", "string"),
                Field("clientHost", "string"),
                Field("rebalanceTimeoutMs", "int32"),
                Field("topologyEpoch", "int32"),
                Field("processId", "string"),
                Field(
                    "userEndpoint",
                    (Field("host", "string"), Field("port", "uint16")),
                    nullable=True,
                ),
                Field("clientTags", _SETTINGS),
            ),
        ),
        kind(20, "StreamsGroupTargetAssignmentMetadata", GROUP, ASSIGNMENT_EPOCH),
        kind(
            21,
            "StreamsGroupTargetAssignmentMember",
            MEMBER,
            (
                Field("activeTasks", _TARGET_TASKS),
                Field("standbyTasks", _TARGET_TASKS),
                Field("warmupTasks", _TARGET_TASKS),
            ),
        ),
        kind(
            22,
            "StreamsGroupCurrentMemberAssignment",
            MEMBER,
            (
                Field("memberEpoch", "int32"),
                Field("previousMemberEpoch", "int32"),
                Field("state", "int8"),
                Field("activeTasks", _CURRENT_TASKS),
                Field("standbyTasks", _CURRENT_TASKS),
                Field("warmupTasks", _CURRENT_TASKS),
                Field("activeTasksPendingRevocation", _CURRENT_TASKS),
                Field("standbyTasksPendingRevocation", _CURRENT_TASKS),
                Field("warmupTasksPendingRevocation", _CURRENT_TASKS),
            ),
        ),
        kind(
            23,
            "StreamsGroupTopology",
            GROUP,
            (
                Field("epoch", "int32"),
                Field(
                    "subtopologies",
                    Array(
                        (
                            _SUBTOPOLOGY_ID,
                            Field("sourceTopics", STRINGS),
                            Field("sourceTopicRegex", STRINGS),
                            Field("stateChangelogTopics", _TOPICS),
                            Field("repartitionSinkTopics", STRINGS),
                            Field("repartitionSourceTopics", _TOPICS),
                            Field(
                                "copartitionGroups",
                                Array(
                                    (
                                        Field("sourceTopics", _INT16S),
                                        Field("sourceTopicRegex", _INT16S),
                                        Field("repartitionSourceTopics", _INT16S),
                                    )
                                ),
                            ),
                        )
                    ),
                ),
            ),
        ),
    )
)
