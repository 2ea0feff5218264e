"""Rows planned as a query of their own, and not as a part of the write that takes them.

The rule: in the plan of a DataSource V2 write, Delta does not fix which files of a table are read
(its rule `PrepareDeltaScan` leaves such plans out), and then refuses to read deletion vectors. So
what is read from a table has its own plan. Tried with Delta 4.4.0: a write of such a table to
`noop` fails, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def with_own_plan(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return the same rows, planned now. They are read when the result is.

    Args:
        spark: The session of the rows.
        rows: The rows of a query.
    """
    query = rows._jdf.queryExecution()
    frame = spark._jsparkSession.internalCreateDataFrame(query.toRdd(), rows._jdf.schema(), False)
    return type(rows)(frame, spark)
