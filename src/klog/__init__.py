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
    from klog.connector.embedded import Log
    from klog.errors import (
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
        SchemaError,
        SchemaNotFoundError,
        StoreError,
        UndecodableError,
        UnsupportedFormatError,
    )
    from klog.raised_errors import error_class_of

__all__ = [
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
    "ProducerFencedError",
    "RegistryError",
    "SchemaError",
    "SchemaNotFoundError",
    "StoreError",
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

_PACKAGES = frozenset(["errors", "jobs", "logformat", "values"])
_MODULES = {"Log": "connector.embedded", "error_class_of": "raised_errors"}
"""Where a name comes from, if it is not `klog.errors`."""


def __getattr__(name: str) -> object:
    """Return a public name, and import what it needs."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'klog' has no attribute {name!r}")
    if name in _PACKAGES:
        return import_module(f"klog.{name}")
    value = getattr(import_module(f"klog.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Put klog's jar into a session that is about to start, so that its JVM reads.

    docs/engines.md says what the JVM reads. A wheel of klog brings the jar. From a clone the first
    call compiles it, once, with the Scala compiler that PySpark brings. A session that cannot get
    the jar here, such as one of Databricks, of Spark Connect or of spark-submit, is a warning that
    says how else: Python reads.

    Args:
        builder: `SparkSession.builder`, with any settings. `spark.jars` is added to.

    Returns:
        The builder.
    """
    from klog.spark_jar.configured_session import configure as configured

    return configured(builder)


def register(spark: SparkSession, **storage: str) -> None:
    """Register the format `klog` and klog's table functions with a session.

    The format needs it only if klog comes as a zip (`--py-files`), because Spark does not search a
    zip for formats. It then also brings the zip to the workers of the session. Streams over Spark
    Connect need klog installed on the server (docs/clusters.md).

    It also adds a listener that logs the lag of each stream of the session (logger
    `klog.progress`, docs/reading.md).

    Args:
        spark: The session. Its later reads and writes know `format("klog")`, and its SQL knows
            `klog_topics`, `klog_offsets`, `klog_count` and `klog_history` (docs/sql.md).
        **storage: The `storage.*` options without their prefix, as for `open`, for the table
            functions. No query needs to have them.

    Raises:
        klog.errors.OptionError: klog does not know a storage option.
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
    """Open a root for use without Spark: create topics, write and read them as Arrow.

    Args:
        root: A path or URL. A relative path starts at the current working directory.
        **storage: The `storage.*` options without their prefix, such as `endpoint`.

    Returns:
        The root's log. It reads nothing until it is first used, so a wrong scheme fails only then.

    Raises:
        klog.errors.OptionError: klog does not know a storage option.
    """
    from klog.connector.embedded import open_log

    return open_log(root, storage)


def repartition(df: DataFrame, root: str | PathLike[str], topic: str, **storage: str) -> DataFrame:
    """Shuffle rows by the topic partition that they go to, so that a write leaves few files.

    Args:
        df: The rows to write, with the columns of a write. A row goes to the partition in its
            column `partition`, else to the one that its key selects.
        root: A path or URL, as for `open`.
        topic: The topic that the rows are written to.
        **storage: The `storage.*` options without their prefix, as for `open`.

    Returns:
        The rows, with the column `partition` set to the selected partition.

    Raises:
        klog.errors.OptionError: The topic does not exist, or klog does not know a storage option.
    """
    from klog.connector.repartition import repartition as shuffled

    return shuffled(df, root, topic, storage)
