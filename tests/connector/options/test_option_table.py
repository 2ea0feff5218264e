"""The table of options: each option once, and defaults that are values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from klog.connector.options import read_option_table, write_option_table
from klog.connector.options.option import Mode, Option, Use
from klog.connector.options.option_map import option_map
from klog.connector.options.option_table import OPTION_TABLE
from klog.errors import OptionError

DEFAULTS = [
    (row, default)
    for row in OPTION_TABLE
    for default in (row.default, row.stream_default)
    if default is not None
]


def test_each_option_has_one_row() -> None:
    counts = Counter((row.use, row.name.lower()) for row in OPTION_TABLE)
    assert not [name for name, count in counts.items() if count > 1]


def test_each_option_of_the_module_is_in_the_table() -> None:
    tables = (read_option_table, write_option_table)
    rows = [row for table in tables for row in vars(table).values() if isinstance(row, Option)]
    assert rows
    assert all(any(row is other for other in OPTION_TABLE) for row in rows)


@pytest.mark.parametrize(("row", "default"), DEFAULTS, ids=lambda value: getattr(value, "name", ""))
def test_default_has_a_value(row: Option[Any], default: str) -> None:
    row.parse(default)


@pytest.mark.parametrize("row", OPTION_TABLE, ids=lambda row: row.name)
def test_help_is_one_sentence_or_more(row: Option[Any]) -> None:
    assert row.help.endswith(".")
    assert "\n" not in row.help


@pytest.mark.parametrize("row", OPTION_TABLE, ids=lambda row: row.name)
def test_option_says_what_happens_without_it(row: Option[Any]) -> None:
    is_listed = row.is_supported and row.use is not Use.STORAGE
    assert bool(row.default or row.default_help) or not is_listed


@pytest.mark.parametrize("row", OPTION_TABLE, ids=lambda row: row.name)
def test_example_has_a_value(row: Option[Any]) -> None:
    if row.parser.example:
        row.parse(row.parser.example)


def test_option_of_a_batch_says_why_a_stream_has_none() -> None:
    """One of a stream has no effect on a batch, as in Spark."""
    for row in OPTION_TABLE:
        assert bool(row.wrong_mode_reason) == (row.mode is Mode.BATCH), row.name


def test_what_spark_and_fsspec_bring_has_rows() -> None:
    names = {(row.use, row.name) for row in OPTION_TABLE}
    assert {
        (Use.READ, "path"),
        (Use.READ, "paths"),
        (Use.WRITE, "path"),
        (Use.STORAGE, "storage.fsspec.<name>"),
    } <= names
    with pytest.raises(OptionError, match=r"Did you mean path\?"):
        option_map({"pth": "/x"}, Use.WRITE)
