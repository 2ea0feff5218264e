"""A table of the format `klog` that Spark is about to create in its catalog.

The rule: what the catalog keeps is checked before it is kept. Spark hands over the options of the
table as `option.<name>`, and properties of the table, which may have any name, next to them.
Without columns in the statement Spark asks for those that the options select; with columns only
klog's jar asks, and says which they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from klog.connector.catalog_tables import TABLE_OPTION, of_jar
from klog.connector.options.option import Use
from klog.connector.options.option_map import OptionMap, is_known, option_map, option_rows
from klog.connector.options.read_columns import COLUMNS
from klog.connector.options.read_option_table import READ_PATH
from klog.connector.options.read_options import selected_columns
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.options.unknown_options import unknown_option
from klog.connector.options.write_option_table import TRANSACTION_VERSION
from klog.connector.source.read_schema import schema_difference, schema_text
from klog.connector.table_secrets import refuse_secrets
from klog.errors import OptionError

_CREATION_OPTION = "provider"
"""Spark adds it only when it creates a catalog table."""
_STATEMENT_FIELDS = ("schema", "isReplaced")
"""What klog's jar says of the statement. A property of the user's may have the same name."""
_KEPT_PREFIX = "option."


def is_new_table(options: Mapping[str, str]) -> bool:
    """Return whether Spark asks for the columns of a table that it creates in its catalog.

    Args:
        options: The options as Spark hands them over.
    """
    return _CREATION_OPTION in {name.lower() for name in options}


def new_table_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that the options of a new table select, after a check of the table.

    Args:
        options: The options as Spark or klog's jar hands them over.

    Raises:
        OptionError: An option is unknown, wrong or secret, the columns of the statement are not
            those of klog, or the table replaces another one with its rows.
    """
    by_lower = {name.lower(): text for name, text in options.items()}
    kept = {
        name.removeprefix(_KEPT_PREFIX): text
        for name, text in by_lower.items()
        if name.startswith(_KEPT_PREFIX) or name == READ_PATH.name
    }
    refuse_secrets(kept)
    if TRANSACTION_VERSION.name.lower() in kept:
        raise OptionError(
            "transactionVersion: numbers one write, so a table must not keep it. Create the table "
            'first, then df.writeTo("t").option("transactionVersion", "7").append()'
        )
    read_options = _checked(kept)
    statement = of_jar(by_lower.get(TABLE_OPTION, ""), _STATEMENT_FIELDS)
    if statement is not None:
        _check_statement(statement)
    return selected_columns(read_options)


def _checked(kept: Mapping[str, str]) -> OptionMap:
    """Return those of a table's options that a read takes, after a check of all."""
    for name in kept:
        if not is_known(name, Use.READ) and not is_known(name, Use.WRITE):
            rows = [*option_rows(Use.READ).values(), *option_rows(Use.WRITE).values()]
            raise unknown_option(
                name, "table", dict.fromkeys(row.name for row in rows if row.is_supported)
            )
    parse_storage_options(kept)
    read_options, _ = (_checked_use(kept, use) for use in (Use.READ, Use.WRITE))
    return read_options


def _checked_use(kept: Mapping[str, str], use: Use) -> OptionMap:
    values = option_map({name: text for name, text in kept.items() if is_known(name, use)}, use)
    values.check(*option_rows(use).values())
    return values


def _check_statement(statement: Mapping[str, Any]) -> None:
    if statement["isReplaced"]:
        raise OptionError(
            "mode: klog only appends, and the rows of the table that is replaced would stay. Use "
            'mode("append"), or DROP TABLE and CREATE TABLE. To start again, delete the topic too '
            "(klog topics delete)"
        )
    from pyspark.sql.types import StructType

    difference = schema_difference(StructType.fromJson(json.loads(statement["schema"])))
    if difference is not None:
        raise OptionError(
            f"schema: {difference}. Change the columns in the query, as in CAST(value AS BINARY) "
            f"AS value, or create the table without columns. klog reads {schema_text(COLUMNS)}"
        )
