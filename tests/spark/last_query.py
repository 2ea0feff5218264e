"""What Spark's UI shows of the last query of a session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def metrics_of_last_query(spark: SparkSession) -> dict[str, str]:
    """Return the metrics of the last query, by name, as they are shown."""
    store, query = _last_query(spark)
    values = store.executionMetrics(query.executionId())
    metrics = (query.metrics().apply(number) for number in range(query.metrics().size()))
    return {
        metric.name(): values.apply(metric.accumulatorId())
        for metric in metrics
        if values.contains(metric.accumulatorId())
    }


def plan_of_last_query(spark: SparkSession) -> str:
    """Return the plan of the last query as it was run."""
    plan: str = _last_query(spark)[1].physicalPlanDescription()
    return plan


def _last_query(spark: SparkSession) -> tuple[Any, Any]:
    assert spark.sparkContext._jsc is not None
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    queries = store.executionsList()
    return store, queries.apply(queries.size() - 1)
