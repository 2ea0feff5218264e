"""The versions of a Delta table: what each one did, and its rows.

The rule: a version is read with the schema that it has, so a column that is renamed later has its
old name. Delta's public reader of changes refuses versions that are older than the retention of
deleted files, also those of tables that have deleted nothing, and tables without a change data
feed. So the commits and the changes are read by the classes that it uses itself, which this module
alone touches. Rows of a snapshot are read by the public API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from klog.errors import DataLossError, KlogError, OptionError
from klog.jobs.copying_from_delta.start_version import RESTART_AT_SNAPSHOT
from klog.jobs.copying_from_delta.version_actions import (
    CHANGE_TYPE,
    TableMetadata,
    TableVersion,
    parse_version,
)
from klog.jobs.shared.delta.delta_session import spark_errors
from klog.jobs.shared.delta.delta_target import DeltaTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NONE_LEFT = re.compile("DELTA_NO_RECREATABLE_HISTORY_FOUND|DELTA_NO_COMMITS_FOUND")
_EXPIRED = re.compile("DELTA_TRUNCATED_TRANSACTION_LOG|DELTA_VERSION_NOT_FOUND")
INSERT, DELETE = "insert", "delete"
UPDATE_PREIMAGE, UPDATE_POSTIMAGE = "update_preimage", "update_postimage"
_LINES_PER_CALL = 2000
"""A line of a commit has about 1 KiB; Python gets so many from the JVM at a time."""


class TableLog:
    """The log of one Delta table. It stays that of the table that was there first."""

    def __init__(self, spark: SparkSession, target: DeltaTarget) -> None:
        """Take the table.

        Raises:
            OptionError: There is no such table, or only a catalog can read it.
        """
        if not target.exists():
            raise OptionError(f"--table {target.name}: there is no such Delta table")
        self._spark, self._target = spark, target
        self._location = target.location()
        self._none = self._jvm.scala.Option.apply(None)
        self._schema_snapshot: Any = None
        self._metadata: TableMetadata | None = None
        self._metadata_before: TableMetadata | None = None
        self._log, self._snapshot = self._load()
        if self._snapshot.isCatalogOwned():
            raise OptionError(
                f"--table {target.name}: its commits are managed by a catalog, which this job does "
                "not read. Copy the table into one that is not, or drop the table feature"
            )

    @property
    def name(self) -> str:
        """Return the name of the table, as the user has it."""
        return self._target.name

    @property
    def path(self) -> str:
        """Return where the table lies, without the scheme of a URL."""
        return self._location.split(":", 1)[-1].lstrip("/")

    def refresh(self) -> int:
        """Look for new versions; return the newest one.

        Raises:
            KlogError: The name of the table stands for another place by now.
        """
        if not self._target.exists() or self._target.location() != self._location:
            raise KlogError(
                f"table {self.name}: it was dropped or replaced: it is not at {self._location} any "
                "more. Run the job again, with --restart-at snapshot if there is a new table"
            )
        self._log, self._snapshot = self._load()
        return int(self._snapshot.version())

    def metadata(self) -> TableMetadata:
        """Return the metadata of the newest version."""
        return _metadata_of(self._snapshot)

    def metadata_before(self, version: TableVersion) -> TableMetadata | None:
        """Return the metadata that the table has before a version; None if nothing says them.

        Args:
            version: The version that `versions` has yielded last.
        """
        if self._metadata_before is None and version.version > self.earliest_version():
            self._metadata_before = _metadata_of(self._snapshot_at(version.version - 1))
        return self._metadata_before

    def metadata_of(self, version: TableVersion) -> TableMetadata:
        """Return the metadata that the table has at a version.

        Args:
            version: The version that `versions` has yielded last.
        """
        if self._metadata is None:
            self._metadata = _metadata_of(self._snapshot_at(version.version))
        return self._metadata

    def earliest_version(self) -> int:
        """Return the first version whose commit, and whose rows then, the log still has.

        If there is none, it is the version after the newest one.
        """
        history = self._jvm.org.apache.spark.sql.delta.DeltaHistoryManager
        try:
            with_rows = int(self._log.history().getEarliestRecreatableCommit())
            return max(with_rows, int(history.getEarliestDeltaFile(self._log)))
        except spark_errors() as exc:
            if _NONE_LEFT.search(str(exc)) is None:
                raise
            return int(self._snapshot.version()) + 1

    def versions(self, first: int, last: int) -> Iterator[TableVersion]:
        """Yield what the versions of a range did; each commit is read when it is asked for.

        Args:
            first: The first version.
            last: The last version.

        Raises:
            DataLossError: The log does not have the commit of a version any more.
        """
        self._metadata = self._schema_snapshot = None
        commits = self._log.getChangeLogFiles(first, self._none, False)
        for expected in range(first, last + 1):
            commit = commits.next() if commits.hasNext() else None
            if commit is None or int(commit._1()) != expected:
                raise self.expired(expected)
            version = parse_version(expected, self._lines(commit._2()))
            self._metadata_before = self._metadata
            self._metadata = version.metadata or self._metadata
            if version.has_new_schema:
                self._schema_snapshot = None
            yield version

    def changes(self, version: TableVersion) -> list[DataFrame]:
        """Return the changed rows of a version: the table's columns and `CHANGE_COLUMNS`.

        A commit that replaces rows and the schema, such as RESTORE, has two frames. Delta's public
        reader reads both by the new schema: it fails if a type was wider before, and has nulls in
        the place of columns that were created again.

        Args:
            version: The version that `versions` has yielded last.
        """
        from pyspark.sql import functions as sf

        if self._schema_snapshot is None:
            self._schema_snapshot = self._snapshot_at(version.version)
        rows = self._changes(version, self._schema_snapshot)
        if version.metadata is None or version.change_files or not version.removed_files:
            return [rows]
        change = sf.col(CHANGE_TYPE)
        removed = self._changes(version, self._snapshot_at(version.version - 1))
        return [removed.where(change == DELETE), rows.where(change == INSERT)]

    def rows_at(self, version: int) -> DataFrame:
        """Return the rows that the table has at a version.

        Args:
            version: The version.
        """
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        return reader.load(self._location)

    def expired(self, version: int) -> DataLossError:
        """Return the error for a version whose commit the log does not have any more.

        Args:
            version: The version.
        """
        earliest = self.earliest_version()
        return DataLossError(
            f"table {self.name}: version {version} is gone: Delta has expired it "
            f"(delta.logRetentionDuration), and {earliest} is the earliest version that is left. "
            f"{restart_hint(earliest)}"
        )

    def _load(self) -> tuple[Any, Any]:
        logs = self._jvm.org.apache.spark.sql.delta.DeltaLog
        pair = logs.forTableWithSnapshot(self._spark._jsparkSession, self._location)
        return pair._1(), pair._2()

    def _snapshot_at(self, version: int) -> Any:
        try:
            return self._log.getSnapshotAt(version, self._none, self._none, False)
        except spark_errors() as exc:
            if _EXPIRED.search(str(exc)) is None:
                raise
            raise self.expired(version) from exc

    def _changes(self, version: TableVersion, schema_snapshot: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        snapshot = self._jvm.scala.Option.apply(schema_snapshot)
        reader = self._jvm.org.apache.spark.sql.delta.commands.cdc.CDCReader
        frame = reader.changesToBatchDF(
            self._log,
            version.version,
            version.version,
            self._spark._jsparkSession,
            self._none,
            snapshot,
            not version.change_files,  # Without them, the files say it, be the feed on or off.
            snapshot,
        )
        return DataFrame(frame, self._spark)

    def _lines(self, file: Any) -> Iterator[str]:
        lines = self._log.store().readAsIterator(file, self._log.newDeltaHadoopConf())
        try:
            groups = lines.grouped(_LINES_PER_CALL)
            while groups.hasNext():
                yield from groups.next().mkString("\n").split("\n")
        finally:
            lines.close()

    @property
    def _jvm(self) -> Any:
        return self._spark._jvm


def restart_hint(earliest: int) -> str:
    """Return what an error about lost versions tells the user to do.

    Args:
        earliest: The earliest version that can be copied.
    """
    return (
        f"{RESTART_AT_SNAPSHOT}, or with --restart-at {earliest}, which leaves out the versions "
        "before"
    )


def _metadata_of(snapshot: Any) -> TableMetadata:
    return TableMetadata.of_action(json.loads(snapshot.metadata().json())["metaData"])
