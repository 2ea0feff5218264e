"""One Delta table, named by its path or by its name in a catalog.

The rule: what Delta's public API has is asked by it. The numbers of transactions and the statistics
of files are only in its snapshot, a class of Delta's own, which this module alone touches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from klog.errors import OptionError

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.types import StructType

_PATH_PREFIX = "delta.`"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_HISTORY_PAGE = 20
_HISTORY_COLUMNS = (
    "version",
    "operation",
    "operationParameters",
    "userMetadata",
    "operationMetrics",
    "timestamp",
)


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One commit of a Delta table, as its history has it.

    Attributes:
        version: The version that it made.
        operation: Such as `WRITE`, `MERGE` or `RESTORE`.
        parameters: The operation's parameters.
        user_metadata: What the writer has said about it.
        metrics: What the operation did, by Delta's names.
        timestamp_ms: When it was made, in ms.
    """

    version: int
    operation: str
    parameters: Mapping[str, str | None]
    user_metadata: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    timestamp_ms: int = 0


class TableSnapshot:
    """A Delta table at one version."""

    def __init__(self, spark: SparkSession, snapshot: Any) -> None:
        """Take the snapshot, an object of Delta's."""
        self._spark, self._snapshot = spark, snapshot
        self.version = int(snapshot.version())

    @cached_property
    def table_id(self) -> str:
        """Return the id of the table, which a clone does not have."""
        return str(self._snapshot.metadata().id())

    @cached_property
    def schema(self) -> StructType:
        """Return the type of the rows; metadata of a column has what Delta keeps of it."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self._snapshot.metadata().schemaString()))

    @cached_property
    def column_names(self) -> frozenset[str]:
        """Return the names of the columns in lower case, as Delta tells them apart."""
        return frozenset(self._physical_names)

    def physical_names(self, columns: Sequence[str]) -> dict[str, str]:
        """Return the names that columns have in files and statistics.

        Args:
            columns: The names of columns of the table, in lower case.
        """
        return {column: self._physical_names[column] for column in columns}

    @cached_property
    def log_retention_ms(self) -> int:
        """Return how long the table's log keeps its commits (`delta.logRetentionDuration`)."""
        return int(self._snapshot.deltaLog().deltaRetentionMillis(self._snapshot.metadata()))

    @cached_property
    def _physical_names(self) -> dict[str, str]:
        return {
            column.name.lower(): column.metadata.get(_PHYSICAL_NAME, column.name)
            for column in self.schema.fields
        }

    def transaction_version(self, application_id: str) -> int | None:
        """Return the version of an application's last transaction; None if it has none.

        Args:
            application_id: The `txnAppId` of its writes.
        """
        version = self._snapshot.transactions().get(application_id)
        return int(version.get()) if version.isDefined() else None

    def files(self) -> DataFrame:
        """Return the files of the table, one row for each, with `stats` and `partitionValues`."""
        from pyspark.sql import DataFrame

        return DataFrame(self._snapshot.allFiles().toDF(), self._spark)


