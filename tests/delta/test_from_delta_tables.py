"""`from-delta` and what happens to a table: appends, new schemas, RESTORE, REPLACE, VACUUM."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import klog
from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs.copying_from_delta.table_log import TableLog
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.values import decode
from tests.delta.changed_table import FEED, ChangedTable
from tests.delta.copied_rows import TOPIC
from tests.delta.expired_commits import expire_commits

pytestmark = [pytest.mark.delta, pytest.mark.full]


@pytest.fixture
def table(delta_spark: SparkSession, tmp_path: Path) -> ChangedTable:
    return ChangedTable(delta_spark, str(tmp_path / "table"), str(tmp_path / "root"))


def test_a_table_that_only_grows_needs_no_feed(table: ChangedTable) -> None:
    """Its versions are read from the start; one that deletes is an error with the way on."""
    table.create(**{FEED.replace(".", "_"): "false"})
    table.sql("insert into {t} values (1, 'a'), (2, 'b')")
    table.sql("insert into {t} values (3, 'c')")
    report = table.copy(starting_version="earliest", key=())
    assert table.versions(report) == [(1, 2, 0), (2, 1, 0)]
    assert sorted(value["id"] for _, value in table.records()) == [1, 2, 3]
    assert {key for key, _ in table.records()} == {None}
    table.sql("insert into {t} values (4, 'd')")
    table.sql("delete from {t} where id = 1")
    with pytest.raises(KlogError, match=r"version 4 \(DELETE\) changes or removes rows, and the"):
        table.copy()
    assert len(table.records()) == 4  # The version before it is there.
    with pytest.raises(KlogError, match="--restart-at 5, which leaves out this version"):
        table.copy(dry_run=True)
    table.sql(f"alter table {{t}} set tblproperties ({FEED} = true)")
    report = table.copy(restart_at=5)
    assert (report.versions, report.end_version) == ((), 5)
    table.sql("delete from {t} where id = 2")
    with pytest.raises(OptionError, match=r"version 6 .* which needs --key"):
        table.copy(key=())
    assert table.versions(table.copy()) == [(6, 1, 1)]


def test_schema_changes(table: ChangedTable) -> None:
    """A version has the schema of its time: columns that are added, renamed, widened, dropped."""
    table.create(
        "id bigint, name string, d decimal(5, 2)",
        delta_columnMapping_mode="name",
        delta_enableTypeWidening="true",
        delta_enableDeletionVectors="true",
    )
    table.sql("insert into {t} values (1, 'a', 1.5), (2, 'b', 2.5)")
    table.sql("alter table {t} add column more struct<x: array<int>>")
    table.sql("insert into {t} values (3, 'c', 3.5, struct(array(1, null)))")
    table.sql("alter table {t} rename column name to label")
    table.sql("update {t} set label = 'aa' where id = 1")
    table.sql("alter table {t} alter column d type decimal(20, 2)")
    table.sql("insert into {t} values (4, 'd', 123456789012345.67, null)")
    table.sql("alter table {t} drop column more")
    table.sql("delete from {t} where id = 2")
    report = table.copy(starting_version=0)
    assert table.versions(report) == [(1, 2, 0), (3, 1, 0), (5, 1, 0), (7, 1, 0), (9, 1, 1)]
    assert table.records() == [
        ("1", {"id": 1, "name": "a", "d": 1.5}),
        ("1", {"id": 1, "label": "aa", "d": 1.5, "more": None}),
        ("2", {"id": 2, "name": "b", "d": 2.5}),
        ("2", None),
        ("3", {"id": 3, "name": "c", "d": 3.5, "more": {"x": [1, None]}}),
        ("4", {"id": 4, "label": "d", "d": 123456789012345.67, "more": None}),
    ]
    # RESTORE to a narrower type: rows that go are read with the schema that they had.
    table.sql("restore table {t} to version as of 1")
    assert table.versions(table.copy()) == [(10, 4, 2)]
    assert table.last_values() == table.rows()
    table.sql("insert overwrite {t} values (1, 'x', 9), (5, 'y', 8)")
    assert table.versions(table.copy()) == [(11, 3, 1)]
    assert table.last_values() == table.rows()
    table.sql("truncate table {t}")
    table.copy()
    assert table.last_values() == {}


def test_replaced_table(table: ChangedTable) -> None:
    """REPLACE gives a table another id; a copy that starts again has tombstones for old keys."""
    table.create().sql("insert into {t} values (1, 'a'), (2, 'b')")
    table.copy()
    table.sql(
        f"create or replace table {{t}} using delta tblproperties ({FEED} = true) "
        "as select 2L id, true as flag"
    )
    with pytest.raises(KlogError, match="dropped or replaced and created again"):
        table.copy()
    report = table.copy(restart_at="snapshot")
    assert table.versions(report) == [(2, 2, 1)]
    assert table.last_values() == table.rows() == {"2": {"id": 2, "flag": True}}
    table.sql("insert into {t} values (3, false)")
    assert table.versions(table.copy()) == [(3, 1, 0)]
    with pytest.raises(OptionError, match=r"the topic has version 3 .* only go up"):
        table.copy(restart_at="snapshot")


def _vacuum(table: ChangedTable) -> None:
    """Delete what only older versions need, however young it is."""
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # Else 10,000 tasks.
    }
    for name, text in settings.items():
        table.spark.conf.set(name, text)
    table.sql("vacuum {t} retain 0 hours")
    for name in settings:
        table.spark.conf.unset(name)


def test_lost_versions_and_files(table: ChangedTable) -> None:
    """Expired commits, deleted files and an older copy of the table are errors with the way on."""
    table.create(delta_checkpointInterval="5")
    table.sql("insert into {t} values (1, 'a'), (2, 'b'), (3, 'c')")
    table.copy()
    table.sql("update {t} set name = 'x' where id = 1")
    _vacuum(table)
    with pytest.raises(DataLossError, match=r"files of version 2 are gone: .*--restart-at 3,"):
        table.copy()
    table.sql("delete from {t} where id = 2")
    # Versions 3 and 4 are the start and the end of VACUUM.
    assert table.versions(table.copy(restart_at="snapshot")) == [(5, 3, 1)]
    assert table.last_values() == table.rows()
    table.sql("update {t} set name = concat(name, '+') where id = 3")
    expire_commits(table.spark, table.path)
    table.sql("update {t} set name = concat(name, '+') where id = 3")
    table.sql("delete from {t} where id = 1")
    with pytest.raises(DataLossError, match=r"version 6 is gone: .* \d is the earliest version"):
        table.copy()
    assert table.versions(table.copy(restart_at=9)) == [(9, 1, 0), (10, 1, 1)]
    assert table.last_values() == table.rows()
    kept = Path(table.path).with_name("kept")
    shutil.copytree(table.path, kept)
    table.sql("insert into {t} values (9, 'z')")
    assert table.versions(table.copy()) == [(11, 1, 0)]
    shutil.rmtree(table.path)
    kept.rename(table.path)
    jvm: Any = table.spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    with pytest.raises(DataLossError, match="is at version 10, and the topic has version 11"):
        table.copy()


VALUE = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Value {
  message Part { sint32 x = 1; optional string y = 2; }
  optional int64 id = 1; optional string d = 2; optional google.protobuf.Timestamp t = 3;
  optional string n = 4; optional string c = 5; optional bytes b = 6; optional double e = 7;
  map<int32, Part> m = 8; repeated Part a = 9; Part s = 10; optional bool i = 11;
}
"""


