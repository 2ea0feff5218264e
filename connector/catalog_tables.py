"""Tables of Spark's catalog, whose options Spark keeps to itself: a statement names them again.

The rule: Spark 4.2 and 4.3 hand the options of `CREATE TABLE`, `saveAsTable` and
`spark.catalog.createTable` to a Python data source only while the table is created, and those of a
table only from the statement that reads or writes it: `SELECT ... FROM t WITH (path = ...)`. So a
table keeps columns, which are all that klog looks at when Spark creates one. A statement that has
no options is refused with the statement that works.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klog.connector.options import option_table as table
from klog.connector.options.option import Use
from klog.connector.options.option_map import option_map
from klog.connector.options.read_options import selected_columns
from klog.connector.source.read_schema import schema_difference
from klog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_CREATION_OPTION = "provider"
"""Spark adds it only when it creates a catalog table. With it come `owner`, `location`, `external`,
`comment`, each option a second time as `option.<name>`, and the table's properties."""
_LOST = "path: klog got no options: Spark keeps those of a table to itself."
_SELECT = "SELECT * FROM t WITH (path = '/data/klog', subscribe = 'orders')"
_TABLE = 'spark.read.option("path", "/data/klog").option("subscribe", "orders").table("t")'
_INSERT = "INSERT INTO t WITH (path = '/data/klog', topic = 'orders') SELECT ..."
_WRITE_TO = 'df.writeTo("t").option("path", "/data/klog").option("topic", "orders").append()'


def is_new_table(options: Mapping[str, str]) -> bool:
    """Return whether Spark asks for the columns of a table that it creates in its catalog.

    Args:
        options: The options as Spark hands them over.
    """
    return _CREATION_OPTION in {name.lower() for name in options}


def new_table_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a table that Spark creates.

    No other option is looked at: Spark forgets them all, and properties of the table, which may
    have any name, are among them.

    Args:
        options: The options as Spark hands them over.

    Raises:
        OptionError: An option that selects columns is wrong.
    """
    names = {option.name.lower() for option in (table.COLUMNS, table.INCLUDE_HEADERS)}
    selecting = {name: text for name, text in options.items() if name.lower() in names}
    return selected_columns(option_map(selecting, Use.READ))


def refuse_table_read(options: Mapping[str, str], schema: StructType) -> None:
    """Refuse to read a catalog table without options.

    Args:
        options: The options as Spark hands them over.
        schema: The columns of the table. `saveAsTable` gives it those of the rows, which klog may
            not read.

    Raises:
        OptionError: There are no options.
    """
    if options:
        return
    difference = schema_difference(schema)
    if difference is None:
        raise OptionError(f"{_LOST} Name them in the query: {_SELECT}, or {_TABLE}")
    raise OptionError(
        f"{_LOST} The table has columns of its own ({difference}): DROP TABLE t, and CREATE TABLE "
        f"t USING klog without columns. Then name them in the query: {_SELECT}"
    )


def refuse_table_write(options: Mapping[str, str]) -> None:
    """Refuse to write a catalog table without options.

    Args:
        options: The options as Spark hands them over.

    Raises:
        OptionError: There are no options.
    """
    if not options:
        raise OptionError(f"{_LOST} Name them in the statement: {_INSERT}, or {_WRITE_TO}")