class DeltaTarget:
    """A Delta table that may not exist yet."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        """Take the table as the user has named it: a path, a URL, or a name in a catalog."""
        self._spark, self.name = spark, name
        path = _path_of(name)
        self._path = _absolute(spark, path) if path is not None else None

    def exists(self) -> bool:
        """Return whether the table exists.

        Raises:
            OptionError: There is a table of another format.
        """
        from delta.tables import DeltaTable

        if self._path is not None:
            return bool(DeltaTable.isDeltaTable(self._spark, self._path))
        if not self._spark.catalog.tableExists(self.name):
            return False
        provider = self._spark.sql(f"DESCRIBE DETAIL {self.name}").first()
        if provider is None or provider["format"] != "delta":
            raise OptionError(f"--table {self.name}: it is not a Delta table. Give another name")
        return True

    def create(
        self, schema: StructType, properties: Mapping[str, str], cluster_by: Sequence[str]
    ) -> None:
        """Create the table, unless it exists.

        Args:
            schema: Its columns.
            properties: Its table properties.
            cluster_by: The columns of its liquid clustering.
        """
        from delta.tables import DeltaTable

        builder = DeltaTable.createIfNotExists(self._spark).addColumns(schema)
        builder = (
            builder.tableName(self.name) if self._path is None else builder.location(self._path)
        )
        for name, value in properties.items():
            builder = builder.property(name, value)
        if cluster_by:
            builder = builder.clusterBy(*cluster_by)
        builder.execute()

    def table(self) -> DeltaTable:
        """Return the table by Delta's API."""
        from delta.tables import DeltaTable

        if self._path is not None:
            return DeltaTable.forPath(self._spark, self._path)
        return DeltaTable.forName(self._spark, self.name)

    def rows(self) -> DataFrame:
        """Return the rows that the table has now."""
        return self.table().toDF()

    def rows_at(self, version: int) -> DataFrame:
        """Return the rows that the table has at a version.

        Args:
            version: The version.
        """
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        return reader.table(self.name) if self._path is None else reader.load(self._path)

    def location(self) -> str:
        """Return the path or URL of the table, which exists."""
        if self._path is not None:
            return self._path
        detail = self._spark.sql(f"DESCRIBE DETAIL {self.name}").collect()[0]
        return str(detail["location"])

    def optimize(self, zorder_by: Sequence[str]) -> None:
        """Rewrite small files, and order rows by columns.

        Args:
            zorder_by: The columns.
        """
        self.table().optimize().executeZOrderBy(*zorder_by)

    def append(self, writer: DataFrameWriter) -> None:
        """Append rows.

        Args:
            writer: The writer of the rows, with the options of the write.
        """
        self._write(writer.mode("append"))

    def replace(self, writer: DataFrameWriter, condition: str) -> None:
        """Replace the rows for which a condition holds.

        Args:
            writer: The writer of the rows, for which the condition holds.
            condition: The condition, in SQL.
        """
        self._write(writer.mode("overwrite").option("replaceWhere", condition))

    def _write(self, writer: DataFrameWriter) -> None:
        writer = writer.format("delta")
        if self._path is None:
            writer.saveAsTable(self.name)
        else:
            writer.save(self._path)

    def snapshot(self) -> TableSnapshot:
        """Return the newest version of the table."""
        jvm: Any = self._spark._jvm
        logs = jvm.org.apache.spark.sql.delta.DeltaLog
        log_and_snapshot = logs.forTableWithSnapshot(self._spark._jsparkSession, self.location())
        return TableSnapshot(self._spark, log_and_snapshot._2())

    def commits(self, last_version: int) -> Iterator[TableCommit]:
        """Yield the commits that the table's log still has, newest first.

        Each page is read when it is asked for, and twice as large as the one before.

        Args:
            last_version: The version that comes first; later ones are left out.
        """
        table, limit = self.table(), _HISTORY_PAGE
        next_version = last_version
        while True:
            rows = table.history(limit).select(*_HISTORY_COLUMNS).collect()
            for row in rows:
                if row["version"] <= next_version:
                    yield TableCommit(
                        row["version"],
                        row["operation"] or "",
                        row["operationParameters"] or {},
                        row["userMetadata"],
                        row["operationMetrics"] or {},
                        int(row["timestamp"].timestamp() * 1000),
                    )
                    next_version = row["version"] - 1
            if len(rows) < limit:
                return
            limit *= 8


def _path_of(name: str) -> str | None:
    """Return the path that a user's name for a table is; None if it is a name in a catalog."""
    if name.startswith(_PATH_PREFIX) and name.endswith("`"):
        return name[len(_PATH_PREFIX) : -1]
    return name if "/" in name else None


def _absolute(spark: SparkSession, path: str) -> str:
    """Return a path as Hadoop completes it: Delta takes a relative one for a name."""
    if path.startswith("/") or ":" in path:
        return path
    jvm: Any = spark._jvm
    relative = jvm.org.apache.hadoop.fs.Path(path)
    file_system = relative.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    return str(file_system.makeQualified(relative).toString())
