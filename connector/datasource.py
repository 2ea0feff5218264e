"""The Python DataSource `klog`. Light to import: Spark imports it to discover the format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from klog.connector.sink.writers import KlogBatchWriter, KlogStreamWriter
    from klog.connector.source.batch import KlogBatchReader
    from klog.connector.source.stream import KlogStreamReader

_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key: string, value: binary>>",
}


class KlogDataSource(DataSource):
    """Kafka-format topics as tables and streams: `spark.read.format("klog").load(root)`."""

    def __init__(self, options: Any) -> None:
        """Keep the options; Spark makes one of these for each `load()`."""
        super().__init__(options)
        self._pinned: Any = None

    @classmethod
    def name(cls) -> str:
        """Give the name that `format` takes."""
        return "klog"

    def schema(self) -> str:
        """Check the options, see what the log holds, and give the columns.

        Spark calls this once, at `load()`, and ships the data source as it is afterwards; so this
        is where a DataFrame's offsets are pinned. Whether a batch or a stream is loaded cannot be
        told here: what is wrong for only one of them is left for its reader to say, in its words.
        """
        from klog.connector.catalog_tables import refuse_new_table
        from klog.connector.options import shared_options
        from klog.connector.source import scan

        given = dict(self.options)
        refuse_new_table(given)
        options = shared_options(given)
        self._pinned = scan.try_pin(given, options)
        return ", ".join(f"{name} {_TYPES[name]}" for name in options.columns)

    def reader(self, schema: StructType) -> KlogBatchReader:
        """Make the batch reader."""
        from klog.connector.catalog_tables import refuse_table_read
        from klog.connector.source.batch import KlogBatchReader

        refuse_table_read(self.options)
        return KlogBatchReader(dict(self.options), self._pinned)

    def streamReader(self, schema: StructType) -> KlogStreamReader:
        """Make the stream reader."""
        from klog.connector.catalog_tables import refuse_table_read
        from klog.connector.source.stream import KlogStreamReader

        refuse_table_read(self.options)
        return KlogStreamReader(dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> KlogBatchWriter:
        """Make the batch writer."""
        from klog.connector.catalog_tables import refuse_table_write
        from klog.connector.sink.writers import KlogBatchWriter

        refuse_table_write(self.options)
        return KlogBatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> KlogStreamWriter:
        """Make the stream writer."""
        from klog.connector.catalog_tables import refuse_table_write
        from klog.connector.sink.writers import KlogStreamWriter

        refuse_table_write(self.options)
        return KlogStreamWriter(dict(self.options), schema, overwrite)
