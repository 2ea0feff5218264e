"""The rows of a table that is a copy of a topic.

The rule: a row says where it is from: topic, partition and offset come first, so that Delta keeps
their statistics, which it does for the first 32 columns. Keys and values are bytes, or what
`klog.values` decodes them to. JSON without a schema gets the type that the table has, and with
`merge_schema` also the new fields of a sample of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from klog.errors import OptionError, SchemaError
from klog.jobs.shared.topic_batches import TopicBatch
from klog.jobs.shared.value_options import SIDES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_RECORD = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
IS_TOMBSTONE = "klog_is_tombstone"
"""The column that says whether a record has no value; only for writers that ask for it."""
FAIL, NULL, DEAD_LETTERS = ON_ERROR = ("fail", "null", "dead-letters")
_RAW = {side: f"raw_{side}" for side in SIDES}
_ERRORS = {side: f"{side}_error" for side in SIDES}


@dataclass(frozen=True, slots=True)
class DecodedValues:
    """How keys and values are decoded.

    Attributes:
        arguments: Arguments of `klog.values.decode`, such as `value="avro"`; empty for bytes.
        on_error: What happens to rows that cannot be decoded: `fail`, `null` or `dead-letters`.
        merge_schema: Whether new fields of JSON are added to the table.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    on_error: str = FAIL
    merge_schema: bool = False

    def __post_init__(self) -> None:
        """Check the values. Raises `OptionError`."""
        if self.on_error not in ON_ERROR:
            raise OptionError(
                f"--on-error: must be one of {', '.join(ON_ERROR)}, got {self.on_error!r}"
            )
        if self.on_error != FAIL and not self.arguments:
            raise OptionError("--on-error: bytes are always taken. Give -s FORMAT too")


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of a batch, and those that cannot be decoded, if these are dead letters."""

    rows: DataFrame
    dead_letters: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class TableRows:
    """How the records of a batch become rows.

    Attributes:
        root: The root, as `load()` takes it.
        options: The options of the read, without those that name topics.
        values: How keys and values are decoded.
    """

    root: str
    options: Mapping[str, str] = field(repr=False)
    values: DecodedValues = field(default_factory=DecodedValues)

    @property
    def needs_a_sample(self) -> bool:
        """Return whether only records say which columns a new table gets."""
        return any(self._is_inferred(side) for side in SIDES)

    def of(
        self,
        spark: SparkSession,
        batch: TopicBatch,
        table_schema: StructType | None,
        *,
        with_tombstones: bool = False,
    ) -> BatchRows:
        """Return the rows of a batch.

        Args:
            spark: The session.
            batch: The batch.
            table_schema: The columns of the table; None if there is no table yet.
            with_tombstones: Whether the rows have the column `IS_TOMBSTONE`.

        Raises:
            SchemaError: A field of JSON has another type than in the table.
            RegistryError: The schema registry does not answer, or does not have the subject.
        """
        records = self._read(spark, batch)
        if with_tombstones:
            records = records.withColumn(IS_TOMBSTONE, records["value"].isNull())
        if not self.values.arguments:
            return BatchRows(records)
        return self._decoded(records, batch.topic, table_schema)

    def _read(self, spark: SparkSession, batch: TopicBatch) -> DataFrame:
        if batch.is_empty:
            return spark.createDataFrame([], _RECORD)
        reader = spark.read.format("klog").options(**batch.read_options(self.options))
        return reader.option("includeHeaders", "true").load(self.root).select(*COLUMNS)

    def _decoded(
        self, records: DataFrame, topic: str, table_schema: StructType | None
    ) -> BatchRows:
        from klog import values

        arguments = {**self.values.arguments, **self._json_schemas(records, table_schema)}
        on_error = FAIL if self.values.on_error == FAIL else NULL
        if self.values.on_error == DEAD_LETTERS:
            for side, raw in _RAW.items():
                records = records.withColumn(raw, records[side])
        decoded = values.decode(records, topic=topic, on_error=on_error, **arguments)
        if self.values.on_error != DEAD_LETTERS:
            return BatchRows(decoded)
        errors = [name for name in _ERRORS.values() if name in decoded.columns]
        is_good = " AND ".join(f"{name} IS NULL" for name in errors)
        reasons = [f"'{name.removesuffix('_error')}: ' || {name}" for name in errors]
        columns = [_RAW.get(name, name) for name in COLUMNS]
        return BatchRows(
            decoded.where(is_good).drop(*errors, *_RAW.values()),
            decoded.where(f"NOT ({is_good})").selectExpr(
                *(f"{column} AS {name}" for column, name in zip(columns, COLUMNS, strict=True)),
                f"concat_ws('; ', {', '.join(reasons)}) AS reason",
            ),
        )

    def _json_schemas(
        self, records: DataFrame, table_schema: StructType | None
    ) -> dict[str, DataType]:
        """Return the types of keys and values in JSON for which there is no schema."""
        return {
            f"{side}_schema": self._json_schema(records, side, table_schema)
            for side in SIDES
            if self._is_inferred(side)
        }

    def _is_inferred(self, side: str) -> bool:
        arguments = self.values.arguments
        has_schema = arguments.get(f"{side}_schema") is not None
        return (
            arguments.get(side) == "json" and not has_schema and arguments.get("registry") is None
        )

    def _json_schema(
        self, records: DataFrame, side: str, table_schema: StructType | None
    ) -> DataType:
        from pyspark.sql.types import StructType

        from klog import values

        columns = [] if table_schema is None else table_schema.fields
        known = next((field.dataType for field in columns if field.name.lower() == side), None)
        if known is not None and not (self.values.merge_schema and isinstance(known, StructType)):
            return known
        formats: dict[str, Any] = {side: "json"}
        try:
            inferred = values.infer_schema(records, **formats)
        except SchemaError:
            if known is None:
                raise
            return known  # The batch has tombstones alone.
        if known is None:
            return inferred
        on_change = FAIL if self.values.on_error == FAIL else "keep"
        return values.merge_schemas(known, inferred, on_change=on_change)
