"""Kafka's log without the brokers: topics as Kafka-format files, Spark as the cluster.

The rule: what users need is here, in `klog.jobs`, `klog.values` and `klog.logformat`; all other
modules are klog's own. Nothing is imported before it is used, as the command line and Spark's
workers start with this file.
"""

from __future__ import annotations

from klog.version import VERSION

TYPE_CHECKING = False  # `typing` takes 2 ms.
if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession

    from klog import errors, jobs, logformat, values
    from klog.connector.commit_log.commit import Amount, Commit
    from klog.connector.commit_log.topic_admin import PartitionDescription, TopicDescription
    from klog.connector.commit_log.topic_restore import RestoredPartition, RestoreReport
    from klog.connector.embedded import Log
    from klog.connector.embedded_append import AppendResult
    from klog.errors import (
        AlreadyCommittedError,
        ChangedDuringReadError,
        CommitConflictError,
        CommitStateUnknownError,
        CorruptFileError,
        CorruptRecordError,
        DataLossError,
        FileTooLargeError,
        ForkedCommitError,
        InvalidFileError,
        KlogError,
        LostCommitError,
        NewerFormatError,
        NoSubscriptionError,
        NotRegularFileError,
        OffsetOutOfRangeError,
        OptionError,
        ProducerFencedError,
        RegistryError,
        RegistryRefusedError,
        RestoreRefusedError,
        SchemaError,
        SchemaNotFoundError,
        StoreError,
        StoreRefusedError,
        UndecodableError,
        UnsupportedFormatError,
    )
    from klog.raised_errors import error_class_of

__all__ = [
    "AlreadyCommittedError",
    "Amount",
    "AppendResult",
    "ChangedDuringReadError",
    "Commit",
    "CommitConflictError",
    "CommitStateUnknownError",
    "CorruptFileError",
    "CorruptRecordError",
    "DataLossError",
    "FileTooLargeError",
    "ForkedCommitError",
    "InvalidFileError",
    "KlogError",
    "Log",
    "LostCommitError",
    "NewerFormatError",
    "NoSubscriptionError",
    "NotRegularFileError",
    "OffsetOutOfRangeError",
    "OptionError",
    "PartitionDescription",
    "ProducerFencedError",
    "RegistryError",
    "RegistryRefusedError",
    "RestoreRefusedError",
    "RestoreReport",
    "RestoredPartition",
    "SchemaError",
    "SchemaNotFoundError",
    "StoreError",
    "StoreRefusedError",
    "TopicDescription",
    "UndecodableError",
    "UnsupportedFormatError",
    "__version__",
    "configure",
    "error_class_of",
    "errors",
    "jobs",
    "logformat",
    "open",
    "register",
    "repartition",
    "values",
]

__version__ = VERSION

_WHOLE_MODULES = frozenset(["errors", "jobs", "logformat", "values"])
_MODULES = {
    "Amount": "connector.commit_log.commit",
    "AppendResult": "connector.embedded_append",
    "Commit": "connector.commit_log.commit",
    "Log": "connector.embedded",
    "PartitionDescription": "connector.commit_log.topic_admin",
    "RestoreReport": "connector.commit_log.topic_restore",
    "RestoredPartition": "connector.commit_log.topic_restore",
    "TopicDescription": "connector.commit_log.topic_admin",
    "error_class_of": "raised_errors",
}
"""Where a name comes from, if it is not `klog.errors`."""


if not TYPE_CHECKING:  # A type checker would take every name for one of these.

    def __getattr__(name: str) -> object:
        """Return a public name, and import what it needs."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module 'klog' has no attribute {name!r}")
        if name in _WHOLE_MODULES:
            return import_module(f"klog.{name}")
        value = getattr(import_module(f"klog.{_MODULES.get(name, 'errors')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add klog's jar to a Spark session that is about to start.

    With the jar, Spark's JVM reads and writes topics. Without it, Python does. docs/engines.md
    compares the two engines.

    A wheel of klog contains the jar. In a clone of the repository, the first call compiles the jar
    with PySpark's Scala compiler; later calls use the same jar. Some sessions cannot get a jar in
    this way, for example on Databricks, with Spark Connect, or in spark-submit. klog then gives a
    Python warning that names another way, and Python reads and writes.

    Args:
        builder: `SparkSession.builder`, with any settings. klog's jar is added to `spark.jars`.

    Returns:
        The builder. Call `getOrCreate()` on it.
    """
    from klog.spark_jar.configured_session import configure as configured

    return configured(builder)


def register(spark: SparkSession, **storage: str) -> None:
    """Register klog's table functions and the format `klog` with a Spark session.

    The table functions are `klog_topics`, `klog_offsets`, `klog_count` and `klog_history`
    (docs/sql.md). Spark finds the format `klog` without this call, except if klog is a zip file
    (`--py-files`): Spark does not search zip files for formats. In that case this call also sends
    the zip file to the workers of the session. For streams over Spark Connect, install klog on the
    server instead (docs/clusters.md).

    This call also adds a listener to the session. The listener logs the lag of each stream to the
    logger `klog.progress` (docs/reading.md).

    Args:
        spark: The session.
        **storage: The `storage.*` options for the table functions, without the prefix `storage.`,
            as for `klog.open`. Queries then do not need to contain them.

    Raises:
        klog.OptionError: klog does not know a storage option.
    """
    from pathlib import Path

    from klog.connector.datasource import KlogDataSource
    from klog.connector.progress_listener import add_progress_listener
    from klog.connector.table_functions import register_table_functions
    from klog.connector.zip_on_workers import put_zip_on_workers

    archive = Path(__file__).parent.parent
    if archive.is_file():
        put_zip_on_workers(spark, archive)
    spark.dataSource.register(KlogDataSource)
    register_table_functions(spark, storage)
    add_progress_listener(spark)


def open(root: str | PathLike[str], **storage: str) -> Log:  # noqa: A001 - it is klog.open
    """Open a root without Spark: create topics, append rows and read them as Arrow batches.

    A root is the directory or URL that contains topics. It can be a klog root, the log directory of
    a broker (klog only reads it), or an empty directory, in which `create_topic` creates a klog
    root.

    Args:
        root: The path or URL of the root, such as `s3://bucket/klog`. A relative path starts at the
            current working directory.
        **storage: The `storage.*` options without the prefix `storage.`, such as
            `region="eu-west-1"` (docs/options.md).

    Returns:
        A `Log`. It contacts the store when one of its methods is called, not before. So a wrong URL
        fails at the first call of a method.

    Raises:
        klog.OptionError: `root` is neither a path nor a URL, or klog does not know a storage
            option.
    """
    from klog.connector.embedded import open_log

    return open_log(root, storage)


def repartition(df: DataFrame, root: str | PathLike[str], topic: str, **storage: str) -> DataFrame:
    """Shuffle rows to the topic partitions that they go to, so that a write creates few files.

    Args:
        df: The rows to write, with the columns of a write (docs/options.md). A row goes to the
            partition in its column `partition`. If that is null or missing, the key selects the
            partition, as in Kafka.
        root: The path or URL of the root, as for `klog.open`.
        topic: The topic that you write the rows to.
        **storage: The `storage.*` options without the prefix `storage.`, as for `klog.open`.

    Returns:
        The rows, with the selected partition in the column `partition`.

    Raises:
        klog.OptionError: The topic does not exist, or klog does not know a storage option.
    """
    from klog.connector.repartition import repartition as shuffled

    return shuffled(df, root, topic, storage)
