"""Control records: transaction markers, and what controllers write into their own log.

The rule: a key is int16 version and int16 type. A version above 0 is read as 0 and the bytes after
it are ignored; a negative one is refused; an unknown type keeps its number. The value of ABORT and
COMMIT is int16 version and int32 coordinator epoch, by the same rule. The other types have a
message of Kafka's protocol whose first field is its version. (docs/format.md, 6; Kafka's
`ControlRecordType`, `EndTransactionMarker`, `ControlRecordUtils`.)
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.errors import CorruptRecordError
from klog.logformat.protocol import message_schema, primitive_types
from klog.logformat.protocol.message_schema import Array, Field, Fields, Schema

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(
    7
)
NAMES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
UNKNOWN = "UNKNOWN"
MIN_KEY_BYTES = 4
MIN_END_TRANSACTION_BYTES = 6

_VOTERS = Array((Field("voterId", "int32"), Field("voterDirectoryId", "uuid", since=1)))
_END_TRANSACTION = Schema("EndTxnMarker", 0, 0, (Field("coordinatorEpoch", "int32"),))
_KRAFT = {
    LEADER_CHANGE: Schema(
        "LeaderChange",
        0,
        1,
        (
            Field("version", "int16"),
            Field("leaderId", "int32"),
            Field("voters", _VOTERS),
            Field("grantingVoters", _VOTERS),
        ),
        flexible=0,
    ),
    SNAPSHOT_HEADER: Schema(
        "SnapshotHeader",
        0,
        0,
        (Field("version", "int16"), Field("lastContainedLogTimestamp", "int64")),
        flexible=0,
    ),
    SNAPSHOT_FOOTER: Schema("SnapshotFooter", 0, 0, (Field("version", "int16"),), flexible=0),
    KRAFT_VERSION: Schema(
        "KRaftVersion",
        0,
        0,
        (Field("version", "int16"), Field("kRaftVersion", "int16")),
        flexible=0,
    ),
    KRAFT_VOTERS: Schema(
        "KRaftVoters",
        0,
        0,
        (
            Field("version", "int16"),
            Field(
                "voters",
                Array(
                    (
                        Field("voterId", "int32"),
                        Field("voterDirectoryId", "uuid"),
                        Field(
                            "endpoints",
                            Array(
                                (
                                    Field("name", "string"),
                                    Field("host", "string"),
                                    Field("port", "uint16"),
                                )
                            ),
                        ),
                        Field(
                            "kRaftVersionFeature",
                            (
                                Field("minSupportedVersion", "int16"),
                                Field("maxSupportedVersion", "int16"),
                            ),
                        ),
                    )
                ),
            ),
        ),
        flexible=0,
    ),
}


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """One control record.

    Attributes:
        type: Its type by number.
        fields: The fields of its value by Kafka's names; None for an unknown type.
    """

    type: int
    fields: Fields | None

    @property
    def name(self) -> str:
        """Return the name of the type, `UNKNOWN` for an unknown one."""
        return control_type_name(self.type)


def control_type_name(kind: int) -> str:
    """Return the name of a type, `UNKNOWN` for an unknown one.

    Args:
        kind: The type by number.
    """
    return NAMES[kind] if 0 <= kind < len(NAMES) else UNKNOWN


def decode_control_type(key: bytes | memoryview) -> int:
    """Return the type of a control record.

    Args:
        key: The record's key.

    Raises:
        CorruptRecordError: For a malformed key.
    """
    if len(key) < MIN_KEY_BYTES:
        raise CorruptRecordError(f"a control record without a key: {len(key)} bytes")
    reader = primitive_types.Reader(key)
    version = reader.integer("int16")
    if version < 0:
        raise CorruptRecordError(f"a control record of version {version}")
    return reader.integer("int16")


def decode_control_record(key: bytes | memoryview, value: bytes | memoryview) -> ControlRecord:
    """Decode a control record.

    Args:
        key: The record's key.
        value: Its value.

    Raises:
        CorruptRecordError: For a malformed record.
    """
    kind = decode_control_type(key)
    if kind in (ABORT, COMMIT):
        return ControlRecord(kind, {"coordinatorEpoch": decode_coordinator_epoch(value)})
    schema = _KRAFT.get(kind)
    return ControlRecord(kind, None if schema is None else _decode_kraft(schema, value))


def decode_end_transaction(key: bytes, value: bytes) -> tuple[int, int]:
    """Decode a marker into `ABORT` or `COMMIT`, and its coordinator epoch.

    Args:
        key: The record's key.
        value: Its value.

    Raises:
        CorruptRecordError: For a malformed record.
        ValueError: For a control record of another type.
    """
    kind = decode_control_type(key)
    if kind not in (ABORT, COMMIT):
        raise ValueError(f"a control record of type {kind} is not a transaction marker")
    return kind, decode_coordinator_epoch(value)


def encode_control_key(kind: int) -> bytes:
    """Encode the key of a control record.

    Args:
        kind: Its type by number.

    Raises:
        ValueError: For an unknown type.
    """
    if control_type_name(kind) == UNKNOWN:
        raise ValueError(f"unknown type {kind} of a control record")
    return primitive_types.integer("int16", 0) + primitive_types.integer("int16", kind)


def encode_control_value(kind: int, fields: Fields) -> bytes:
    """Encode the value of a control record.

    Args:
        kind: Its type by number.
        fields: As `decode_control_record` returns them.

    Raises:
        ValueError: For an unknown type, or for fields that its message does not allow.
    """
    if kind in (ABORT, COMMIT):
        return primitive_types.integer("int16", 0) + message_schema.encode_message(
            _END_TRANSACTION, 0, fields
        )
    if kind not in _KRAFT:
        raise ValueError(f"unknown type {kind} of a control record")
    schema = _KRAFT[kind]
    return message_schema.encode_message(schema, min(fields["version"], schema.last), fields)


def decode_coordinator_epoch(value: bytes | memoryview) -> int:
    """Return the coordinator epoch of a marker.

    Args:
        value: The record's value.

    Raises:
        CorruptRecordError: For a malformed value.
    """
    reader = primitive_types.Reader(value)
    if reader.remaining < MIN_END_TRANSACTION_BYTES:
        raise CorruptRecordError(f"a transaction marker with a value of {reader.remaining} bytes")
    version = reader.integer("int16")
    if version < 0:
        raise CorruptRecordError(f"a transaction marker of version {version}")
    return int(message_schema.decode_message(_END_TRANSACTION, 0, reader)["coordinatorEpoch"])


def _decode_kraft(schema: Schema, value: bytes | memoryview) -> Fields:
    """Decode a message by the version in its first field, a newer one by the last known."""
    version = primitive_types.Reader(value).integer("int16")
    if version < 0:
        raise CorruptRecordError(f"{schema.name} of version {version}")
    return message_schema.decode_message(
        schema, min(version, schema.last), primitive_types.Reader(value)
    )
