"""Control records and coordinator records: sections 9 and 13.8."""

from __future__ import annotations

from typing import Any

from klog.errors import CorruptRecordError
from klog.logformat.internal_topics import internal_records as topics
from klog.logformat.producers import control_records
from klog.logformat.protocol.message_schema import Fields, Schema
from tests.conformance import protocol_runs as runs
from tests.conformance.case import Case, NotApplicable, Refused


def _both(id_: str, table: Schema, hex_: str, fields: Fields, label: str = "") -> Case:
    data = bytes.fromhex(hex_)
    return Case(id_, runs.both_ways, (table, data), (fields, data), label)


_OFFSET_COMMIT = (
    "13.8 OffsetCommitValue offset 42, leader epoch 5, metadata m, ts 1000 (expire 2000 in v1)"
)
_OFFSET: Fields = {"offset": 42, "metadata": "m", "commitTimestamp": 1000}
_GROUP = (
    "13.8 GroupMetadataValue: consumer, gen 1, range, leader m1, ts 1000; member m1 (client c, "
    "host /h, rebalance 300000, session 45000, subscription 0102, assignment 03)"
)
_MEMBERS: list[dict[str, Any]] = [
    {
        "memberId": "m1",
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 300000,
        "sessionTimeout": 45000,
        "subscription": b"\x01\x02",
        "assignment": b"\x03",
    }
]
_GROUP_FIELDS: Fields = {
    "protocolType": "consumer",
    "generation": 1,
    "protocol": "range",
    "leader": "m1",
    "currentStateTimestamp": 1000,
    "members": _MEMBERS,
}
_EMPTY_GROUP: Fields = {
    **_GROUP_FIELDS,
    "generation": 4,
    "protocol": None,
    "leader": None,
    "members": [],
}
_ONGOING: Fields = {
    "producerId": 4000,
    "producerEpoch": 1,
    "transactionTimeoutMs": 60000,
    "transactionStatus": 1,
    "transactionPartitions": [{"topic": "t", "partitionIds": [0, 2]}],
    "transactionLastUpdateTimestampMs": 1000,
    "transactionStartTimestampMs": 900,
}
_EMPTY_STATE: Fields = {
    **_ONGOING,
    "producerEpoch": 0,
    "transactionStatus": 0,
    "transactionPartitions": None,
    "transactionStartTimestampMs": -1,
}
_STATE_TABLE = topics.TRANSACTION_LOG_VALUE
_LEADER_CHANGE = "000000000001030000000100000000020002000000010000"

