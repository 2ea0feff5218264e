"""Write one batch into a Delta table: all of its records, or the last one of each key.

The rule: a batch is one commit. Its note and its transaction travel with it, so there is no moment
at which the rows are there and the offsets are not. A MERGE takes them from settings of its
session, so it has a session of its own: others of the driver never see them. A batch that another
run has written is no error: Delta skips it, or refuses it with a conflict, and the job asks again.

*Append* adds every record. *Upsert* merges by key. Within a batch the last record of a key counts:
of one partition the one with the largest offset; a key that has moved to another partition, because
the topic got more of them, is there with the newest timestamp. So a row is replaced only by a later
record, and a batch that is merged again changes nothing. A tombstone deletes the row; a value that
decodes to null, such as `null` in JSON, is a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klog.errors import KlogError, OptionError, SchemaError, UndecodableError
from klog.jobs.copying_to_delta.commit_note import CommitNote
from klog.jobs.copying_to_delta.copied_topics import DeltaTransaction
from klog.jobs.copying_to_delta.row_types import (
    changed_types,
    missing_fields,
    unsupported_types,
)
from klog.jobs.copying_to_delta.table_rows import IS_TOMBSTONE
from klog.jobs.shared.delta.delta_target import DeltaTarget
from klog.raised_errors import raised_as

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

APPEND, UPSERT = MODES = ("append", "upsert")
_APPLICATION = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_MERGED_BY = ("topic", "partition", "offset", "timestamp", "key")
"""The columns by which a row and a change are compared."""
_NO_KEY = (
    "the record has no key, and upsert keeps one row for each key. Use --mode append for this topic"
)
_NO_DECODED_KEY = (
    "its key cannot be decoded, and upsert keeps one row for each key. Use --on-error dead-letters "
    "for such records: "
)


def check_supported(table: str, rows: StructType) -> None:
    """Refuse rows for which Delta has no type.

    Args:
        table: The table.
        rows: The type of the rows.

    Raises:
        SchemaError: A column or a field has such a type.
    """
    unsupported = next(unsupported_types(rows), None)
    if unsupported is not None:
        raise SchemaError(
            f"table {table}: {unsupported}, and Delta has no such type. Copy the topic without "
            "decoding it, or give a schema without this field"
        )


class BatchWriter:
    """Writes batches into one table."""

    def __init__(self, table: str, mode: str, *, merge_schema: bool) -> None:
        """Take the table, `append` or `upsert`, and whether new columns are added to it."""
        self._table, self.mode, self._merge_schema = table, mode, merge_schema

    def session(self, spark: SparkSession) -> SparkSession:
        """Return the session in which a batch has to be read and written.

        Args:
            spark: The session of the job.
        """
        if self.mode == APPEND:
            return spark
        return type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())

    def check_columns(self, rows: StructType, table: StructType) -> None:
        """Refuse a table that cannot hold the rows, or lacks a column that is not to be added.

        Args:
            rows: The type of the rows of a batch.
            table: The type of those of the table.

        Raises:
            OptionError: A column or a field is missing.
            SchemaError: One of them has another type, or one that Delta does not have.
        """
        check_supported(self._table, rows)
        changed = next(changed_types(rows, table), None)
        if changed is not None:
            raise SchemaError(
                f"table {self._table}: its {changed}. Use another table, or change the column's "
                "type (ALTER TABLE ... ALTER COLUMN ... TYPE, with delta.enableTypeWidening)"
            )
        missing = list(missing_fields(rows, table))
        keys = [name for name in missing if name in _MERGED_BY and self.mode == UPSERT]
        if keys:
            raise OptionError(
                f"table {self._table}: --mode upsert needs its column {keys[0]}. Use another table"
            )
        if missing and not self._merge_schema:
            raise OptionError(
                f"table {self._table}: it has no {', '.join(missing)}. Give --merge-schema to add "
                "what is missing, or use another table"
            )

    def write(
        self,
        spark: SparkSession,
        rows: DataFrame,
        note: CommitNote,
        transaction: DeltaTransaction,
    ) -> None:
        """Write the rows of a batch in one commit, unless another run has.

        Args:
            spark: What `session` returned.
            rows: The rows, of this session, with `IS_TOMBSTONE` for `upsert`.
            note: What the commit says about itself.
            transaction: The transaction that it is.
        """
        target = DeltaTarget(spark, self._table)
        if self.mode == APPEND:
            self._append(target, rows, note, transaction)
        else:
            self._merge(spark, target, rows, note, transaction)

    def _append(
        self,
        target: DeltaTarget,
        rows: DataFrame,
        note: CommitNote,
        transaction: DeltaTransaction,
    ) -> None:
        options = {
            "txnAppId": transaction.application_id,
            "txnVersion": str(transaction.version),
            "userMetadata": note.to_text(),
            "mergeSchema": str(self._merge_schema).lower(),
        }
        target.append(rows.write.options(**options))

    def _merge(
        self,
        spark: SparkSession,
        target: DeltaTarget,
        rows: DataFrame,
        note: CommitNote,
        transaction: DeltaTransaction,
    ) -> None:
        from pyspark.sql import functions as sf

        changes = last_of_each_key(with_keys(rows))
        is_newer = _is_newer("change", "row")
        is_tombstone = sf.col(f"change.{IS_TOMBSTONE}")
        merge = (
            target.table()
            .alias("row")
            .merge(changes.alias("change"), "row.topic = change.topic AND row.key = change.key")
            .whenMatchedDelete(is_newer & is_tombstone)
        )
        # Columns that others have added to the table stay as they are.
        names = [name for name in rows.columns if name != IS_TOMBSTONE]
        columns: dict[str, str | Column] = {name: f"change.`{name}`" for name in names}
        merge = merge.whenMatchedUpdate(is_newer, columns)
        merge = merge.whenNotMatchedInsert(~is_tombstone, columns)
        if self._merge_schema:
            merge = merge.withSchemaEvolution()
        spark.conf.set(_APPLICATION, transaction.application_id)
        spark.conf.set(_VERSION, str(transaction.version))
        spark.conf.set(_NOTE, note.to_text())
        merge.execute()


def last_of_each_key(rows: DataFrame) -> DataFrame:
    """Return the record of each key that counts.

    Args:
        rows: The rows of one topic.
    """
    from pyspark.sql import functions as sf

    columns = rows.columns
    record = sf.struct(*[column for column in columns if column != "key"])
    by_partition = rows.groupBy("key", "partition").agg(sf.max_by(record, "offset").alias("record"))
    order = sf.struct("record.timestamp", "partition")
    last = by_partition.groupBy("key").agg(sf.max_by("record", order).alias("record"))
    return last.select(*[column if column == "key" else f"record.{column}" for column in columns])


def with_keys(rows: DataFrame) -> DataFrame:
    """Return rows whose records all have keys: reading one without fails, and says where it is.

    Args:
        rows: The rows of a batch.
    """
    from pyspark.sql import functions as sf

    def message(error_class: type[KlogError], *reason: Column) -> Column:
        place = sf.format_string("%s-%d, offset %d: ", "topic", "partition", "offset")
        return sf.concat(sf.lit(raised_as(error_class)), place, *reason)

    text = message(OptionError, sf.lit(_NO_KEY))
    if "key_error" in rows.columns:
        reason = sf.col("key_error")
        text = sf.coalesce(message(UndecodableError, sf.lit(_NO_DECODED_KEY), reason), text)
    error = sf.raise_error(text).cast(rows.schema["key"].dataType)
    return rows.withColumn("key", sf.coalesce("key", error))


def _is_newer(change: str, row: str) -> Column:
    """Return the condition that a change is later than the row that has its key."""
    from pyspark.sql import functions as sf

    def of(side: str, column: str) -> Column:
        return sf.col(f"{side}.{column}")

    is_same_partition = of(change, "partition") == of(row, "partition")
    return (is_same_partition & (of(change, "offset") > of(row, "offset"))) | (
        ~is_same_partition
        & (
            sf.struct(of(change, "timestamp"), of(change, "partition"))
            > sf.struct(of(row, "timestamp"), of(row, "partition"))
        )
    )
