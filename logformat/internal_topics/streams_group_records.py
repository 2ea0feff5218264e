"""Records of streams groups, whose members are assigned the tasks of a topology.

These are the kinds 17 to 23 of `__consumer_offsets` (KIP-1071), with the names and fields of Kafka
4.2. Only builds between 4.0 and 4.1 wrote kind 18 (docs/format.md, 16).
"""

from __future__ import annotations

from klog.logformat.internal_topics.group_records import (
    ASSIGNMENT_EPOCH,
    GROUP,
    INT32S,
    MEMBER,
    PARTITION_METADATA,
    STRINGS,
    RecordSchemas,
    record_schemas,
)
from klog.logformat.protocol.message_schema import Array, Field

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

STREAMS_GROUPS: RecordSchemas = dict(
    (
        record_schemas(
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
        record_schemas(18, "StreamsGroupPartitionMetadata", GROUP, PARTITION_METADATA),
        record_schemas(
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
        record_schemas(20, "StreamsGroupTargetAssignmentMetadata", GROUP, ASSIGNMENT_EPOCH),
        record_schemas(
            21,
            "StreamsGroupTargetAssignmentMember",
            MEMBER,
            (
                Field("activeTasks", _TARGET_TASKS),
                Field("standbyTasks", _TARGET_TASKS),
                Field("warmupTasks", _TARGET_TASKS),
            ),
        ),
        record_schemas(
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
        record_schemas(
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