def test_types_in_protobuf(table: ChangedTable) -> None:
    """What Protobuf has no type for is its text in JSON."""
    table.create(
        "id bigint, d decimal(38, 2), t timestamp, n timestamp_ntz, c date, b binary, e double, "
        "m map<int, struct<x: int, y: string>>, a array<struct<x: int, y: string>>, "
        "s struct<x: int, y: string>, i boolean"
    )
    table.sql(
        "insert into {t} values (1, 123456789012345678901234567890123456.78, "
        "timestamp'2024-05-06 07:08:09.123456Z', timestamp_ntz'2024-05-06 07:08:09.123456', "
        "date'2024-05-06', x'00ff', 0.1, map(5, struct(-1, 'z')), array(struct(1, 'p')), "
        "struct(2, null), false), (2, null, null, null, null, null, null, null, null, null, null)"
    )
    table.copy(value_format="protobuf", value_schema=VALUE)
    topic = table.spark.read.format("klog").option("subscribe", TOPIC).load(table.root)
    values = decode(topic, value="protobuf", value_schema=VALUE).orderBy("value.id")
    first, second = (row["value"].asDict(recursive=True) for row in values.collect())
    assert first.pop("t").timestamp() == 1714979289.123456
    part = {"x": -1, "y": "z"}
    assert first == {
        "id": 1, "d": "123456789012345678901234567890123456.78",
        "n": "2024-05-06T07:08:09.123456", "c": "2024-05-06", "b": b"\0\xff", "e": 0.1,
        "m": {5: part}, "a": [{"x": 1, "y": "p"}], "s": {"x": 2, "y": None}, "i": False,
    }  # fmt: skip
    assert second == dict.fromkeys(second) | {"id": 2, "m": {}, "a": []}


