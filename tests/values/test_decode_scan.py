"""`scan(..., value=...)` and `decode_batches`: columns, errors that name the offset, extras."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.embedded import Log
from klog.errors import OptionError, SchemaError, UndecodableError
from klog.values import decode_batches
from tests.support.schema_registry import SchemaRegistry
from tests.values.avro_rows import encoded, record

POINT = record(("x", "int"))


@pytest.fixture
def log(tmp_path: Any) -> Log:
    log = klog.open(tmp_path / "root")
    log.create_topic("t")
    keys = [b"\0\0\0\1", b"\0\0\0\2", None]
    log.append("t", pa.table({"key": keys, "value": ['{"a": 1}', '{"a": 2, "b": [1]}', None]}))
    return log


def test_columns_are_decoded(log: Log) -> None:
    table = log.scan("t", key="integer", value="json", columns=["key", "value"]).read_all()
    assert table.to_pylist() == [
        {"key": 1, "value": {"a": 1, "b": None}},
        {"key": 2, "value": {"a": 2, "b": [1]}},
        {"key": None, "value": None},
    ]
    schema = pa.schema([("b", pa.list_(pa.float64()))])
    table = log.scan("t", value="json", value_schema=schema, start=1).read_all()
    assert table["value"].to_pylist() == [{"b": [1.0]}, None]
    assert table.schema.names == log.scan("t").schema.names


def test_an_error_names_the_offset(log: Log) -> None:
    log.append("t", pa.table({"value": ["{"]}))
    with pytest.raises(UndecodableError, match=r"t-0 offset 3: the value cannot be decoded: json"):
        log.scan("t", value="json", columns=["value"]).read_all()
    table = log.scan("t", value="json", columns=["value"], on_error="null").read_all()
    assert table.schema.names == ["value", "value_error"]
    assert table["value_error"].is_valid().to_pylist() == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"value": "jsn"}, OptionError, "Did you mean json"),
        ({"value": "json", "columns": ["key"]}, OptionError, "value: is not in columns"),
        ({"value": "json", "on_error": "skip"}, OptionError, "on_error: must be fail or null"),
        ({"value_schema": "x"}, OptionError, "value_schema: needs value"),
        ({"on_error": "null"}, OptionError, "set the format of one of them"),
        ({"value": "avro"}, OptionError, "avro needs a schema"),
        ({"value": "json", "start": 3}, SchemaError, "no value to infer a schema from"),
    ],
)
def test_wrong_arguments(
    log: Log, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        log.scan("t", **arguments).read_all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("other", pa.binary())], "value: there is no such column"),
        ([("value", pa.binary())] * 2, "value: there is no such column, or there are two"),
        ([("value", pa.int64())], "value: only bytes can be decoded, and the column is int64"),
        ([("value", pa.binary()), ("value_error", pa.string())], "value_error: the batches have"),
    ],
)
def test_wrong_columns(fields: list[tuple[str, pa.DataType]], message: str) -> None:
    batches = pa.RecordBatchReader.from_batches(pa.schema(fields), [])
    with pytest.raises(OptionError, match=message):
        decode_batches(batches, value="long", on_error="null")


def test_a_registry_by_the_name_of_the_topic(log: Log, registry: SchemaRegistry) -> None:
    registry.register(
        "t-value", '{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}'
    )
    log.append("t", pa.table({"value": [b"\0\0\0\0\1" + encoded(POINT, {"x": 5})[0]]}))
    table = log.scan("t", value="avro", registry=registry.url, start=3).read_all()
    assert table["value"].to_pylist() == [{"x": 5}]


@pytest.mark.parametrize(
    ("arguments", "library", "extra"),
    [
        ({"value": "avro", "value_schema": '"int"'}, "fastavro", "avro"),
        ({"value": "protobuf", "value_schema": b"x"}, "google.protobuf", "protobuf"),
        ({"value": "protobuf", "value_schema": "text"}, "grpc_tools", "proto-text"),
        ({"value": "avro", "registry": "http://localhost:1"}, "httpx", "registry"),
    ],
)
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], library: str, extra: str
) -> None:
    for name in list(sys.modules):
        if name == library or name.startswith(f"{library}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(library), *sys.meta_path])
    batches = pa.RecordBatchReader.from_batches(pa.schema([("value", pa.binary())]), [])
    with pytest.raises(OptionError, match=rf"{library} is not installed.*'klog\[{extra}\]'"):
        decode_batches(batches, topic="t", **arguments)


class Missing:
    """A finder that finds no module of one library."""

    def __init__(self, library: str) -> None:
        self._library = library

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self._library or name.startswith(f"{self._library}."):
            raise ModuleNotFoundError(name)
