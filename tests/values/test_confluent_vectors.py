"""What confluent-kafka's serializers wrote (make_vectors.py) decodes to what they were given."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from klog.values.column_format import ColumnFormat, make_decoder
from klog.values.confluent_framing import prefix
from klog.values.json_objects import ObjectDecoder
from klog.values.kafka_serdes import KafkaSerde
from klog.values.registry_settings import Registry
from tests.support.schema_registry import SchemaRegistry, running_registry
from tests.values.avro_rows import encoded, record
from tests.values.make_vectors import FILE, JSON_ORDER, ORDER

DUMP = json.loads(FILE.read_text())
ROWS = {vector["name"]: bytes.fromhex(vector["bytes"]) for vector in DUMP["vectors"]}
AVRO = {**ORDER, "counts": [("x", 2**40)]}
FIRST = {**AVRO, "either": {"member0": None, "member1": "s"}}
SECOND = {**AVRO, "either": {"member0": 5, "member1": None}, "channel": "app"}
PROTOBUF = {
    "id": -7, "customer": "Zoë", "amount": 0.0, "large": "18446744073709551615",
    "unsigned": 4294967295, "signed": -3, "fixed": "9223372036854775808", "paid": True, "note": "",
    "status": "PAID", "tags": [1, -1], "counts": {"a": 2**40}, "took": "-1.500000s", "wrapped": 0,
    "created": "2026-01-02T03:04:05.678901Z", "extra": '{"k": [1.0, "x"]}', "mail": "m",
    "phone": None, "items": [{"sku": "s", "price": 1.5}],
    "by_number": {"4": {"sku": "t", "price": None}}, "raw": {"base64": "/w=="}, "first": None,
}  # fmt: skip


@pytest.fixture
def dumped() -> Iterator[SchemaRegistry]:
    with running_registry() as running:
        running.schemas = {int(number): each for number, each in DUMP["schemas"].items()}
        running.subjects = DUMP["subjects"]
        yield running


def decoded(dumped: SchemaRegistry, name: str, topic: str, *vectors: str, **more: Any) -> list[Any]:
    column = ColumnFormat("value", name, topic=topic, registry=Registry(dumped.url), **more)
    result = make_decoder(column).decode_array(pa.array([ROWS[vector] for vector in vectors]))
    assert result.reasons.to_pylist() == [None] * len(vectors)
    values: list[Any] = result.values.to_pylist()
    return values


def test_avro(dumped: SchemaRegistry) -> None:
    rows = decoded(dumped, "avro", "avro", "avro 0", "avro 1")
    assert rows == [{**FIRST, "channel": "web"}, SECOND]


def test_avro_as_an_older_reader(dumped: SchemaRegistry) -> None:
    schema = dumped.schemas[1]["schema"]
    rows = decoded(dumped, "avro", "avro", "avro 0", "avro 1", schema=schema)
    assert rows == [FIRST, {name: value for name, value in SECOND.items() if name != "channel"}]


def test_json(dumped: SchemaRegistry) -> None:
    assert decoded(dumped, "json", "json", "json") == [JSON_ORDER]


def test_protobuf(dumped: SchemaRegistry) -> None:
    (order,) = decoded(dumped, "protobuf", "order", "protobuf order", message="shop.Order")
    assert order["raw"] == b"\xff"
    assert decoded(dumped, "protobuf", "inner", "protobuf inner", message="shop.Other.Inner") == [
        {"number": 5}
    ]
    assert decoded(dumped, "protobuf", "other", "protobuf other") == [{"name": "o"}]


def test_as_objects_by_the_writers_schemas(dumped: SchemaRegistry) -> None:
    column = ColumnFormat("value", "protobuf", registry=Registry(dumped.url))
    names = ("protobuf order", "protobuf inner", "protobuf other")
    rows = pa.array([*(ROWS[name] for name in names), b"x", b"\0\0\0\0\4\xff", None])
    objects, reasons = ObjectDecoder(column).decode(rows)
    assert objects == [PROTOBUF, {"number": 5}, {"name": "o"}, None, None, None]
    assert sorted(reasons) == [3, 4]
    column = ColumnFormat("value", "avro", registry=Registry(dumped.url))
    objects, reasons = ObjectDecoder(column).decode(pa.array([ROWS["avro 0"], ROWS["avro 1"]]))
    assert not reasons
    assert objects[0] == {
        "id": -7, "customer": "Zoë", "amount": "-12.50", "note": None, "status": "PAID",
        "created": "2026-01-02T03:04:05.678000Z", "day": "1969-12-31", "tags": ["a", ""],
        "counts": {"x": 2**40}, "either": {"member0": None, "member1": "s"},
    }  # fmt: skip
    assert "channel" in objects[1]


def test_objects_of_floats_and_of_a_schema_that_comes_later(registry: SchemaRegistry) -> None:
    floats = record(("f", "float"), ("fs", {"type": "map", "values": "float"}))
    (data,) = encoded(floats, {"f": 0.1, "fs": {"big": 3.4e38, "none": math.nan}})
    decoder = ObjectDecoder(ColumnFormat("value", "avro", registry=Registry(registry.url)))
    rows = pa.array([prefix(1) + data])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klog.values.schema_cache.FAILURE_SECONDS", 0)
        assert "schema id 1 is not in" in decoder.decode(rows)[1][0]
        registry.register("t-value", json.dumps(floats))
        assert decoder.decode(rows) == ([{"f": 0.1, "fs": {"big": 3.4e38, "none": "nan"}}], {})


@pytest.mark.parametrize("vector", [each for each in DUMP["vectors"] if "value" in each])
def test_numbers_and_text(vector: dict[str, Any]) -> None:
    serde = KafkaSerde(vector["format"])
    rows = pa.array([ROWS[vector["name"]]])
    assert serde.decode_array(rows).values.to_pylist() == [vector["value"]]
    assert serde.encode_array(serde.decode_array(rows).values).equals(rows)
