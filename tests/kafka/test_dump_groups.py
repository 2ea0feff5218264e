"""Records of consumer, share and streams groups, compared with Kafka's classes and dump tool.

The rule: klog decodes a record as `DumpLogSegments --offsets-decoder` prints it, and encodes any
fields to the same bytes as Kafka.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klog.logformat.internal_topics import internal_records as topics
from klog.logformat.protocol.message_schema import Fields, Schema
from tests.kafka.group_members import consume_as_groups
from tests.kafka.test_dump_against_kafka import (
    check_same,
    kafka_dump,
    klog_dump,
    lines,
    write_records,
)
from tests.logformat.golden_group_records import EARLIER_ROWS, GIVEN_UP, ROWS
from tests.logformat.internal_topics.test_internal_records import messages, without_defaults
from tests.support.kafka_broker import Broker
from tests.support.kafka_classes import java_process
from tests.support.klog_command import Klog

pytestmark = pytest.mark.kafka

NEWER = sorted(kind for kind in topics.GROUP_SCHEMAS if kind > 2 and kind not in GIVEN_UP)
ONLY_OLDER_BROKERS_WRITE = {4}
LIVE_PROPERTIES = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
}


def test_kafkas_bytes_of_every_kind(klog: Klog, tmp_path: Path) -> None:
    records: list[tuple[bytes, bytes | None]] = []
    for row in ROWS:
        key = bytes.fromhex(row.key_hex)
        records += [(key, bytes.fromhex(row.value_hex)), (key, None)]
    check_same(klog, [write_records(tmp_path, records)], "--offsets-decoder")


def test_kinds_that_kafka_gave_up(klog: Klog, tmp_path: Path) -> None:
    """klog decodes kinds that Kafka's tool skips."""
    records = [(bytes.fromhex(row.key_hex), bytes.fromhex(row.value_hex)) for row in EARLIER_ROWS]
    log = write_records(tmp_path, [*records])
    theirs, mine = (
        kafka_dump([log], "--offsets-decoder"),
        klog_dump(klog, [log], "--offsets-decoder"),
    )
    assert theirs.out.count(b"Unknown record type") == len(EARLIER_ROWS)
    assert (mine.out.count(b"payload: {"), mine.out.count(b"Unknown")) == (len(EARLIER_ROWS), 0)


def test_values_cut_off(klog: Klog, tmp_path: Path) -> None:
    """Both report each value; Kafka's tool in its own text."""
    records = [(bytes.fromhex(row.key_hex), bytes.fromhex(row.value_hex)[:-1]) for row in ROWS]
    log = write_records(tmp_path, [*records])
    theirs, mine = (
        kafka_dump([log], "--offsets-decoder"),
        klog_dump(klog, [log], "--offsets-decoder"),
    )
    assert [re.sub("(skipping).*", r"\1", line) for line in lines(mine)] == [
        re.sub("(skipping).*", r"\1", line) for line in lines(theirs)
    ]
    assert mine.out.count(b"skipping") == len(ROWS)


def test_what_a_broker_writes_of_its_groups(klog: Klog, tmp_path: Path, gateway: Any) -> None:
    with Broker(tmp_path, LIVE_PROPERTIES) as broker:
        consume_as_groups(broker, gateway)
        broker.stop()
    (log,) = (tmp_path / "log" / "__consumer_offsets-0").glob("*.log")
    check_same(klog, [log], "--offsets-decoder")
    shown = klog_dump(klog, [log], "--offsets-decoder").out.decode()
    kinds = {int(kind) for kind in re.findall(r'key: {"type":"([0-9]+)"', shown)}
    assert set(NEWER) - kinds == ONLY_OLDER_BROKERS_WRITE
    assert '"classicMemberMetadata":{' in shown
    assert '"name":' not in re.sub(r"payload: .*", "", shown)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Any]:
    with java_process() as running:
        yield running


def as_json(fields: Fields) -> str:
    return json.dumps(fields, default=lambda data: b64encode(data).decode())


def kafka_bytes(gateway: Any, table: Schema, version: int, fields: Fields) -> bytes:
    """Write fields with Kafka's class for a table, from its JSON."""
    node = gateway.jvm.com.fasterxml.jackson.databind.ObjectMapper().readTree(as_json(fields))
    message = getattr(_generated(gateway), f"{table.name}JsonConverter").read(node, 0)
    util = gateway.jvm.org.apache.kafka.common.protocol.MessageUtil
    return bytes(util.toVersionPrefixedBytes(version, message))


def kafka_fields(gateway: Any, key: bytes, value: bytes) -> tuple[Fields, Fields]:
    """Read a record as the group coordinator does, and return key and value as Kafka's JSON."""
    serde = gateway.jvm.org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde()
    wrap = gateway.jvm.java.nio.ByteBuffer.wrap
    record = serde.deserialize(wrap(key), wrap(value))
    shown = _generated(gateway).CoordinatorRecordJsonConverters
    message = record.value().message()
    return (
        json.loads(shown.writeRecordKeyAsJson(record.key()).toString()),
        json.loads(shown.writeRecordValueAsJson(message, record.value().version()).toString()),
    )


def _generated(gateway: Any) -> Any:
    return gateway.jvm.org.apache.kafka.coordinator.group.generated


def test_kafka_knows_the_same_kinds(gateway: Any) -> None:
    known = {
        kind.id(): kind.toString() for kind in _generated(gateway).CoordinatorRecordType.values()
    }
    assert known.keys() == topics.GROUP_SCHEMAS.keys() - GIVEN_UP


@pytest.mark.parametrize("kind", NEWER)
def test_anything_that_a_record_may_hold(gateway: Any, kind: int) -> None:
    tables = topics.GROUP_SCHEMAS[kind]

    @settings(max_examples=25, deadline=None, database=None)
    @given(st.tuples(messages(tables[0].fields, kind), messages(tables[1].fields, 0)))
    def check(record: tuple[Fields, Fields]) -> None:
        key, value = record
        written = [
            topics.encode_versioned(table, version, fields)
            for table, version, fields in zip(tables, (kind, 0), record, strict=True)
        ]
        assert written[0][2:] == kafka_bytes(gateway, tables[0], 0, key)[2:]
        assert written[1] == kafka_bytes(gateway, tables[1], 0, value)
        kept = without_defaults(tables[1].fields, value)
        assert kafka_fields(gateway, *written) == (key, json.loads(as_json(kept)))

    check()
