"""The Python DataSource `klog`. Light to import: Spark imports it to discover the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from klog.connector.spark_errors import FailedStreamReader, sentence_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from klog.connector.sink.spark_writers import KlogBatchWriter, KlogStreamWriter
    from klog.connector.source.batch_reader import KlogBatchReader
    from klog.connector.source.jvm_request import JvmRequest
    from klog.connector.source.load_plan import LoadPlan


class KlogDataSource(DataSource):
    """Kafka-format topics as tables and streams: `spark.read.format("klog").load(root)`."""

    def __init__(self, options: Any) -> None:
        """Keep the options; Spark creates one data source for each `load()`."""
        super().__init__(options)
        self._load_plan: LoadPlan | None = None
        self._is_loaded = False
        self._has_reader = False
        self.jvm_request: JvmRequest | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` takes."""
        return "klog"

    def __getstate__(self) -> dict[str, Any]:
        """Return the source as planners need it; as Spark sends it to each task, without a plan."""
        return self.__dict__ | ({"_load_plan": None} if self._has_reader else {})

    @sentence_first()
    def schema(self) -> str:
        """Check the options, resolve the offsets, and return the columns.

        Spark calls this once, at `load()`, and pickles the data source afterwards, so this is where
        the offsets of a DataFrame are resolved. Spark does not say here whether a batch or a stream
        is loaded. An option that is wrong for only one of them is an error of its reader.
        """
        from klog.connector.new_tables import is_new_table, new_table_columns
        from klog.connector.options.read_options import parse_shared_options
        from klog.connector.source import scan_planner
        from klog.connector.source.read_schema import schema_text
        from klog.errors import NoSubscriptionError

        options = dict(self.options)
        if is_new_table(options):
            return schema_text(new_table_columns(options))
        try:
            shared_options = parse_shared_options(options)
        except NoSubscriptionError:
            raise scan_planner.no_subscription_error(options) from None
        self._is_loaded = True
        self._load_plan = scan_planner.try_resolve_offsets(options, shared_options)
        return schema_text(shared_options.columns)

    @sentence_first()
    def reader(self, schema: StructType) -> KlogBatchReader:
        """See `DataSource.reader`."""
        from klog.connector.catalog_tables import table_read_options
        from klog.connector.source.batch_reader import KlogBatchReader

        options = table_read_options(self.options, schema)
        self._has_reader = True
        if self.jvm_request is not None:
            from klog.connector.source.jvm_batch_reader import JvmBatchReader

            jvm_reader = JvmBatchReader(options, self._load_plan, schema, is_loaded=self._is_loaded)
            jvm_reader.jvm_request = self.jvm_request
            return jvm_reader
        return KlogBatchReader(options, self._load_plan, schema, is_loaded=self._is_loaded)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See `DataSource.streamReader`. An error is raised by the reader's methods."""
        from klog.connector.catalog_tables import table_read_options
        from klog.connector.source.stream_reader import KlogStreamReader

        try:
            return KlogStreamReader(
                table_read_options(self.options, schema),
                schema,
                self._load_plan,
                is_loaded=self._is_loaded,
                is_for_jvm=self.jvm_request is not None,
            )
        except Exception as exc:  # noqa: BLE001 - Spark would hide any error that is raised here.
            return FailedStreamReader(exc)

    @sentence_first()
    def writer(self, schema: StructType, overwrite: bool) -> KlogBatchWriter:
        """See `DataSource.writer`."""
        from klog.connector.catalog_tables import table_write_options
        from klog.connector.sink.spark_writers import KlogBatchWriter

        return KlogBatchWriter(table_write_options(self.options), schema, overwrite)

    @sentence_first()
    def streamWriter(self, schema: StructType, overwrite: bool) -> KlogStreamWriter:
        """See `DataSource.streamWriter`."""
        from klog.connector.catalog_tables import table_write_options
        from klog.connector.sink.spark_writers import KlogStreamWriter

        return KlogStreamWriter(table_write_options(self.options), schema, overwrite)
