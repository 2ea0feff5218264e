"""Kafka is the oracle: confluent-kafka's serializing producers write to a broker, klog decodes.

The numbers, UUIDs and texts are those of Kafka's own Java serializers.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import SerializingProducer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import IntegerSerializer

from klog import open as klog_open
from klog.values.kafka_serdes import ARROW_TYPES, KafkaSerde
from tests.corpus.clients import Client
from tests.support.apicurio_server import Apicurio
from tests.support.kafka_classes import SERIALIZATION, java_errors, java_process
from tests.support.klog_command import Klog
from tests.support.schema_registry import running_registry
from tests.support.waiting import wait_until
from tests.values.make_vectors import (
    JSON_ORDER,
    JSON_SCHEMA,
    ORDER,
    ORDER_V1,
    ORDER_V2,
    shop_messages,
)
from tests.values.test_protobuf_values import RICH, rich_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from klog.connector.embedded import Log
    from tests.support.kafka_broker import Broker

pytestmark = pytest.mark.kafka

COUNT = 200
JAVA: dict[str, tuple[str, list[Any]]] = {
    "short": ("Short", [0, -1, 2**15 - 1]),
    "integer": ("Integer", [0, -1, 258, -(2**31)]),
    "long": ("Long", [0, -1, 2**63 - 1]),
    "float": ("Float", [0.0, -1.5]),
    "double": ("Double", [0.0, -0.1, 1e300]),
    "boolean": ("Boolean", [True, False]),
    "uuid": ("UUID", [str(uuid.UUID(int=2**127 + 5))]),
    "string": ("String", ["", "Zoë€𝄞"]),
}


def produce(broker: Broker, topic: str, serializer: Any, rows: list[Any]) -> None:
    """Write rows with a serializer, keys with the serializer of integers."""
    producer = SerializingProducer(
        {
            "bootstrap.servers": broker.bootstrap,
            "log_level": 0,
            "key.serializer": IntegerSerializer(),
            "value.serializer": serializer,
        }
    )
    for key, row in enumerate(rows):
        producer.produce(topic, key=key, value=row, partition=0)
    assert producer.flush(60) == 0


@pytest.fixture(params=["of-the-tests", "apicurio"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Return the name and the URL of a running registry: of the tests, and a real one."""
    if request.param == "apicurio":
        with Apicurio(tmp_path / "apicurio") as server:
            yield request.param, server.url
    else:
        with running_registry() as running:
            yield request.param, running.url


def test_what_serializing_producers_wrote(
    broker: Broker, klog_root: Path, klog: Klog, registry: tuple[str, str]
) -> None:
    name, url = registry
    broker_client = Client(broker)
    for kind in ("avro", "json", "protobuf"):
        broker_client.create(f"{kind}.{name}", "values for klog to decode")
    client = SchemaRegistryClient({"url": url})
    first, second = (
        AvroSerializer(client, json.dumps(ORDER_V1)),
        AvroSerializer(client, json.dumps(ORDER_V2)),
    )
    orders = [{**ORDER, "id": number, "either": number} for number in range(COUNT)]
    produce(broker, f"avro.{name}", first, orders)
    produce(broker, f"avro.{name}", second, [{**ORDER, "channel": "app"}, None])
    json_serializer = JSONSerializer(json.dumps(JSON_SCHEMA), client)
    produce(broker, f"json.{name}", json_serializer, [JSON_ORDER])
    classes = shop_messages()
    serializer = ProtobufSerializer(classes["Order"], client, {"use.deprecated.format": False})
    produce(broker, f"protobuf.{name}", serializer, [rich_order(classes), classes["Order"]()])
    client.close()
    log = klog_open(klog_root)
    counts = {f"avro.{name}": COUNT + 2, f"json.{name}": 1, f"protobuf.{name}": 2}
    wait_until(
        lambda: all(log.offsets(topic) == {0: count} for topic, count in counts.items()),
        "the broker's files say that the records are committed",
    )
    decoded_topics(log, name, url)
    result = klog(
        "consume", "--root", str(klog_root), "--topic", f"avro.{name}", "-o", "-2", "--json",
        "-s", "key=integer", "-s", "value=avro", "-r", url,
    )  # fmt: skip
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["key"] for line in lines] == [0, 1]
    assert (lines[0]["value"]["channel"], lines[1]["value"]) == ("app", None)


def decoded_topics(log: Log, name: str, url: str) -> None:
    """Compare what klog decodes of the broker's directory with what was produced."""
    rows = log.scan(f"avro.{name}", key="integer", value="avro", registry=url).read_all()
    assert rows["key"].to_pylist() == [*range(COUNT), 0, 1]
    values = rows["value"].to_pylist()
    same = {**ORDER, "counts": [("x", 2**40)]}
    assert values[:COUNT] == [
        {**same, "id": number, "channel": "web", "either": {"member0": number, "member1": None}}
        for number in range(COUNT)
    ]
    assert values[COUNT:] == [
        {**same, "channel": "app", "either": {"member0": None, "member1": "s"}}, None
    ]  # fmt: skip
    rows = log.scan(f"json.{name}", value="json", registry=url).read_all()
    assert rows["value"].to_pylist() == [JSON_ORDER]
    rows = log.scan(
        f"protobuf.{name}", value="protobuf", value_message="shop.Order", registry=url
    ).read_all()
    assert rows["value"].to_pylist()[0] == RICH
    assert rows["value"].to_pylist()[1]["id"] == 0


@pytest.fixture
def klog_root(broker: Broker) -> Path:
    return broker.log_dirs[0]


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with java_process() as gateway:
        yield gateway


@pytest.mark.parametrize("name", JAVA)
def test_kafkas_own_serializers(java: Any, name: str) -> None:
    """Its serializer writes klog's bytes; its deserializer refuses what klog refuses."""
    kind, values = JAVA[name]
    classes = java.jvm
    for part in SERIALIZATION.split("."):
        classes = getattr(classes, part)
    serializer = getattr(classes, f"{kind}Serializer")()
    deserializer = getattr(classes, f"{kind}Deserializer")()
    data = [bytes(serializer.serialize("t", boxed(java, kind, value))) for value in values]
    column = pa.array(values).cast(ARROW_TYPES[name])
    assert KafkaSerde(name).encode_array(column).to_pylist() == data
    result = KafkaSerde(name).decode_array(pa.array([*data, None]))
    assert result.values.to_pylist() == [*column.to_pylist(), None]
    if name == "string":
        return  # Kafka replaces what is not UTF-8; klog refuses it.
    for row in (b"", b"\7", b"\0" * 3, b"\0" * 16):
        is_refused = KafkaSerde(name).decode_array(pa.array([row])).has_errors
        assert is_refused == refuses(deserializer, row)


def boxed(java: Any, kind: str, value: Any) -> Any:
    """Return a value as an object of the Java class that the serializer takes."""
    if kind == "UUID":
        return java.jvm.java.util.UUID.fromString(value)
    if kind in ("String", "Boolean"):
        return value
    return getattr(java.jvm.java.lang, kind).valueOf(str(value))


def refuses(deserializer: Any, row: bytes) -> bool:
    try:
        with java_errors():
            deserializer.deserialize("t", row)
    except Exception:  # noqa: BLE001 - whatever py4j makes of Kafka's SerializationException
        return True
    return False
