"""Versions that a topic cannot get, because the log of the table does not say what changed.

The rule: an error names the version, what was done, and the way on. A version that only adds rows
can always be copied. One that changes or removes rows needs the change data feed, which records
them, and a key, as their records replace earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from klog.errors import KlogError, OptionError
from klog.jobs.copying_from_delta.start_version import RESTART_AT_SNAPSHOT
from klog.jobs.copying_from_delta.version_actions import (
    CHANGE_COLUMNS,
    TableMetadata,
    TableVersion,
)

_WHOLE_NUMBERS = frozenset({"byte", "short", "integer", "long"})
"""Types with the same text."""


def check_reserved_columns(metadata: TableMetadata, table: str) -> None:
    """Refuse a table with a column that has a name of Delta's changes.

    Args:
        metadata: The metadata of the table.
        table: The table, for the error.

    Raises:
        OptionError: There is such a column.
    """
    for name in CHANGE_COLUMNS:
        if name in metadata.columns:
            raise OptionError(
                f"table {table}: the column {name} has a name that Delta gives to changes. Rename "
                "it: ALTER TABLE ... RENAME COLUMN"
            )


def check_new_metadata(
    version: TableVersion, before: TableMetadata, table: str, key: Sequence[str]
) -> None:
    """Refuse a version after which records would not go on with those before it.

    Args:
        version: What the version did; it has new metadata.
        before: The metadata before it.
        table: The table, for the error.
        key: The columns of the key.

    Raises:
        KlogError: It is the version of another table, or a key has another text from it on.
    """
    metadata = version.metadata
    assert metadata is not None
    at = f"table {table}: version {version.version} ({version.operation or 'a commit'})"
    if metadata.table_id != before.table_id:
        raise KlogError(
            f"{at} replaced the table, and a later version has brought it back. "
            f"{RESTART_AT_SNAPSHOT}"
        )
    for name in key:
        kind, kind_before = metadata.types.get(name), before.types.get(name)
        if kind is None or kind_before is None or kind == kind_before:
            continue
        if {str(kind), str(kind_before)} <= _WHOLE_NUMBERS:
            continue
        raise KlogError(
            f"{at} gives the key {name} the type {kind}, and it was {kind_before}: one key would "
            "have two texts, and tombstones would miss the records of before. "
            f"{RESTART_AT_SNAPSHOT}"
        )


def check_version(
    version: TableVersion, metadata: TableMetadata, table: str, *, has_key: bool
) -> None:
    """Refuse a version that cannot be copied.

    Args:
        version: What the version did; it has changes.
        metadata: The metadata that the table has at the version.
        table: The table, for the error.
        has_key: Whether records have keys.

    Raises:
        KlogError: The change data feed is off, and rows were changed or removed.
        OptionError: There is no key for changed rows.
    """
    if version.is_append:
        return
    did = f"table {table}: version {version.version} ({version.operation or 'a commit'})"
    if not metadata.has_change_feed:
        raise KlogError(
            f"{did} changes or removes rows, and the change data feed is off, so the changes are "
            "not recorded. Turn the feed on: ALTER TABLE ... SET TBLPROPERTIES "
            "(delta.enableChangeDataFeed = true). Then run the job once with --restart-at "
            "snapshot, which copies the rows that the table has now, or with --restart-at "
            f"{version.version + 1}, which leaves out this version"
        )
    if not has_key:
        raise OptionError(
            f"{did} changes or removes rows, which needs --key: the record of a row replaces the "
            "earlier ones of its key. Give the columns that identify a row"
        )
