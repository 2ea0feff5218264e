"""What one commit of a Delta table did, by the actions that its log has.

The rule (Delta's protocol, Actions): a file that is added or removed changes rows if its
`dataChange` is true. Files of the change data feed (`cdc`), if there are any, have all changes of
their commit. A MERGE may rewrite files although it has changed no row; Delta's own reader goes by
its metrics then, and so does klog.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

CHANGE_TYPE = "_change_type"
CHANGE_COLUMNS = (CHANGE_TYPE, "_commit_version", "_commit_timestamp")
"""What Delta's reader of changes adds to the columns of a table."""
_MERGED_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """What a version of a table is like.

    Attributes:
        table_id: The id of the table, which one that is created again does not have.
        has_change_feed: Whether its writers record the changes of rows.
        columns: The names of the columns.
        types: By column its type, as Delta's JSON has it.
    """

    table_id: str
    has_change_feed: bool
    columns: tuple[str, ...]
    types: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @staticmethod
    def of_action(fields: Mapping[str, Any]) -> TableMetadata:
        """Return the metadata of an action `metaData`.

        Args:
            fields: The fields of the action.
        """
        configuration = fields.get("configuration") or {}
        has_change_feed = configuration.get("delta.enableChangeDataFeed", "").lower() == "true"
        schema = json.loads(fields.get("schemaString") or '{"fields": []}')
        types = {column["name"]: column["type"] for column in schema["fields"]}
        return TableMetadata(fields["id"], has_change_feed, tuple(types), types)


@dataclass(frozen=True, slots=True)
class TableVersion:
    """What the commit of one version did.

    Attributes:
        version: The version.
        operation: Such as `WRITE` or `OPTIMIZE`; empty if the commit does not say.
        added_files: How many files it added, with changes of rows.
        removed_files: How many files it removed, with changes of rows.
        change_files: How many files of the change data feed it has.
        metadata: The metadata from this version on; None if they stay the same.
        has_new_schema: Whether rows of this version may need another snapshot to be read.
    """

    version: int
    operation: str = ""
    added_files: int = 0
    removed_files: int = 0
    change_files: int = 0
    metadata: TableMetadata | None = None
    has_new_schema: bool = False

    @property
    def has_changes(self) -> bool:
        """Return whether it changed rows."""
        return bool(self.added_files or self.removed_files or self.change_files)

    @property
    def is_append(self) -> bool:
        """Return whether it only added rows."""
        return bool(self.added_files) and not (self.removed_files or self.change_files)


def parse_version(version: int, lines: Iterable[str]) -> TableVersion:
    """Return what a commit did.

    Args:
        version: Its version.
        lines: The lines of its file in Delta's log.
    """
    added = removed = change_files = 0
    info: Mapping[str, Any] = {}
    metadata: TableMetadata | None = None
    has_new_schema = False
    for line in lines:
        action = json.loads(line) if line.strip() else {}
        added += _changes_rows(action.get("add"))
        removed += _changes_rows(action.get("remove"))
        change_files += "cdc" in action
        info = action.get("commitInfo") or info
        if "metaData" in action:
            metadata = TableMetadata.of_action(action["metaData"])
        has_new_schema |= "metaData" in action or "protocol" in action
    operation = info.get("operation") or ""
    if operation == "MERGE" and not change_files and _has_merged_nothing(info):
        added = removed = 0
    return TableVersion(version, operation, added, removed, change_files, metadata, has_new_schema)


def _changes_rows(file: Mapping[str, Any] | None) -> bool:
    """Return whether a file that is added or removed changes rows."""
    return file is not None and bool(file.get("dataChange", True))


def _has_merged_nothing(info: Mapping[str, Any]) -> bool:
    metrics = info.get("operationMetrics") or {}
    return all(metrics.get(name) == "0" for name in _MERGED_ROWS)
