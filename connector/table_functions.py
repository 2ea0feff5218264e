"""SQL table functions over a root: `klog_topics`, `klog_offsets`, `klog_history`, `klog_count`.

The rule: a function does what the verb or the method of that name does, in one row for each topic,
partition or commit, with the names of `--json`. It runs in a Python worker, which imports klog as a
task of a read does. Options of the store come from `klog.register`, never from SQL, so no query
text and no plan has a secret. The module loads nothing else until a function runs: a session that
calls none pays for their registration alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, ClassVar

from klog.connector.options.storage_options import (
    NO_STORAGE_OPTIONS,
    StorageOptions,
    storage_of_keywords,
)
from klog.connector.spark_errors import sentence_first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from klog.connector.snapshot import Snapshot

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TableFunction:
    """What the functions have in common: the options of the store, which a subclass has."""

    COLUMNS: ClassVar[Mapping[str, str]]
    storage: ClassVar[StorageOptions] = NO_STORAGE_OPTIONS

    def _directories(self, root: str) -> list[str]:
        from klog.connector.options.spark_paths import log_directories

        return log_directories({"path": root})

    def _snapshot(self, root: str) -> Snapshot:
        from klog.connector.open_root import open_root

        return open_root(self._directories(root), self.storage).snapshot()


class KlogTopics(TableFunction):
    """The topics of a root; `error` says why one cannot be read."""

    COLUMNS: ClassVar = {
        "topic": "string",
        "topicId": "string",
        "partitions": "numbers",
        "internal": "boolean",
        "configs": "texts",
        "error": "string",
    }

    def eval(self, root: str) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each topic.

        Args:
            root: The path or URL of the root.
        """
        from klog.connector.topic_rows import topic_rows

        with sentence_first():
            yield from topic_rows(self._snapshot(root))


class KlogOffsets(TableFunction):
    """The offsets of a topic's partitions; `offset` is the one of `at`."""

    COLUMNS: ClassVar = {
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "logStartOffset": "bigint",
        "logEndOffset": "bigint",
        "lastStableOffset": "bigint",
        "segments": "int",
        "bytes": "bigint",
    }

    def eval(self, root: str, topic: str, at: str = "latest") -> Iterator[tuple[Any, ...]]:
        """Yield a row for each partition.

        Args:
            root: The path or URL of the root.
            topic: The topic.
            at: As for `klog.open(root).offsets`.
        """
        from klog.connector.topic_rows import offset_rows

        with sentence_first():
            yield from offset_rows(lambda: self._snapshot(root), topic, at)


class KlogCount(TableFunction):
    """How many records of a topic a reader gets, by partition."""

    COLUMNS: ClassVar = {"topic": "string", "partition": "int", "records": "bigint"}

    def eval(
        self,
        root: str,
        topic: str,
        start: str = "earliest",
        end: str = "latest",
        isolation_level: str = "read_committed",
    ) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each partition.

        Args:
            root: The path or URL of the root.
            topic: The topic.
            start: As the option `startingOffsets`.
            end: As the option `endingOffsets`.
            isolation_level: As the option `isolationLevel`.
        """
        from klog.connector.topic_rows import count_rows

        options = {
            "startingOffsets": start, "endingOffsets": end, "isolationLevel": isolation_level
        }  # fmt: skip
        with sentence_first():
            yield from count_rows(self._directories(root), self.storage, topic, options)


class KlogHistory(TableFunction):
    """The commits of a topic, newest first."""

    COLUMNS: ClassVar = {
        "version": "bigint",
        "timestamp": "timestamp",
        "operation": "string",
        "engine": "string",
        "writeId": "string",
        "topicId": "string",
        "partitionCount": "int",
        "configs": "texts",
        "added": "amount",
        "removed": "amount",
        "partitions": "numbers",
        "logStart": "offsets",
        "logEnd": "offsets",
        "cleanedTo": "offsets",
        "horizon": "bigint",
        "restoredVersion": "bigint",
        "transactionalId": "string",
        "batchId": "bigint",
        "queryId": "string",
        "runId": "string",
        "offsets": "ranges",
        "holes": "holes",
    }

    def eval(self, root: str, topic: str) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each commit.

        Args:
            root: The path or URL of the klog root.
            topic: The topic.
        """
        from klog.connector.topic_rows import history_rows

        with sentence_first():
            for fields in history_rows(self._directories(root), self.storage, topic):
                version, timestamp_ms, *values = fields.values()
                yield version, _EPOCH + timedelta(milliseconds=timestamp_ms), *values


_FUNCTIONS: Mapping[str, type[TableFunction]] = {
    "klog_topics": KlogTopics,
    "klog_offsets": KlogOffsets,
    "klog_count": KlogCount,
    "klog_history": KlogHistory,
}


def register_table_functions(spark: SparkSession, storage: Mapping[str, str]) -> None:
    """Register the table functions with a session.

    Args:
        spark: The session.
        storage: The `storage.*` options of the roots, without that prefix. They travel in the
            pickled functions, which neither plans nor logs show.

    Raises:
        OptionError: A storage option is unknown.
    """
    from pyspark.sql.functions import udtf

    storage_options = storage_of_keywords(storage)
    for name, function in _FUNCTIONS.items():
        # A class that no module has is pickled by value; its base is imported by the worker.
        with_storage = type(function.__name__, (function,), {"storage": storage_options})
        to_function: Any = udtf(returnType=_schema(function.COLUMNS), useArrow=False)
        spark.udtf.register(name, to_function(with_storage))


def _schema(columns: Mapping[str, str]) -> StructType:
    """Return the type of a function's rows.

    A type as text would make the session load its SQL parser, which takes as long as all of this.

    Args:
        columns: By name the type of each column.
    """
    from pyspark.sql import types as t

    amount = [
        t.StructField("segments", t.IntegerType()),
        t.StructField("records", t.LongType()),
        t.StructField("bytes", t.LongType()),
    ]
    ends = [t.StructField("first", t.LongType()), t.StructField("last", t.LongType())]
    hole = [t.StructField("partition", t.IntegerType()), *ends]
    by_name: dict[str, t.DataType] = {
        "string": t.StringType(),
        "boolean": t.BooleanType(),
        "int": t.IntegerType(),
        "bigint": t.LongType(),
        "timestamp": t.TimestampType(),
        "numbers": t.ArrayType(t.IntegerType()),
        "texts": t.MapType(t.StringType(), t.StringType()),
        "offsets": t.MapType(t.IntegerType(), t.LongType()),
        "amount": t.StructType(amount),
        "ranges": t.MapType(t.IntegerType(), t.StructType(ends)),
        "holes": t.ArrayType(t.StructType(hole)),
    }
    return t.StructType([t.StructField(name, by_name[kind]) for name, kind in columns.items()])