def test_types_as_json(table: ChangedTable) -> None:
    """No digit, microsecond, zone or null is lost."""
    table.create(
        "id timestamp, a decimal(38, 2), b timestamp_ntz, c date, d binary, e double, "
        "f map<string, array<struct<x: int, y: string>>>, `g.h` float, i boolean, j variant"
    )
    table.sql(
        "insert into {t} values (timestamp'2024-05-06 07:08:09.123456+02:00', "
        "123456789012345678901234567890123456.78, timestamp_ntz'1969-12-31 23:59:59.000001', "
        "date'0001-01-01', X'00ff', double('NaN'), map('k', array(struct(1, null))), 1.5, true, "
        "parse_json('[1, {\"a\": null}]'))"
    )
    table.copy(exclude=["i"])
    (record,) = klog.open(table.root).scan(TOPIC).read_all().to_pylist()
    assert record["key"] == b"2024-05-06T05:08:09.123456Z"
    assert record["value"].decode() == (
        '{"id":"2024-05-06T05:08:09.123456Z","a":123456789012345678901234567890123456.78,'
        '"b":"1969-12-31T23:59:59.000001","c":"0001-01-01","d":"AP8=","e":"NaN",'
        '"f":{"k":[{"x":1,"y":null}]},"g.h":1.5,"j":[1,{"a":null}]}'
    )
    table.sql("insert into {t} select * from {t}")
    with pytest.raises(OptionError, match="--exclude: the table has no column gh; did you mean"):
        table.copy(exclude=["gh"])


def test_keys_of_several_columns(table: ChangedTable) -> None:
    table.create("id bigint, name string, x int", delta_columnMapping_mode="name")
    table.sql("insert into {t} values (1, 'a', 7)")
    table.sql("delete from {t}")
    table.copy(key=["name", "id"], columns=["x"], starting_version="earliest")
    rows = klog.open(table.root).scan(TOPIC).read_all().to_pylist()
    assert [(json.loads(row["key"]), row["value"]) for row in rows] == [
        ({"name": "a", "id": 1}, b'{"x":7}'),
        ({"name": "a", "id": 1}, None),
    ]


