"""A table becomes a topic and a table again, by values whose schemas are in a registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from klog.jobs import to_delta
from tests.delta.changed_table import ChangedTable
from tests.delta.copied_rows import TOPIC
from tests.support.schema_registry import running_registry

pytestmark = pytest.mark.delta

PROTO = """\
syntax = "proto3";
message Row { int64 id = 1; string name = 2; double price = 3; repeated string tags = 4; }
"""
FORMATS: dict[str, dict[str, Any]] = {"avro": {}, "protobuf": {"value_schema": PROTO}}


@pytest.mark.parametrize("value_format", FORMATS)
@pytest.mark.full  # CI has a registry in tests/kafka/test_decoded_values.py.
def test_a_table_there_and_back(
    delta_spark: SparkSession, tmp_path: Path, value_format: str
) -> None:
    table = ChangedTable(delta_spark, str(tmp_path / "table"), str(tmp_path / "root"))
    copy = str(tmp_path / "copy")
    table.create("id bigint, name string, price double, tags array<string>")
    table.sql(
        "insert into {t} values (1, 'a', 1.5, array('x', 'y')), (2, 'b', 2.5, array()), "
        "(9007199254740993, 'c', -0.1, array('z'))"
    )
    table.sql("update {t} set name = 'd' where id = 1")
    table.sql("delete from {t} where id = 2")
    with running_registry() as registry:
        settings = {"registry": registry.url, **FORMATS[value_format]}
        table.copy(value_format=value_format, starting_version="earliest", **settings)
        decode = {"key": "string", "value": value_format, "registry": registry.url}
        report = to_delta.run(delta_spark, table.root, TOPIC, copy, mode="upsert", decode=decode)
    assert report.rows.inserted == 2
    rows = delta_spark.sql(f"select key, value.* from delta.`{copy}` order by id").collect()
    expected = delta_spark.sql(f"select string(id) key, * from {table.name} order by id").collect()
    assert rows == expected
