"""What EXPLAIN says of a DataFrame, as a text."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def explain(frame: DataFrame) -> str:
    """Return the physical plan, as EXPLAIN writes it.

    Args:
        frame: The DataFrame.
    """
    session: Any = frame.sparkSession
    text: str = session._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "simple")
    return text
