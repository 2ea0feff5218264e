"""A table of Spark's catalog, on the PySpark that runs this: statements that errors name work.

The rule: this script needs only PySpark and klog, as `smoke.py`. tests/spark/test_catalog.py has
the cases on the locked PySpark; this is the proof for another one.

    python -m tests.support.sql_table
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support.orders_root import make_orders


def main() -> None:
    """Create a table, follow the errors of its first read and write, and print one line."""
    with TemporaryDirectory(prefix="klog-sql-") as folder:
        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .getOrCreate()
        )
        try:
            _use_table(spark, f"{folder}/root")
        finally:
            spark.stop()
    print(f"sql_table: statements run on PySpark {pyspark.__version__}")  # noqa: T201


def _use_table(spark: SparkSession, root: str) -> None:
    make_orders(Path(root))
    spark.sql(f"CREATE TABLE t USING klog OPTIONS (path '{root}', subscribe 'orders')")
    select = _named_statement(spark, "SELECT * FROM t", r"SELECT \* FROM t WITH \(.*?\)", root)
    insert = _named_statement(
        spark, "INSERT INTO t (value) VALUES (X'79')", r"INSERT INTO t WITH \(.*?\)", root
    )
    spark.sql(f"{insert} (value) VALUES (X'79')")
    values = [bytes(row.value) for row in spark.sql(select).collect()]
    if values != [b"x", b"y"]:
        raise SystemExit(f"sql_table: the table has {values}")


def _named_statement(spark: SparkSession, statement: str, pattern: str, root: str) -> str:
    """Return the statement that the error of another one names, for this root."""
    try:
        spark.sql(statement).collect()
    except AnalysisException as exc:
        message = str(exc)
    else:
        raise SystemExit(f"sql_table: {statement} is no error")
    named = re.search(pattern, message)
    if named is None or "Traceback" in message:
        raise SystemExit(f"sql_table: {statement} says {message}")
    return named[0].replace("/data/klog", root)


if __name__ == "__main__":
    main()
