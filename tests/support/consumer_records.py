"""What a poll of the Java consumer returned, as Python values.

The rule: one call for a whole poll. Jackson, which Kafka includes, writes the private fields of the
records as JSON, and bytes as base64. A call for each field would take milliseconds a record.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from tests.corpus import Record

_TIMESTAMP_TYPES = {"NO_TIMESTAMP_TYPE": -1, "CREATE_TIME": 0, "LOG_APPEND_TIME": 1}


class RecordMapper:
    """Reads polls of the consumers of one Java process."""

    def __init__(self, gateway: Any) -> None:
        jvm = gateway.jvm
        jackson = jvm.com.fasterxml.jackson
        visibility = getattr(jackson.annotation, "JsonAutoDetect$Visibility")
        members = jackson.annotation.PropertyAccessor
        self._mapper = jackson.databind.ObjectMapper()
        self._mapper.setVisibility(members.ALL, visibility.NONE)
        self._mapper.setVisibility(members.FIELD, visibility.ANY)
        # Jackson refuses it without another module. The leader epoch has this type.
        optional = jvm.java.lang.Class.forName("java.util.Optional")
        self._mapper.configOverride(optional).setIsIgnoredType(True)

    def records(self, polled: Any) -> list[Record]:
        """Return the records of a `ConsumerRecords`, partition by partition."""
        partitions = json.loads(self._mapper.writeValueAsString(polled))["records"]
        return [_record(fields) for records in partitions.values() for fields in records]


def _record(fields: Mapping[str, Any]) -> Record:
    headers = fields["headers"]["headers"]
    return Record(
        topic=fields["topic"],
        partition=fields["partition"],
        offset=fields["offset"],
        timestamp=fields["timestamp"],
        timestamp_type=_TIMESTAMP_TYPES[fields["timestampType"]],
        key=_bytes(fields["key"]),
        value=_bytes(fields["value"]),
        headers=tuple((_header_key(header), _header_value(header)) for header in headers),
        read_committed=True,
    )


def _header_key(header: Mapping[str, Any]) -> str:
    """Return the key, which Java decodes at the first call that asks for it."""
    if header["key"] is not None:
        return str(header["key"])
    return b64decode(header["keyBuffer"]).decode(errors="replace")  # as Java does


def _header_value(header: Mapping[str, Any]) -> bytes | None:
    text = header["valueBuffer"] if header["value"] is None else header["value"]
    return _bytes(text)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
