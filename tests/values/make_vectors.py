"""Write vectors.json: what confluent-kafka's serializers write, and what they were given.

python -m tests.values.make_vectors

klog computes none of it. The schemas are those that the serializers have registered in
`tests/support/schema_registry.py`; `bytes` are hexadecimal.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import (
    DoubleSerializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    StringSerializer,
)

from tests.support.schema_registry import SchemaRegistry, descriptor, running_registry

FOLDER = Path(__file__).parent
FILE = FOLDER / "vectors.json"
ORDER_V1 = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                    "scale": 2}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
        {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "either", "type": ["int", "string"]},
    ],
}  # fmt: skip
ORDER_V2 = {
    **ORDER_V1,
    "fields": [*ORDER_V1["fields"], {"name": "channel", "type": "string", "default": "web"}],
}
ORDER = {
    "id": -7, "customer": "Zoë", "amount": Decimal("-12.50"), "note": None, "status": "PAID",
    "created": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.timezone.utc),
    "day": datetime.date(1969, 12, 31), "tags": ["a", ""], "counts": {"x": 2**40}, "either": "s",
}  # fmt: skip
JSON_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
    },
}
JSON_ORDER = {"id": 1, "price": 2.5, "tags": ["a"], "note": None}


def shop_messages() -> Any:
    """Return the classes of shop.proto by name."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.Default()
    pool.AddSerializedFile(descriptor((FOLDER / "shop.proto").read_text()))
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
        for name in ("Order", "Other", "Other.Inner")
    }


def main() -> None:
    """Write the file."""
    with running_registry() as registry:
        client = SchemaRegistryClient({"url": registry.url})
        vectors = [*_avro(client), *_json(client), *_protobuf(client), *_plain()]
        client.close()
        FILE.write_text(json.dumps(_dump(registry, vectors), indent=1) + "\n")


def _avro(client: Any) -> list[dict[str, Any]]:
    context = SerializationContext("avro", MessageField.VALUE)
    values = [(ORDER_V1, ORDER), (ORDER_V2, {**ORDER, "either": 5, "channel": "app"})]
    return [
        {"name": f"avro {place}", "format": "avro",
         "bytes": AvroSerializer(client, json.dumps(schema))(value, context).hex()}
        for place, (schema, value) in enumerate(values)
    ]  # fmt: skip


def _json(client: Any) -> list[dict[str, Any]]:
    serializer = JSONSerializer(json.dumps(JSON_SCHEMA), client)
    data = serializer(JSON_ORDER, SerializationContext("json", MessageField.VALUE))
    return [{"name": "json", "format": "json", "bytes": data.hex()}]


def _protobuf(client: Any) -> list[dict[str, Any]]:
    classes = shop_messages()
    order = classes["Order"](
        id=-7, customer="Zoë", large=2**64 - 1, unsigned=2**32 - 1, signed=-3, fixed=2**63,
        paid=True, note="", status=1, tags=[1, -1], counts={"a": 2**40}, mail="m", raw=b"\xff",
    )  # fmt: skip
    order.created.FromJsonString("2026-01-02T03:04:05.678901Z")
    order.took.FromJsonString("-1.5s")
    order.wrapped.value = 0
    order.extra["k"] = [1, "x"]
    order.items.add(sku="s", price=1.5)
    order.by_number[4].sku = "t"
    vectors = []
    for topic, message in (
        ("order", order),
        ("inner", classes["Other.Inner"](number=5)),
        ("other", classes["Other"](name="o")),
    ):
        settings = {"use.deprecated.format": False}
        serializer = ProtobufSerializer(type(message), client, settings)
        data = serializer(message, SerializationContext(topic, MessageField.VALUE))
        vectors.append({"name": f"protobuf {topic}", "format": "protobuf", "bytes": data.hex()})
    return vectors


def _plain() -> list[dict[str, Any]]:
    serializers: list[tuple[str, Any, Any]] = [
        ("integer", IntegerSerializer(), -(2**31)),
        ("integer", IntegerSerializer(), 258),
        ("double", DoubleSerializer(), -0.5),
        ("string", StringSerializer(), "Zoë"),
    ]
    return [
        {"name": f"{name} {value}", "format": name, "value": value,
         "bytes": (serializer(value) or b"").hex()}
        for name, serializer, value in serializers
    ]  # fmt: skip


def _dump(registry: SchemaRegistry, vectors: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schemas": registry.schemas, "subjects": registry.subjects, "vectors": vectors}


if __name__ == "__main__":
    main()
