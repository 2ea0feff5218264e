"""to-delta with decoded keys and values: columns, schemas that evolve, records that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from klog.errors import OptionError, SchemaError, UndecodableError
from klog.jobs.to_delta import run
from tests.delta.copied_rows import TOPIC, append, new_log

pytestmark = pytest.mark.delta

JSON: dict[str, Any] = {"value": "json", "key": "string"}


def values_of(spark: SparkSession, table: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(table).orderBy("offset").selectExpr(*columns)
    return [tuple(row) for row in rows.collect()]


def documents(*values: Any) -> list[tuple[str | None, str | None]]:
    return [(f"k{number}", json.dumps(value)) for number, value in enumerate(values)]


@pytest.fixture
def place(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "root"), str(tmp_path / "table")


def test_json_gets_the_type_of_a_sample(delta_spark: SparkSession, place: tuple[str, str]) -> None:
    root, table = place
    log = new_log(root, 1)
    append(log, documents({"id": 1, "name": "a"}, {"id": 2, "tags": ["x"]}))
    run(delta_spark, root, TOPIC, table, decode=JSON)
    rows = values_of(delta_spark, table, "key", "value.id", "value.name", "value.tags")
    assert rows == [("k0", 1, "a", None), ("k1", 2, None, ["x"])]
    # A field that the table does not have is left out.
    append(log, documents({"id": 3, "city": "Bonn"}))
    run(delta_spark, root, TOPIC, table, decode=JSON)
    assert values_of(delta_spark, table, "value.id") == [(1,), (2,), (3,)]
    append(log, documents({"id": 4, "city": "Rome"}))
    run(delta_spark, root, TOPIC, table, decode=JSON, merge_schema=True)
    rows = values_of(delta_spark, table, "value.id", "value.city")
    assert rows == [(1, None), (2, None), (3, None), (4, "Rome")]


def test_a_field_of_another_type(delta_spark: SparkSession, place: tuple[str, str]) -> None:
    root, table = place
    log = new_log(root, 1)
    append(log, documents({"id": 1}))
    run(delta_spark, root, TOPIC, table, decode=JSON)
    append(log, documents({"id": "two"}, {"id": 3}))
    with pytest.raises(UndecodableError, match=r"orders-0 offset 1: the value cannot be decoded"):
        run(delta_spark, root, TOPIC, table, decode=JSON)
    with pytest.raises(SchemaError, match=r"field id: its type was bigint"):
        run(delta_spark, root, TOPIC, table, decode=JSON, merge_schema=True)
    dead = f"{table}-dead"
    arguments = {"decode": JSON, "on_error": "dead-letters", "dead_letter_table": dead}
    report = run(delta_spark, root, TOPIC, table, merge_schema=True, **arguments)  # type: ignore[arg-type]
    assert report.rows.inserted == 1
    assert values_of(delta_spark, table, "offset", "value.id") == [(0, 1), (2, 3)]
    ((offset, value, reason),) = values_of(delta_spark, dead, "offset", "string(value)", "reason")
    assert (offset, value) == (1, '{"id": "two"}')
    assert reason.startswith("value: json: not JSON, or a field has another type")


def test_null_with_a_reason(delta_spark: SparkSession, place: tuple[str, str]) -> None:
    root, table = place
    log = new_log(root, 1)
    append(log, [("a", '{"n": 1}'), ("b", "x"), ("c", None)])
    decode = {"value": "json", "value_schema": "n int"}
    run(delta_spark, root, TOPIC, table, decode=decode, on_error="null")
    assert values_of(delta_spark, table, "value.n", "value_error IS NULL") == [
        *((1, True), (None, False), (None, True)),
    ]


def test_dead_letters_are_there_once(delta_spark: SparkSession, place: tuple[str, str]) -> None:
    """A table that is restored gets its rows again; the dead letters are replaced."""
    root, table = place
    dead = f"{table}-dead"
    log = new_log(root, 2)
    arguments: dict[str, Any] = {
        "decode": {"value": "json", "value_schema": "id int"},
        "on_error": "dead-letters",
        "dead_letter_table": dead,
        "options": {"maxOffsetsPerTrigger": "15"},
    }
    for _ in range(2):
        append(log, [(f"k{number}", '{"id": 1}' if number % 5 else "bad") for number in range(20)])
        run(delta_spark, root, TOPIC, table, **arguments)
    delta_spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    run(delta_spark, root, TOPIC, table, **arguments)
    for path, count in ((table, 32), (dead, 8)):
        rows = values_of(delta_spark, path, "partition", "offset")
        assert (len(rows), len(set(rows))) == (count, count)


@pytest.mark.full
def test_a_note_that_is_written_again_has_no_dead_letters(
    delta_spark: SparkSession, place: tuple[str, str]
) -> None:
    root, table = place
    append(new_log(root, 1), [("k", "bad")])
    names = ("logRetentionDuration", "deletedFileRetentionDuration")
    arguments: dict[str, Any] = {
        "decode": {"value": "json", "value_schema": "id int"},
        "on_error": "dead-letters",
        "dead_letter_table": f"{table}-dead",
        "table_properties": {f"delta.{name}": "interval 0 seconds" for name in names},
    }
    for _ in range(2):
        assert run(delta_spark, root, TOPIC, table, **arguments).rows.batches == 1
    assert values_of(delta_spark, f"{table}-dead", "offset") == [(0,)]


@pytest.mark.full
def test_dead_letters_of_topics_of_one_name(
    delta_spark: SparkSession, place: tuple[str, str]
) -> None:
    """Two roots have a topic of the same name; neither replaces dead letters of the other."""
    root, table = place
    arguments: dict[str, Any] = {
        "decode": {"key": "string", "value": "json", "value_schema": "id int"},
        "on_error": "dead-letters",
        "dead_letter_table": f"{table}-dead",
    }
    for number in range(2):
        append(new_log(f"{root}-{number}", 1), [("k", "bad"), ("k", "worse")])
        run(delta_spark, f"{root}-{number}", TOPIC, f"{table}-{number}", **arguments)
    ids = values_of(delta_spark, f"{table}-dead", "topic_id", "offset")
    assert (len(ids), len(set(ids))) == (4, 4)


def test_an_upsert_of_a_key_that_cannot_be_decoded(
    delta_spark: SparkSession, place: tuple[str, str]
) -> None:
    root, table = place
    append(new_log(root, 1), [("k", "v")])
    decode = {"key": "integer", "value": "string"}
    with pytest.raises(
        UndecodableError, match=r"orders-0, offset 0: its key cannot be decoded.*integer: "
    ):
        run(delta_spark, root, TOPIC, table, mode="upsert", decode=decode, on_error="null")


@pytest.mark.full
def test_upsert_of_decoded_values(delta_spark: SparkSession, place: tuple[str, str]) -> None:
    """A record that cannot be decoded is not taken for a tombstone."""
    root, table = place
    log = new_log(root, 1)
    decode = {"key": "string", "value": "json", "value_schema": "n int"}
    append(log, [("a", '{"n": 1}'), ("b", '{"n": 2}'), ("c", '{"n": 3}')])
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=decode, on_error="null")
    append(log, [("a", None), ("b", "bad"), ("c", '{"n": 4}')])
    run(delta_spark, root, TOPIC, table, mode="upsert", decode=decode, on_error="null")
    rows = values_of(delta_spark, table, "key", "value.n", "value_error IS NULL")
    assert rows == [("b", None, False), ("c", 4, True)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_error": "ignore"}, "--on-error: must be one of fail, null, dead-letters"),
        ({"on_error": "null"}, "bytes are always taken"),
        ({"decode": JSON, "on_error": "dead-letters"}, "--dead-letter-table: give both"),
        ({"decode": JSON, "dead_letter_table": "x"}, "--dead-letter-table: give both"),
        ({"decode": {"value": "jsn"}}, "Did you mean json?"),
    ],
)
def test_wrong_arguments(
    delta_spark: SparkSession, place: tuple[str, str], arguments: Any, message: str
) -> None:
    root, table = place
    append(new_log(root, 1), documents({"id": 1}))
    with pytest.raises(OptionError) as exc:
        run(delta_spark, root, TOPIC, table, **arguments)
    assert message in str(exc.value)
