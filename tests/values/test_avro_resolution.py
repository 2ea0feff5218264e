"""A writer's schema read as a reader's: by id, with defaults, promotions, aliases, unions."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from klog.errors import RegistryError
from klog.values.avro_decoder import AvroDecoder
from klog.values.avro_schema import load_avro_schema
from klog.values.confluent_framing import prefix
from klog.values.decoded_column import DecodedColumn
from klog.values.registry_settings import Registry
from tests.support.schema_registry import SchemaRegistry
from tests.values.avro_rows import encoded, record

TIME = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.timezone.utc)
ITEM = record(("sku", "string"), name="Item")


def resolved(registry: SchemaRegistry, writer: Any, reader: Any, *values: Any) -> DecodedColumn:
    number = registry.register("t-value", json.dumps(writer))
    rows = [prefix(number) + row for row in encoded(writer, *values)]
    decoder = AvroDecoder(load_avro_schema(reader), Registry(registry.url, retries=0))
    return decoder.decode_array(pa.array(rows, pa.binary()))


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5.0),
        ("long", "float", 5, 5.0),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "a", b"a"),
        ("bytes", "string", b"a", "a"),
        ("int", ["null", "long"], 5, 5),
        (["null", "int"], ["null", "long"], 5, 5),
        (["int", "string"], ["string", "long"], 5, {"member0": None, "member1": 5}),
        (["null", "string", ITEM], ["null", ITEM, "string"], {"sku": "s"},
         {"member0": {"sku": "s"}, "member1": None}),
        ("int", ["int", "string"], 5, {"member0": 5, "member1": None}),
        ("int", ["null", "string", "double"], 5, {"member0": None, "member1": 5.0}),
        (["null", "string"], ["null", "string", "int"], "a", {"member0": "a", "member1": None}),
        (["null", "string"], ["null", "string", "int"], None, None),
        (["int", "string"], "string", "a", "a"),
        (["null", "int", "string"], ["null", "long"], 5, 5),
        (["null", ITEM], ["null", {**ITEM, "name": "New", "aliases": ["Item"]}, "int"],
         {"sku": "s"}, {"member0": {"sku": "s"}, "member1": None}),
        (["string", {**ITEM, "namespace": "a"}], ["string", {**ITEM, "namespace": "b"}],
         {"sku": "s"}, {"member0": None, "member1": {"sku": "s"}}),
        (ITEM, ["null", ITEM, "int"], {"sku": "s"}, {"member0": {"sku": "s"}, "member1": None}),
        ({"type": "long", "logicalType": "timestamp-millis"},
         {"type": "long", "logicalType": "timestamp-micros"}, TIME, TIME),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
         {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
         Decimal("1.5"), Decimal("1.500")),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1], [1]),
        ({"type": "enum", "name": "E", "symbols": ["A", "NEW"]},
         {"type": "enum", "name": "E", "symbols": ["A", "OTHER"], "default": "OTHER"},
         "NEW", "OTHER"),
    ],
)  # fmt: skip
def test_a_field_changes_its_type(
    registry: SchemaRegistry, writer: Any, reader: Any, value: Any, expected: Any
) -> None:
    result = resolved(registry, record(("f", writer)), record(("f", reader)), {"f": value})
    assert result.reasons.to_pylist() == [None]
    assert result.values.to_pylist() == [{"f": expected}]


@pytest.mark.parametrize(
    ("schema", "default", "expected"),
    [
        ("string", "web", "web"),
        (["null", "string"], None, None),
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 1}, "\u0001", b"\x01"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u0001",
         Decimal("0.01")),
        (["int", "string"], 5, {"member0": 5, "member1": None}),
        (["bytes", "null"], "\u00ff", b"\xff"),
        ({"type": "array", "items": "int"}, [1], [1]),
        ({"type": "map", "values": "int"}, {"a": 1}, [("a", 1)]),
        (record(("b", "bytes"), name="B"), {"b": "\u00ff"}, {"b": b"\xff"}),
        (record(("b", ["bytes", "null"]), {"name": "i", "type": ["int", "string"], "default": 5},
                name="B"),
         {"b": "\u00ff"}, {"b": b"\xff", "i": {"member0": 5, "member1": None}}),
        ({"type": "array", "items": "bytes"}, ["\u00ff"], [b"\xff"]),
        ({"type": "map", "values": {"type": "array", "items": ["null", "bytes"]}},
         {"a": [None, "\u00ff"]}, [("a", [None, b"\xff"])]),
        ("double", "Infinity", float("inf")),
        ("float", 1, 1.0),
    ],
)  # fmt: skip
def test_a_new_field_has_its_default(
    registry: SchemaRegistry, schema: Any, default: Any, expected: Any
) -> None:
    reader = record(("id", "long"), {"name": "new", "type": schema, "default": default})
    result = resolved(registry, record(("id", "long")), reader, {"id": 1}, {"id": 2})
    assert result.values.field("new").to_pylist() == [expected] * 2


def test_fields_are_dropped_moved_and_renamed(registry: SchemaRegistry) -> None:
    writer = record(("a", "string"), ("gone", ITEM), ("b", {"type": "map", "values": "Item"}))
    reader = record(
        ("b", {"type": "map", "values": {**ITEM, "name": "Thing", "aliases": ["Item"]}}),
        {"name": "named", "type": "string", "aliases": ["a"]},
    )
    value = {"a": "x", "gone": {"sku": "s"}, "b": {"k": {"sku": "t"}}}
    result = resolved(registry, writer, reader, value)
    assert result.values.to_pylist() == [{"b": [("k", {"sku": "t"})], "named": "x"}]


@pytest.mark.parametrize(
    ("writer", "reader", "value", "reason"),
    [
        ("string", "int", "x", "R.f: string cannot be read as int"),
        (ITEM, {**ITEM, "type": "enum", "symbols": ["A"]}, {"sku": "s"},
         "R.f: record Item cannot be read as enum Item"),
        ({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}, b"x",
         "R.f: fixed F cannot be read as fixed F"),
        ({"type": "int", "logicalType": "time-millis"}, {"type": "int", "logicalType": "date"},
         datetime.time(1), "R.f: int-time-millis cannot be read as int-date"),
        (["int", "string"], "string", 5, "its branch of a union is not in the reader's schema"),
        (["int", "string"], ["bytes", "null"], 5,
         "its branch of a union is not in the reader's schema"),
        ("boolean", ["int", "string"], True, "R.f: boolean cannot be read as a union of 2 types"),
        (["null", "boolean"], "int", True, "R.f: no branch of the writer's union can be read"),
        (ITEM, record({"name": "q", "type": "string", "aliases": [[]]}, name="Item"), {"sku": "s"},
         "invalid schema: TypeError: unhashable type: 'list'"),
        (record(name="Empty"), record(("new", "int"), name="Empty"), {},
         "Empty.new: the writer has no such field, and it has no default"),
    ],
)  # fmt: skip
def test_what_cannot_be_resolved_is_a_reason(
    registry: SchemaRegistry, writer: Any, reader: Any, value: Any, reason: str
) -> None:
    result = resolved(registry, record(("f", writer)), record(("f", reader)), {"f": value})
    assert result.values.to_pylist() == [None]
    assert result.reasons.to_pylist() == [f"avro: {reason}"]


def test_a_branch_that_cannot_be_read_spoils_no_other(registry: SchemaRegistry) -> None:
    """What a branch has defined before it failed is not used by the next one."""
    first = record(("a", ITEM), ("b", "string"), name="First")
    second = record(("a", "Item"), name="Second")
    writer = record(("f", [first, second]))
    reader = record(("f", [{**first, "fields": [first["fields"][0], {"name": "b", "type": "int"}]},
                           second]))  # fmt: skip
    values = {"f": {"a": {"sku": "s"}, "b": "x"}}, {"f": {"a": {"sku": "t"}}}
    result = resolved(registry, writer, reader, *values)
    assert result.values.to_pylist() == [
        None, {"f": {"member0": None, "member1": {"a": {"sku": "t"}}}}
    ]  # fmt: skip


def test_many_writers_in_one_batch(registry: SchemaRegistry) -> None:
    first, second = record(("a", "int")), record(("a", "int"), ("b", "string"))
    reader = record(("a", "long"), {"name": "b", "type": "string", "default": ""})
    numbers = [registry.register("t-value", json.dumps(each)) for each in (first, second)]
    rows = [
        prefix(numbers[0]) + encoded(first, {"a": 1})[0],
        prefix(numbers[1]) + encoded(second, {"a": 2, "b": "x"})[0],
        None,
        prefix(9) + b"\x02",
        b"\x01\0\0\0\x01\x02",
        b"\0\0",
        prefix(numbers[0]) + encoded(first, {"a": 3})[0],
        prefix(numbers[0]),
    ]
    decoder = AvroDecoder(load_avro_schema(reader), Registry(registry.url))
    result = decoder.decode_array(pa.array(rows, pa.binary()))
    assert result.values.to_pylist() == [
        {"a": 1, "b": ""}, {"a": 2, "b": "x"}, None, None, None, None, {"a": 3, "b": ""}, None
    ]  # fmt: skip
    reasons = result.reasons.to_pylist()
    assert [reason is None for reason in reasons] == [True] * 3 + [False] * 3 + [True, False]
    assert reasons[3].startswith(f"schema id 9 is not in the registry {registry.url}")
    assert reasons[4].startswith("no schema registry's prefix: begins with 0x01")
    assert reasons[5] == "no schema registry's prefix: 2 bytes, the prefix alone has 5"
    decoder.decode_array(pa.array(rows, pa.binary()))
    assert sorted(registry.requests) == [f"GET /schemas/ids/{number}" for number in (1, 2, 9)]


def test_a_schema_of_another_format_is_a_reason(registry: SchemaRegistry) -> None:
    number = registry.register("t-value", "{}", "JSON")
    decoder = AvroDecoder(load_avro_schema("int"), Registry(registry.url))
    result = decoder.decode_array(pa.array([prefix(number) + b"\x02"]))
    assert result.reasons.to_pylist() == ["avro: schema id 1 has the type JSON"]


def test_a_registry_that_does_not_answer_is_no_reason(registry: SchemaRegistry) -> None:
    registry.failures += [500]
    decoder = AvroDecoder(load_avro_schema("int"), Registry(registry.url, retries=0))
    with pytest.raises(RegistryError, match="HTTP 500"):
        decoder.decode_array(pa.array([prefix(1) + b"\x02"]))


def test_a_writer_that_needs_unbounded_memory_is_a_reason(registry: SchemaRegistry) -> None:
    writer = record(("f", {"type": "array", "items": "null"}))
    result = resolved(registry, writer, record(), {"f": [None]})
    assert "items without bytes" in result.reasons[0].as_py()


def test_referenced_schemas_are_found(registry: SchemaRegistry) -> None:
    registry.register("item", json.dumps(ITEM))
    reference = {"name": "Item", "subject": "item", "version": 1}
    writer = record(("i", "Item"))
    number = registry.register("t-value", json.dumps(writer), references=[reference])
    reader = record(("i", ITEM))
    row = prefix(number) + encoded(reader, {"i": {"sku": "s"}})[0]
    decoder = AvroDecoder(load_avro_schema(reader), Registry(registry.url))
    assert decoder.decode_array(pa.array([row])).values.to_pylist() == [{"i": {"sku": "s"}}]


@pytest.mark.parametrize("depth", ["top", "nested", "in an array", "nullable"])
@pytest.mark.parametrize(
    "items", ["double", "float", "boolean", {"type": "fixed", "name": "F", "size": 4}]
)
def test_a_hostile_count_in_a_field_that_is_left_out(
    registry: SchemaRegistry, items: Any, depth: str
) -> None:
    """A reader that skipped so many items would not end."""
    small = record(("id", "long"), name="Inner")
    large = record(("id", "long"), ("xs", {"type": "array", "items": items}), name="Inner")

    def schema(inner: Any) -> Any:
        types = {
            "nested": inner,
            "in an array": {"type": "array", "items": inner},
            "nullable": ["null", inner],
        }
        return inner if depth == "top" else record(("inner", types[depth]), name="Outer")

    before = {"top": b"", "nested": b"", "in an array": b"\x02", "nullable": b"\x02"}[depth]
    count = b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"  # 2 to the power of 62
    number = registry.register("t-value", json.dumps(schema(large)))
    decoder = AvroDecoder(load_avro_schema(schema(small)), Registry(registry.url, retries=0))
    row = prefix(number) + before + b"\x0a" + count
    assert decoder.decode_array(pa.array([row], pa.binary())).reasons.null_count == 0
