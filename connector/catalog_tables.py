"""Statements on tables of Spark's catalog: the options of the table, and those of the statement.

The rule: Spark 4.2 and 4.3 hand the options of `CREATE TABLE` to a Python data source only while
the table is created. klog's jar adds them to those of a statement, and says which are the table's
(`klog.table`). Of these a read takes what is for reads, and a write what is for writes; an option
of the statement wins, also over another one that says the same. Without the jar a statement has
only its own options, and one that has none is refused with the statement that works.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from klog.connector.options.option import Option, Use
from klog.connector.options.option_map import is_known, option_rows
from klog.connector.options.read_option_table import (
    AS_OF_TIMESTAMP,
    AS_OF_VERSION,
    ASSIGN,
    ENDING_OFFSETS,
    ENDING_OFFSETS_BY_TIMESTAMP,
    ENDING_TIMESTAMP,
    READ_PATH,
    READ_PATHS,
    STARTING_OFFSETS,
    STARTING_OFFSETS_BY_TIMESTAMP,
    STARTING_TIMESTAMP,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
)
from klog.connector.options.write_option_table import WRITE_PATH
from klog.connector.source.read_schema import schema_difference
from klog.connector.table_secrets import refuse_secrets
from klog.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TABLE_OPTION = "klog.table"
"""What klog's jar says of a table of the catalog, as JSON. A user's is an unknown option."""
_ENTRY_FIELDS = ("name", "options")

_LOST = "path: klog got no options: Spark keeps those of a table to itself."
_JAR = (
    "or start the session with klog's jar, which brings those of the table: "
    "klog.configure(SparkSession.builder), or --jars $(klog jar)"
)
_SELECT = "SELECT * FROM {} WITH (path = '/data/klog', subscribe = 'orders')"
_TABLE = 'spark.read.option("path", "/data/klog").option("subscribe", "orders").table("{}")'
_INSERT = "INSERT INTO {} WITH (path = '/data/klog', topic = 'orders') SELECT ..."
_WRITE_TO = 'df.writeTo("{}").option("path", "/data/klog").option("topic", "orders").append()'

_PATHS = (READ_PATH, READ_PATHS)
_STRATEGIES = (SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN)
_ALTERNATIVES: tuple[tuple[Option[Any], ...], ...] = (
    _PATHS,
    _STRATEGIES,
    (STARTING_OFFSETS, STARTING_TIMESTAMP, STARTING_OFFSETS_BY_TIMESTAMP),
    (ENDING_OFFSETS, ENDING_TIMESTAMP, ENDING_OFFSETS_BY_TIMESTAMP),
    (AS_OF_VERSION, AS_OF_TIMESTAMP),
)
"""Options that say the same thing in different ways."""


def table_read_options(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Return the options of a read, those of its table among them.

    Args:
        options: The options as Spark or klog's jar hands them over.
        schema: The columns of the table. `saveAsTable` gives it those of the rows, which klog may
            not read.

    Raises:
        OptionError: Nothing says what is read, or the table keeps an option that it must not.
    """
    if not options:
        _refuse_lost_read(schema)
    merged, name = _merged(options, Use.READ)
    if name:
        for alternatives in (_PATHS, _STRATEGIES):
            if not any(option.name.lower() in merged for option in alternatives):
                words = ", or ".join((_SELECT.format(name), _TABLE.format(name)))
                raise _missing_option(alternatives[0], name, words)
    return merged


def table_write_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a write, those of its table among them.

    Args:
        options: The options as Spark or klog's jar hands them over.

    Raises:
        OptionError: Nothing says where to write, or the table keeps an option that it must not.
    """
    if not options:
        words = f"{_INSERT.format('t')}, or {_WRITE_TO.format('t')}"
        raise OptionError(f"{_LOST} Name them in the statement: {words}, {_JAR}")
    merged, name = _merged(options, Use.WRITE)
    if name and WRITE_PATH.name not in merged:
        words = ", or ".join((_INSERT.format(name), _WRITE_TO.format(name)))
        raise _missing_option(WRITE_PATH, name, words)
    return merged


def of_jar(text: str, fields: Collection[str]) -> dict[str, Any] | None:
    """Return what klog's jar says in `TABLE_OPTION`; None if the jar has not written the text.

    Args:
        text: The option; empty if there is none.
        fields: The names that the jar writes.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.keys() == set(fields) else None


def _missing_option(option: Option[Any], name: str, statements: str) -> OptionError:
    is_path = option.name == READ_PATH.name
    kept_as = "LOCATION '/data/klog'" if is_path else "OPTIONS (subscribe 'orders')"
    return OptionError(
        f"{option.name}: not in the options of the table {name}. Name it in the statement: "
        f"{statements}, or create the table with {kept_as}"
    )


def _refuse_lost_read(schema: StructType) -> NoReturn:
    difference = schema_difference(schema)
    if difference is None:
        words = f"{_SELECT.format('t')}, or {_TABLE.format('t')}"
        raise OptionError(f"{_LOST} Name them in the query: {words}, {_JAR}")
    raise OptionError(
        f"{_LOST} The table has columns of its own ({difference}): DROP TABLE t, and CREATE TABLE "
        f"t USING klog without columns. Then name them in the query: {_SELECT.format('t')}, {_JAR}"
    )


def _merged(options: Mapping[str, str], use: Use) -> tuple[dict[str, str], str]:
    """Return the options of a statement, and the name of its table; empty if the jar gives none."""
    merged = {name.lower(): text for name, text in options.items()}
    text = merged.pop(TABLE_OPTION, None)
    if text is None:
        return merged, ""
    entry = of_jar(text, _ENTRY_FIELDS)
    if entry is None:
        raise OptionError(
            f"{TABLE_OPTION}: unknown {use.value} option. Leave it out: only klog's jar sets it"
        )
    stored = {name: merged.pop(name) for name in entry["options"]}
    refuse_secrets(stored)
    settled = {_what_it_says(name, use) for name in merged}
    other = Use.WRITE if use is Use.READ else Use.READ
    for name, text in stored.items():
        is_of_other = is_known(name, other) and not is_known(name, use)
        if not is_of_other and _what_it_says(name, use) not in settled:
            merged[name] = text
    return merged, str(entry["name"])


def _what_it_says(name: str, use: Use) -> str:
    """Return one name for all options that say the same thing."""
    option = option_rows(use).get(name)
    if option is None:
        return name
    return next((row[0].name for row in _ALTERNATIVES if option in row), option.name)
