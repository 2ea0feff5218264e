"""Schemas of a user or a table: klog's columns or some of them, in their order and types."""

from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructType

from klog.connector.options.read_columns import COLUMNS, DEFAULT_COLUMNS
from klog.connector.options.read_options import parse_read_options
from klog.connector.source.read_schema import schema_text, with_schema
from klog.connector.source.row_schema import arrow_schema
from klog.errors import OptionError

FIELDS = {field.name: field for field in from_arrow_schema(arrow_schema(COLUMNS)).fields}


def schema(*names: str, **types: DataType) -> StructType:
    fields = StructType()
    for name in names:
        fields = fields.add(name, types[name]) if name in types else fields.add(FIELDS[name])
    return fields


def columns_read(requested: StructType | None, **options: str) -> tuple[str, ...]:
    parsed = parse_read_options({"subscribe": "t", **options})
    return tuple(with_schema(parsed, requested).columns)


def test_columns_of_a_schema_are_read() -> None:
    assert columns_read(None) == DEFAULT_COLUMNS
    assert columns_read(StructType()) == DEFAULT_COLUMNS
    assert columns_read(schema(*DEFAULT_COLUMNS)) == DEFAULT_COLUMNS
    assert columns_read(schema("value", "offset")) == ("value", "offset")
    assert columns_read(schema(*COLUMNS)) == COLUMNS
    assert columns_read(schema("key"), includeHeaders="true") == ("key",)
    assert columns_read(schema("key", "value"), columns="value,KEY") == ("key", "value")


@pytest.mark.parametrize(
    ("requested", "difference"),
    [
        (schema("value", value=StringType()), "the column value is binary, got string"),
        (schema("payload", payload=BinaryType()), "there is no column payload"),
        (schema("Value", Value=BinaryType()), "there is no column Value"),
        (schema("offset", "key"), "the columns offset, key are in another order here"),
        (schema("partition", partition=LongType()), "the column partition is int, got bigint"),
    ],
)
def test_another_schema_is_refused(requested: StructType, difference: str) -> None:
    with pytest.raises(OptionError) as caught:
        columns_read(requested)
    assert str(caught.value).startswith(f"schema: {difference}. Leave .schema(...) out")
    assert schema_text(COLUMNS) in str(caught.value)


def test_option_columns_must_agree_with_the_schema() -> None:
    with pytest.raises(OptionError, match="columns: must agree with the schema, got key and value"):
        columns_read(schema("value"), columns="key")
