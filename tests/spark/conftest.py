"""What tests of the JVM engine share: its classes without a job."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.jvm_slices import JvmSlices


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> JvmSlices:
    return JvmSlices(spark)
