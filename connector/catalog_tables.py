"""Tables of Spark's catalog, which klog cannot be without a view: they lose their options.

The rule: Spark 4.2 and 4.3 hand the options of a catalog table to a Python data source when the
table is created, and none at all when it is read or written. So a table that could not be read is
refused where it is created; one that was created all the same, such as one with columns of its own,
is refused where it is used. Both errors name the view to use instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from klog.errors import OptionError

_CREATING = "provider"
"""Among the options only as a catalog table is created. With it come `owner`, `location`,
`external`, `comment`, each option once more as `option.<name>`, and the table's properties under
any name."""
_INSTEAD = (
    "Spark gives the options of a catalog table to no Python data source that reads or writes it. "
    "Create a view instead: CREATE TEMPORARY VIEW t USING klog OPTIONS (path '/data/klog', "
    "subscribe 'orders')"
)


def refuse_new_table(options: Mapping[str, str]) -> None:
    """Raise `OptionError` where Spark asks for the columns of a table that it is to create."""
    if _CREATING in {name.lower() for name in options}:
        raise OptionError(f"klog cannot be a table of Spark's catalog: {_INSTEAD}")


def refuse_table_read(options: Mapping[str, str]) -> None:
    """Raise `OptionError` where Spark reads a catalog table: no option is left then."""
    if not options:
        raise OptionError(
            "path: klog was given no options. Give them to spark.read, with the root to load(). If "
            f"this is a table of Spark's catalog: {_INSTEAD}"
        )


def refuse_table_write(options: Mapping[str, str]) -> None:
    """Raise `OptionError` where Spark writes a catalog table: no option is left then."""
    if not options:
        raise OptionError(
            "path: klog was given no options. Give them to df.write, with the root to save() or "
            "start(). Rows for a table of Spark's catalog (INSERT, CREATE TABLE ... AS SELECT) are "
            'written so too: df.write.format("klog").option("topic", "orders").mode("append")'
            '.save("/data/klog")'
        )