def test_a_key_that_gets_another_text(table: ChangedTable) -> None:
    """DECIMAL 1.50 would be 1.5000, and its tombstone that of no record."""
    table.create("id decimal(5, 2), name string", delta_enableTypeWidening="true")
    table.sql("insert into {t} values (1.5, 'a')")
    table.copy()
    table.sql("alter table {t} alter column id type decimal(10, 4)")
    table.sql("delete from {t}")
    with pytest.raises(KlogError, match=r"version 2 .* gives the key id the type decimal\(10,4\)"):
        table.copy()
    table.copy(restart_at="snapshot")
    assert table.last_values() == {}


def test_avro_of_rows_that_replace_others(table: ChangedTable) -> None:
    """The type of a value is that of the rows that are written, whatever the removed ones had."""
    table.create("id bigint, d string", delta_columnMapping_mode="name")
    table.sql("insert into {t} values (1, 'abc'), (2, 'abc')")
    table.sql("alter table {t} drop column d")
    table.sql("alter table {t} add column d int")
    table.sql("insert overwrite {t} values (1, 7)")
    table.sql("restore table {t} to version as of 1")
    table.sql("restore table {t} to version as of 4")
    table.copy(value_format="avro", starting_version="earliest")
    topic = table.spark.read.format("klog").option("subscribe", TOPIC).load(table.root)
    last = topic.where("key = '1'").orderBy("offset").tail(1)
    schema = {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "id", "type": ["null", "long"]},
            {"name": "d", "type": ["null", "int"]},
        ],
    }
    frame = table.spark.createDataFrame(last, topic.schema)
    (row,) = decode(frame, value="avro", value_schema=schema).collect()
    assert tuple(row["value"]) == (1, 7)


def test_a_table_that_was_replaced_and_restored(table: ChangedTable) -> None:
    """RESTORE brings the id back, too: the versions between are those of another table."""
    table.create().sql("insert into {t} values (1, 'a'), (2, 'b')")
    table.copy()
    table.sql(
        f"create or replace table {{t}} using delta tblproperties ({FEED} = true) "
        "as select 3L id, 'x' name"
    )
    table.sql("restore table {t} to version as of 1")
    with pytest.raises(KlogError, match="replaced the table, and a later version has brought"):
        table.copy()
    table.copy(restart_at="snapshot")
    assert table.last_values() == table.rows()


def test_errors_name_table_and_version(table: ChangedTable) -> None:
    table.create(delta_columnMapping_mode="name").sql("insert into {t} values (1, 'a')")
    table.sql("alter table {t} rename column id to number")
    table.sql("insert into {t} values (2, 'b')")
    for dry_run in (True, False):
        with pytest.raises(OptionError, match=r"version 1: --key: .* no column number.* its time,"):
            table.copy(key="number", starting_version="earliest", dry_run=dry_run)
    with pytest.raises(OptionError, match="--key: the table has no column id"):
        table.copy(dry_run=True)


def test_the_earliest_version_is_one_whose_commit_is_left(table: ChangedTable) -> None:
    """A checkpoint has the rows of a version, and says nothing about what it changed."""
    table.create(delta_checkpointInterval="5")
    for number in range(1, 8):
        table.sql(f"insert into {{t}} values ({number}, 'a')")
    for version in range(6):
        (Path(table.path) / "_delta_log" / f"{version:020d}.json").unlink()
    assert table.versions(table.copy(starting_version="earliest")) == [(6, 1, 0), (7, 1, 0)]


def test_a_name_that_stands_for_another_place(delta_spark: SparkSession, tmp_path: Path) -> None:
    """A continuous run would wait for ever for versions of the first table."""

    def create(place: str) -> None:
        delta_spark.sql(f"create table moved using delta location '{tmp_path / place}' as select 1")

    create("first")
    log = TableLog(delta_spark, DeltaTarget(delta_spark, "moved"))
    assert log.refresh() == 0
    delta_spark.sql("drop table moved")
    create("second")
    with pytest.raises(KlogError, match="table moved: it was dropped or replaced"):
        log.refresh()
    delta_spark.sql("drop table moved")
