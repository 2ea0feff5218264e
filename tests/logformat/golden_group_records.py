"""Records of the newer groups: bytes that Kafka's own classes wrote, and what they say.

Those of `ROWS` are by Kafka 4.2.0. Where a field may be null or has a default that is not written,
one row has it and one has not.
"""

from __future__ import annotations

from typing import NamedTuple

from klog.logformat.protocol.message_schema import Fields


class Golden(NamedTuple):
    """A record of `__consumer_offsets`: its key and value in hex, and both as fields."""

    kind: int
    key_hex: str
    value_hex: str
    key: Fields
    value: Fields


_GROUP = {"groupId": "g"}
_MEMBER = {"groupId": "g", "memberId": "m1"}
_PARTITIONS = [
    {"topicId": "ASNFZ4mrze_-3LqYdlQyEA", "partitions": [0, 2]},
    {"topicId": "_-3LqYdlQyEBI0VniavN7w", "partitions": []},
]
_SETTINGS = [{"key": "k", "value": "v"}]

ROWS = [
    Golden(
        3,
        "0003000167",
        "00000000000700",
        _GROUP,
        {"epoch": 7},
    ),
    Golden(
        3,
        "0003000167",
        "000000000007010008fffffffffffffffe",
        _GROUP,
        {"epoch": 7, "metadataHash": -2},
    ),
    Golden(
        4,
        "0004000167",
        "0000020123456789abcdeffedcba987654321002740000000202000000010302610262000000",
        _GROUP,
        {
            "topics": [
                {
                    "topicId": "ASNFZ4mrze_-3LqYdlQyEA",
                    "topicName": "t",
                    "numPartitions": 2,
                    "partitionMetadata": [{"partition": 1, "racks": ["a", "b"]}],
                }
            ]
        },
    ),
    Golden(
        5,
        "000500016700026d31",
        "000000000263032f680104742e2affffffff0001000100",
        _MEMBER,
        {
            "instanceId": None,
            "rackId": None,
            "clientId": "c",
            "clientHost": "/h",
            "subscribedTopicNames": [],
            "subscribedTopicRegex": "t.*",
            "rebalanceTimeoutMs": -1,
            "serverAssignor": None,
            "classicMemberMetadata": None,
        },
    ),
    Golden(
        5,
        "000500016700026d31",
        "0000026902720263032f68030274027500000493e00672616e6765010011010000afc8020672616e"
        "67650300ff0000",
        _MEMBER,
        {
            "instanceId": "i",
            "rackId": "r",
            "clientId": "c",
            "clientHost": "/h",
            "subscribedTopicNames": ["t", "u"],
            "subscribedTopicRegex": None,
            "rebalanceTimeoutMs": 300000,
            "serverAssignor": "range",
            "classicMemberMetadata": {
                "sessionTimeoutMs": 45000,
                "supportedProtocols": [{"name": "range", "metadata": b"\x00\xff"}],
            },
        },
    ),
    Golden(
        6,
        "0006000167",
        "00000000000700",
        _GROUP,
        {"assignmentEpoch": 7},
    ),
    Golden(
        7,
        "000700016700026d31",
        "0000030123456789abcdeffedcba987654321003000000000000000200ffedcba987654321012345"
        "6789abcdef010000",
        _MEMBER,
        {"topicPartitions": _PARTITIONS},
    ),
    Golden(
        8,
        "000800016700026d31",
        "000000000007ffffffff01030123456789abcdeffedcba987654321003000000000000000200ffed"
        "cba9876543210123456789abcdef0100020123456789abcdeffedcba987654321003000000000000"
        "00020000",
        _MEMBER,
        {
            "memberEpoch": 7,
            "previousMemberEpoch": -1,
            "state": 1,
            "assignedPartitions": _PARTITIONS,
            "partitionsPendingRevocation": [
                {"topicId": "ASNFZ4mrze_-3LqYdlQyEA", "partitions": [0, 2]}
            ],
        },
    ),
    Golden(
        16,
        "00100001670003742e2a",
        "0000020474c3a9000000000000000900000000000003e800",
        {"groupId": "g", "regularExpression": "t.*"},
        {"topics": ["té"], "version": 9, "timestamp": 1000},
    ),
    Golden(
        10,
        "000a00016700026d31",
        "0000000263032f6802027400",
        _MEMBER,
        {"rackId": None, "clientId": "c", "clientHost": "/h", "subscribedTopicNames": ["t"]},
    ),
    Golden(
        11,
        "000b000167",
        "000000000007000000000000000000",
        _GROUP,
        {"epoch": 7, "metadataHash": 0},
    ),
    Golden(
        12,
        "000c000167",
        "00000000000700",
        _GROUP,
        {"assignmentEpoch": 7},
    ),
    Golden(
        13,
        "000d00016700026d31",
        "0000030123456789abcdeffedcba987654321003000000000000000200ffedcba987654321012345"
        "6789abcdef010000",
        _MEMBER,
        {"topicPartitions": _PARTITIONS},
    ),
    Golden(
        14,
        "000e00016700026d31",
        "00000000000700000006ff030123456789abcdeffedcba987654321003000000000000000200ffed"
        "cba9876543210123456789abcdef010000",
        _MEMBER,
        {
            "memberEpoch": 7,
            "previousMemberEpoch": 6,
            "state": -1,
            "assignedPartitions": _PARTITIONS,
        },
    ),
    Golden(
        15,
        "000f000167",
        "0000020123456789abcdeffedcba987654321002740200000000000102ffedcba987654321012345"
        "6789abcdef02750000",
        _GROUP,
        {
            "initializingTopics": [
                {"topicId": "ASNFZ4mrze_-3LqYdlQyEA", "topicName": "t", "partitions": [0]}
            ],
            "initializedTopics": [],
            "deletingTopics": [{"topicId": "_-3LqYdlQyEBI0VniavN7w", "topicName": "u"}],
        },
    ),
    Golden(
        17,
        "0011000167",
        "000000000007000000000000000500",
        _GROUP,
        {"epoch": 7, "metadataHash": 5},
    ),
    Golden(
        17,
        "0011000167",
        "000000000007000000000000000502000400000003010602026b027600",
        _GROUP,
        {
            "epoch": 7,
            "metadataHash": 5,
            "validatedTopologyEpoch": 3,
            "lastAssignmentConfigs": _SETTINGS,
        },
    ),
    Golden(
        17,
        "0011000167",
        "000000000007000000000000000501010100",
        _GROUP,
        {"epoch": 7, "metadataHash": 5, "lastAssignmentConfigs": None},
    ),
    Golden(
        19,
        "001300016700026d31",
        "00000002720263032f68000493e0000000020270ff0100",
        _MEMBER,
        {
            "instanceId": None,
            "rackId": "r",
            "clientId": "c",
            "clientHost": "/h",
            "rebalanceTimeoutMs": 300000,
            "topologyEpoch": 2,
            "processId": "p",
            "userEndpoint": None,
            "clientTags": [],
        },
    ),
    Golden(
        19,
        "001300016700026d31",
        "00000269000263032f68000493e0000000020270010268ffff0002026b02760000",
        _MEMBER,
        {
            "instanceId": "i",
            "rackId": None,
            "clientId": "c",
            "clientHost": "/h",
            "rebalanceTimeoutMs": 300000,
            "topologyEpoch": 2,
            "processId": "p",
            "userEndpoint": {"host": "h", "port": 65535},
            "clientTags": _SETTINGS,
        },
    ),
    Golden(
        20,
        "0014000167",
        "00000000000700",
        _GROUP,
        {"assignmentEpoch": 7},
    ),
    Golden(
        21,
        "001500016700026d31",
        "000002023003000000000000000100010202300300000000000000010000",
        _MEMBER,
        {
            "activeTasks": [{"subtopologyId": "0", "partitions": [0, 1]}],
            "standbyTasks": [],
            "warmupTasks": [{"subtopologyId": "0", "partitions": [0, 1]}],
        },
    ),
    Golden(
        22,
        "001600016700026d31",
        "00000000000700000006020202300300000000000000010100090300000006000000070202300300"
        "00000000000001000102023003000000000000000101000903000000050000000501020230030000"
        "0000000000010000",
        _MEMBER,
        {
            "memberEpoch": 7,
            "previousMemberEpoch": 6,
            "state": 2,
            "activeTasks": [
                {"subtopologyId": "0", "partitions": [0, 1], "assignmentEpochs": [6, 7]}
            ],
            "standbyTasks": [{"subtopologyId": "0", "partitions": [0, 1]}],
            "warmupTasks": [],
            "activeTasksPendingRevocation": [
                {"subtopologyId": "0", "partitions": [0, 1], "assignmentEpochs": [5, 5]}
            ],
            "standbyTasksPendingRevocation": [],
            "warmupTasksPendingRevocation": [{"subtopologyId": "0", "partitions": [0, 1]}],
        },
    ),
    Golden(
        23,
        "0017000167",
        "0000000000020202300203696e0204692e2a02046c6f6700000000000102026b027600000203746f"
        "02036f6600000004ffff02026b0276000002020000030000000101000000",
        _GROUP,
        {
            "epoch": 2,
            "subtopologies": [
                {
                    "subtopologyId": "0",
                    "sourceTopics": ["in"],
                    "sourceTopicRegex": ["i.*"],
                    "stateChangelogTopics": [
                        {
                            "name": "log",
                            "partitions": 0,
                            "replicationFactor": 1,
                            "topicConfigs": _SETTINGS,
                        }
                    ],
                    "repartitionSinkTopics": ["to"],
                    "repartitionSourceTopics": [
                        {
                            "name": "of",
                            "partitions": 4,
                            "replicationFactor": -1,
                            "topicConfigs": _SETTINGS,
                        }
                    ],
                    "copartitionGroups": [
                        {
                            "sourceTopics": [0],
                            "sourceTopicRegex": [0, 1],
                            "repartitionSourceTopics": [],
                        }
                    ],
                }
            ],
        },
    ),
]

GIVEN_UP = {9, 18}
"""Kinds that Kafka 4.2 does not know."""
_TOPICS = (
    "0000030123456789abcdeffedcba9876543210027400000002030000000003026102620000000001010000"
    "ffedcba9876543210123456789abcdef027500000001010000"
)
_METADATA = {
    "topics": [
        {
            "topicId": "ASNFZ4mrze_-3LqYdlQyEA",
            "topicName": "t",
            "numPartitions": 2,
            "partitionMetadata": [
                {"partition": 0, "racks": ["a", "b"]},
                {"partition": 1, "racks": []},
            ],
        },
        {
            "topicId": "_-3LqYdlQyEBI0VniavN7w",
            "topicName": "u",
            "numPartitions": 1,
            "partitionMetadata": [],
        },
    ]
}
EARLIER_ROWS = [
    Golden(9, "0009000167", "00000100", _GROUP, {"topics": []}),
    Golden(9, "0009000167", _TOPICS, _GROUP, _METADATA),
    Golden(18, "0012000167", _TOPICS, _GROUP, _METADATA),
]
"""Of 9 Kafka 4.0.0's own classes wrote them; 18 is as 9, and no release of Kafka had it."""
