"""Kafka's log without the brokers: topics as Kafka-format files, Spark as the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from klog.version import VERSION

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame, SparkSession

    from klog.connector.embedded import Log

__all__ = ["__version__", "open", "register", "repartition"]

__version__ = VERSION


def register(spark: SparkSession) -> None:
    """Register the format `klog` with a session; optional where klog is installed.

    Needed where klog comes as a zip (`--py-files`), which Spark does not search for formats. The
    process that plans a stream looks for modules on `PYTHONPATH` only (seen on PySpark 4.2.0), so
    the zip is put there for the workers that this session starts.
    """
    from klog.connector.datasource import KlogDataSource

    archive = Path(__file__).parent.parent
    if archive.is_file():
        environment = spark.sparkContext.environment
        given = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{archive}:{given}" if given else str(archive)
    spark.dataSource.register(KlogDataSource)


def open(root: str | PathLike[str], **storage: str) -> Log:  # noqa: A001 - it is klog.open
    """Open a root for use without Spark: its topics are made, written and read as Arrow.

    `root` is a path or URL, a relative path from the directory that the process is in now;
    `storage` are the words of `storage.*`, such as `endpoint`. Raises `klog.errors.OptionError` for
    a word that klog does not know; a scheme is looked at when the root is first used.
    """
    from klog.connector.embedded import open_log

    return open_log(root, storage)


def repartition(df: DataFrame, root: str | PathLike[str], topic: str, **storage: str) -> DataFrame:
    """Shuffle rows to the partitions of a topic that they go to, so that a write leaves few files.

    A row goes by its column `partition`, else by its key; the column is set to what was chosen.
    `root` and `storage` are as for `open`. Raises `klog.errors.OptionError` for a topic that is not
    there.
    """
    from klog.connector.repartition import repartition as shuffled

    return shuffled(df, root, topic, storage)
