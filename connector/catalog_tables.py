"""Tables of Spark's catalog, which lose their options: klog needs a view instead.

The rule: Spark 4.2 and 4.3 hand the options of a catalog table to a Python data source when the
table is created, and none when it is read or written. So klog refuses such a table when Spark
creates it. A table that has columns of its own is created without klog, and klog refuses to use it.
Both errors name the view to use instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from klog.errors import OptionError

_CREATION_OPTION = "provider"
"""Spark adds it only when it creates a catalog table. With it come `owner`, `location`, `external`,
`comment`, each option a second time as `option.<name>`, and the table's properties."""
_USE_A_VIEW = (
    "Spark gives the options of a catalog table to no Python data source that reads or writes it. "
    "Create a view instead: CREATE TEMPORARY VIEW t USING klog OPTIONS (path '/data/klog', "
    "subscribe 'orders')"
)


def refuse_new_table(options: Mapping[str, str]) -> None:
    """Refuse a table that Spark creates in its catalog.

    Args:
        options: The options as Spark hands them over.

    Raises:
        OptionError: Spark asks for the columns of a table that it creates.
    """
    if _CREATION_OPTION in {name.lower() for name in options}:
        raise OptionError(f"klog cannot be a table of Spark's catalog: {_USE_A_VIEW}")


def refuse_table_read(options: Mapping[str, str]) -> None:
    """Refuse to read a catalog table: Spark passes no options for one.

    Args:
        options: The options as Spark hands them over.

    Raises:
        OptionError: There are no options.
    """
    if not options:
        raise OptionError(
            "path: klog got no options. Give them to spark.read, with the root to load(). If "
            f"this is a table of Spark's catalog: {_USE_A_VIEW}"
        )


def refuse_table_write(options: Mapping[str, str]) -> None:
    """Refuse to write a catalog table: Spark passes no options for one.

    Args:
        options: The options as Spark hands them over.

    Raises:
        OptionError: There are no options.
    """
    if not options:
        raise OptionError(
            "path: klog got no options. Give them to df.write, with the root to save() or "
            "start(). Rows for a table of Spark's catalog (INSERT, CREATE TABLE ... AS SELECT) are "
            'written so too: df.write.format("klog").option("topic", "orders").mode("append")'
            '.save("/data/klog")'
        )
