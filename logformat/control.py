"""Control records: transaction markers and what the controllers write into their own log.

A key is int16 version and int16 type; a version above 0 reads as 0 and what follows is ignored, a
negative one is refused, a type that is not known is kept by its number. The value of ABORT and
COMMIT is int16 version and int32 coordinator epoch, by the same rule. The other types hold a
message of Kafka's protocol whose first field is its version (docs/format.md, 6; Kafka's
`ControlRecordType`, `EndTransactionMarker`, `ControlRecordUtils`).
"""

from __future__ import annotations

from dataclasses import dataclass

from klog.errors import CorruptRecordError
from klog.logformat import schema, wire
from klog.logformat.schema import Array, Field, Fields, Schema

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
    """One control record: its type by number, and the fields of its value by Kafka's names.

    `fields` is None for a type that is not known.
    """

    type: int
    fields: Fields | None

    @property
    def name(self) -> str:
        """Give the name of the type, `UNKNOWN` for one that has none."""
        return type_name(self.type)


def type_name(kind: int) -> str:
    """Give the name of a type, `UNKNOWN` for one that has none."""
    return NAMES[kind] if 0 <= kind < len(NAMES) else UNKNOWN


def read_type(key: bytes | memoryview) -> int:
    """Give the type that a control record's key names; raises `CorruptRecordError`."""
    if len(key) < MIN_KEY_BYTES:
        raise CorruptRecordError(f"a control record without a key: {len(key)} bytes")
    reader = wire.Reader(key)
    version = reader.integer("int16")
    if version < 0:
        raise CorruptRecordError(f"a control record of version {version}")
    return reader.integer("int16")


def read_control(key: bytes | memoryview, value: bytes | memoryview) -> ControlRecord:
    """Decode a control record; raises `CorruptRecordError`."""
    kind = read_type(key)
    if kind in (ABORT, COMMIT):
        return ControlRecord(kind, {"coordinatorEpoch": read_coordinator_epoch(value)})
    table = _KRAFT.get(kind)
    return ControlRecord(kind, None if table is None else _read_kraft(table, value))


def read_end_transaction(key: bytes, value: bytes) -> tuple[int, int]:
    """Decode a marker: (`ABORT` or `COMMIT`, coordinator epoch).

    Raises `CorruptRecordError`, and `ValueError` for a control record of another type.
    """
    kind = read_type(key)
    if kind not in (ABORT, COMMIT):
        raise ValueError(f"a control record of type {kind} is no transaction marker")
    return kind, read_coordinator_epoch(value)


def write_key(kind: int) -> bytes:
    """Encode the key of a control record; raises `ValueError` for a type that is not known."""
    if type_name(kind) == UNKNOWN:
        raise ValueError(f"there is no control record of type {kind}")
    return wire.integer("int16", 0) + wire.integer("int16", kind)


def write_value(kind: int, fields: Fields) -> bytes:
    """Encode the value of a control record; raises `ValueError` for a type that is not known.

    `fields` are those that `read_control` gives.
    """
    if kind in (ABORT, COMMIT):
        return wire.integer("int16", 0) + schema.write(_END_TRANSACTION, 0, fields)
    if kind not in _KRAFT:
        raise ValueError(f"there is no control record of type {kind}")
    table = _KRAFT[kind]
    return schema.write(table, min(fields["version"], table.last), fields)


def read_coordinator_epoch(value: bytes | memoryview) -> int:
    """Decode the value of a marker; raises `CorruptRecordError`."""
    reader = wire.Reader(value)
    if reader.left < MIN_END_TRANSACTION_BYTES:
        raise CorruptRecordError(f"a transaction marker with a value of {reader.left} bytes")
    version = reader.integer("int16")
    if version < 0:
        raise CorruptRecordError(f"a transaction marker of version {version}")
    return int(schema.read(_END_TRANSACTION, 0, reader)["coordinatorEpoch"])


def _read_kraft(table: Schema, value: bytes | memoryview) -> Fields:
    """Read a message by the version that is its own first field; a newer one by the last known."""
    version = wire.Reader(value).integer("int16")
    if version < 0:
        raise CorruptRecordError(f"{table.name} of version {version}")
    return schema.read(table, min(version, table.last), wire.Reader(value))