CASES = [
    Case("9 testParseUnknownType", runs.control_name, (bytes.fromhex("00000151"),), "UNKNOWN"),
    Case(
        "9 testParseUnknownVersion",
        runs.control_name,
        (bytes.fromhex("0005000000000000"),),
        "ABORT",
    ),
    *(
        Case("9 testRoundTrip", runs.control_key_again, (kind,), kind, name)
        for kind, name in enumerate(control_records.NAMES)
    ),
    Case(
        "9 testCurrentVersions",
        control_records.encode_control_value,
        (
            control_records.LEADER_CHANGE,
            {
                "version": 0,
                "leaderId": 1,
                "voters": [{"voterId": 1}, {"voterId": 2}],
                "grantingVoters": [{"voterId": 1}],
            },
        ),
        bytes.fromhex(_LEADER_CHANGE),
    ),
    # A control record is read by the type in its key; only markers are read as what they must be.
    Case(
        "9 testInvalidControlRecordType",
        control_records.decode_end_transaction,
        (control_records.encode_control_key(control_records.KRAFT_VOTERS), bytes(6)),
        Refused(ValueError, "is not a transaction marker"),
    ),
    *(
        Case(
            "9 EndTransactionMarker testUnknownControlTypeNotAllowed / "
            "testCannotDeserializeUnknownControlType",
            run,
            args,
            Refused(ValueError, words),
            label,
        )
        for label, run, args, words in (
            (
                "write",
                control_records.encode_control_key,
                (337,),
                "unknown type 337 of a control record",
            ),
            (
                "read",
                control_records.decode_end_transaction,
                (bytes.fromhex("00000151"), bytes(6)),
                "type 337 is not a transaction marker",
            ),
        )
    ),
    Case(
        "9 testIllegalNegativeVersion",
        control_records.decode_control_record,
        (control_records.encode_control_key(control_records.COMMIT), bytes.fromhex("ffff0000004f")),
        Refused(CorruptRecordError, "version -1"),
        "value",
    ),
    Case(
        "9 testIllegalNegativeVersion",
        control_records.decode_control_type,
        (bytes.fromhex("ffff0001"),),
        Refused(CorruptRecordError, "version -1"),
        "key",
    ),
    Case(
        "9 testNotEnoughBytes",
        control_records.decode_control_record,
        (control_records.encode_control_key(control_records.COMMIT), b""),
        Refused(CorruptRecordError, "a value of 0 bytes"),
    ),
    *(
        Case("9 testSerde", runs.marker_again, (kind, 79), (kind, 79), control_records.NAMES[kind])
        for kind in (control_records.ABORT, control_records.COMMIT)
    ),
    Case(
        "9 testDeserializeNewerVersion",
        control_records.decode_end_transaction,
        (
            control_records.encode_control_key(control_records.COMMIT),
            bytes.fromhex("00050000004f0000"),
        ),
        (control_records.COMMIT, 79),
    ),
    _both(
        "13.8 OffsetCommitKey v1 g1/t/2",
        topics.OFFSET_COMMIT_KEY,
        "00010002673100017400000002",
        {"group": "g1", "topic": "t", "partition": 2},
    ),
    *(
        _both(_OFFSET_COMMIT, topics.OFFSET_COMMIT_VALUE, hex_, fields, label)
        for label, hex_, fields in (
            ("v0", "0000000000000000002a00016d00000000000003e8", _OFFSET),
            (
                "v1",
                "0001000000000000002a00016d00000000000003e800000000000007d0",
                {**_OFFSET, "expireTimestamp": 2000},
            ),
            ("v2", "0002000000000000002a00016d00000000000003e8", _OFFSET),
            (
                "v3",
                "0003000000000000002a0000000500016d00000000000003e8",
                {**_OFFSET, "leaderEpoch": 5},
            ),
            (
                "v4",
                "0004000000000000002a00000005026d00000000000003e800",
                {**_OFFSET, "leaderEpoch": 5},
            ),
        )
    ),
    _both("13.8 GroupMetadataKey g1", topics.GROUP_METADATA_KEY, "000200026731", {"group": "g1"}),
    *(
        _both(_GROUP, topics.GROUP_METADATA_VALUE, hex_, _GROUP_FIELDS, label)
        for label, hex_ in (
            (
                "v3",
                "00030008636f6e73756d657200000001000572616e676500026d3100000000000003e8000000010002"
                "6d31ffff00016300022f68000493e00000afc80000000201020000000103",
            ),
            (
                "v4",
                "000409636f6e73756d6572000000010672616e6765036d3100000000000003e802036d31000263032f"
                "68000493e00000afc803010202030000",
            ),
        )
    ),
    _both(
        "13.8 empty group v3, gen 4",
        topics.GROUP_METADATA_VALUE,
        "00030008636f6e73756d657200000004ffffffff00000000000003e800000000",
        _EMPTY_GROUP,
    ),
    _both(
        "13.8 TransactionLogKey tx1",
        topics.TRANSACTION_LOG_KEY,
        "00000003747831",
        {"transactionalId": "tx1"},
    ),
    _both(
        "13.8 TransactionLogValue v0 Empty pid 4000 epoch 0 timeout 60000 lastUpdate 1000 start "
        "\u22121",
        _STATE_TABLE,
        "00000000000000000fa000000000ea6000ffffffff00000000000003e8ffffffffffffffff",
        _EMPTY_STATE,
    ),
    _both(
        "13.8 v0 Ongoing epoch 1, t[0,2], 1000, 900",
        _STATE_TABLE,
        "00000000000000000fa000010000ea600100000001000174000000020000000000000002"
        "00000000000003e80000000000000384",
        _ONGOING,
    ),
    _both(
        "13.8 v1 Ongoing",
        _STATE_TABLE,
        "00010000000000000fa000010000ea60010202740300000000000000020000000000000003e8"
        "000000000000038400",
        _ONGOING,
    ),
    _both(
        "13.8 v1 Ongoing, prev 3999, next 4001, TV2",
        _STATE_TABLE,
        "00010000000000000fa000010000ea60010202740300000000000000020000000000000003e8"
        "00000000000003840300080000000000000f9f01080000000000000fa102020002",
        {
            **_ONGOING,
            "previousProducerId": 3999,
            "nextProducerId": 4001,
            "clientTransactionVersion": 2,
        },
    ),
]

_LITTLE_ENDIAN = (
    "Only the inside of an lz4 frame is little-endian, and there klog reads with Python's struct; "
    "it has no function of its own for such numbers."
)

NOT_APPLICABLE = [
    NotApplicable("1 testReadUnsignedIntLEFromArray", _LITTLE_ENDIAN),
    NotApplicable(
        "1 testWriteUnsignedIntLEToArray / testWriteUnsignedIntLEToOutputStream", _LITTLE_ENDIAN
    ),
    NotApplicable(
        "1 testDouble", "No record, control record or internal topic that klog reads has a double."
    ),
]
