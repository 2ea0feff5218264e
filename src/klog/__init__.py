"""Kafka's log without the brokers: topics as Kafka-format files, Spark as the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["__version__", "register"]

__version__ = "0.1.0"


def register(spark: SparkSession) -> None:
    """Register the format `klog` with a session; optional where klog is installed.

    Needed where klog comes as a zip (`--py-files`), which Spark does not search for formats.
    """
    from klog.connector.datasource import KlogDataSource

    spark.dataSource.register(KlogDataSource)
