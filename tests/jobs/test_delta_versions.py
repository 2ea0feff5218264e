"""What a commit of a Delta table did, by the lines of its log, and which of them can be copied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from klog.errors import KlogError, OptionError
from klog.jobs.copying_from_delta.version_actions import (
    TableMetadata,
    TableVersion,
    parse_version,
)
from klog.jobs.copying_from_delta.version_checks import (
    check_new_metadata,
    check_reserved_columns,
    check_version,
)

WITH_FEED = TableMetadata("an-id", has_change_feed=True, columns=("id",))
WITHOUT_FEED = TableMetadata("an-id", has_change_feed=False, columns=("id",))


def parse(*actions: dict[str, Any]) -> TableVersion:
    return parse_version(7, [json.dumps(action) for action in actions])


def info(operation: str, **metrics: str) -> dict[str, Any]:
    return {"commitInfo": {"operation": operation, "operationMetrics": metrics}}


def add(*, changes_rows: bool = True) -> dict[str, Any]:
    # The text of statistics looks like an action.
    return {"add": {"path": "a", "dataChange": changes_rows, "stats": '{"dataChange":true}'}}


def remove(*, changes_rows: bool = True) -> dict[str, Any]:
    return {"remove": {"path": "b", "dataChange": changes_rows}}


def test_an_append() -> None:
    version = parse(info("WRITE"), add(), add(), {"txn": {"appId": "x", "version": 1}})
    assert version == TableVersion(7, "WRITE", added_files=2)
    assert version.is_append
    assert version.has_changes


@pytest.mark.parametrize(
    "actions",
    [
        (info("OPTIMIZE"), add(changes_rows=False), remove(changes_rows=False)),
        (info("SET TBLPROPERTIES"),),
        (info("VACUUM START"),),
        ({"txn": {"appId": "x", "version": 1}},),
        (),
        (
            info(
                "MERGE",
                numTargetRowsInserted="0",
                numTargetRowsUpdated="0",
                numTargetRowsDeleted="0",
            ),
            add(),
            remove(),
        ),
    ],
)
def test_versions_without_changes(actions: tuple[dict[str, Any], ...]) -> None:
    version = parse(*actions)
    assert not version.has_changes
    assert not version.is_append


def test_a_merge_that_does_not_say_what_it_did_has_changes() -> None:
    assert parse(info("MERGE", numTargetRowsInserted="0"), add(), remove()).has_changes


def test_changes_with_and_without_files_of_the_feed() -> None:
    update = parse(info("UPDATE"), remove(), add(), {"cdc": {"path": "c", "dataChange": False}})
    assert (update.added_files, update.removed_files, update.change_files) == (1, 1, 1)
    assert not update.is_append
    assert not parse(info("DELETE"), remove()).is_append


def test_metadata() -> None:
    schema = {"type": "struct", "fields": [{"name": "a", "type": "long"}]}
    fields = {
        "id": "an-id",
        "schemaString": json.dumps(schema),
        "configuration": {"delta.enableChangeDataFeed": "TRUE"},
    }
    version = parse(info("CREATE TABLE"), {"metaData": fields})
    assert version.metadata == TableMetadata("an-id", has_change_feed=True, columns=("a",))
    assert version.has_new_schema
    assert parse({"protocol": {"minReaderVersion": 1}}).has_new_schema


def test_versions_that_cannot_be_copied() -> None:
    append, update = TableVersion(7, "WRITE", 1), TableVersion(8, "UPDATE", 1, 1, 1)
    check_version(append, WITHOUT_FEED, "t", has_key=False)
    check_version(update, WITH_FEED, "t", has_key=True)
    with pytest.raises(KlogError, match=r"table t: version 8 \(UPDATE\) .*--restart-at 9"):
        check_version(update, WITHOUT_FEED, "t", has_key=True)
    with pytest.raises(OptionError, match="needs --key"):
        check_version(update, WITH_FEED, "t", has_key=False)


def test_columns_with_names_of_changes() -> None:
    check_reserved_columns(WITH_FEED, "t")
    metadata = TableMetadata("an-id", has_change_feed=False, columns=("id", "_change_type"))
    with pytest.raises(OptionError, match="table t: the column _change_type has a name"):
        check_reserved_columns(metadata, "t")


def metadata_with(kind: str, table_id: str = "an-id") -> TableMetadata:
    return TableMetadata(table_id, has_change_feed=True, columns=("id",), types={"id": kind})


@pytest.mark.parametrize(
    ("before", "after", "key", "is_refused"),
    [
        ("integer", "long", "id", False),
        ("integer", "integer", "id", False),
        ("integer", "double", "id", True),
        ("decimal(5,2)", "decimal(10,4)", "id", True),
        ("date", "timestamp_ntz", "id", True),
        ("date", "timestamp_ntz", "another", False),
    ],
)
def test_types_of_keys_that_change(before: str, after: str, key: str, is_refused: bool) -> None:
    version = TableVersion(4, "CHANGE COLUMN", metadata=metadata_with(after))
    if not is_refused:
        check_new_metadata(version, metadata_with(before), "t", [key])
        return
    with pytest.raises(KlogError, match=r"version 4 \(CHANGE COLUMN\) gives the key id the type"):
        check_new_metadata(version, metadata_with(before), "t", [key])


def test_a_version_of_another_table() -> None:
    version = TableVersion(4, "REPLACE TABLE", metadata=metadata_with("long", "other-id"))
    with pytest.raises(KlogError, match="replaced the table, and a later version has brought"):
        check_new_metadata(version, metadata_with("long"), "t", [])
