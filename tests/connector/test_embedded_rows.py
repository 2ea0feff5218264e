"""What `Log.append` takes, what it returns, and how columns and roots are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import klog
from klog.connector.embedded import Log
from klog.errors import OptionError

TABLE = pa.table({"key": ["a", "b"], "value": ["x", None]})


class Stream:
    """Nothing but Arrow's C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


FRAMES: dict[str, Callable[[], Any]] = {
    "stream": Stream,
    "table": lambda: TABLE,
    "reader": TABLE.to_reader,
    "batches": TABLE.to_batches,
    "polars": lambda: pl.from_arrow(TABLE),
    "pandas": TABLE.to_pandas,
    "filtered pandas": lambda: pd.DataFrame(
        {"key": ["z", "a", "b"], "value": ["z", "x", None]}
    ).query("key != 'z'"),
    "DuckDB": lambda: duckdb.sql("SELECT * FROM (VALUES ('a', 'x'), ('b', NULL)) t(key, value)"),
    "polars categories": lambda: pl.DataFrame(
        {"key": pl.Series(["a", "b"], dtype=pl.Categorical), "value": ["x", None]}
    ),
}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1)
    return log


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_whatever_speaks_arrow_is_appended(log: Log, frame: Callable[[], Any]) -> None:
    log.append("t", frame())
    rows = log.scan("t", columns=["key", "value"]).read_all()
    assert rows.to_pydict() == {"key": [b"a", b"b"], "value": [b"x", None]}


@pytest.mark.parametrize("rows", [5, "text", [{"value": 1}], None], ids=repr)
def test_other_rows_are_refused(log: Log, rows: Any) -> None:
    with pytest.raises(OptionError, match=r"rows (are|come as) .*Arrow's C stream interface"):
        log.append("t", rows)


def test_empty_stream_of_other_columns_is_refused(log: Log) -> None:
    with pytest.raises(OptionError, match="column valu: a write has no such column"):
        log.append("t", pl.DataFrame({"valu": []}))


def test_columns_match_in_any_case(log: Log) -> None:
    log.append("t", pa.table({"KEY": ["a"], "Value": ["x"], "TIMESTAMPTYPE": [0]}))
    rows = log.scan("t", columns=["VALUE", "Key"]).read_all()
    assert rows.to_pydict() == {"value": [b"x"], "key": [b"a"]}
    assert log.scan("t", columns="TimestampType").read_all().column_names == ["timestampType"]
    with pytest.raises(OptionError, match="column value is there more than once"):
        log.append("t", pa.table({"Value": ["x"], "VALUE": ["y"]}))


def test_home_directory(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append("t", TABLE)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert klog.open("~/root").topics() == ["t"]
    klog.open("~/new").create_topic("made")
    klog.open("~user").create_topic("made")
    assert {path.name for path in tmp_path.iterdir()} == {"root", "new", "~user"}


def test_results_print_in_one_line(log: Log) -> None:
    result = log.append("t", TABLE)
    assert repr(result) == "AppendResult(version=1, offsets={0: (0, 2)}, is_new=True)"
    appended, created = log.history("t")
    assert str(appended).startswith("<Commit version 1, append at 2")
    assert ", 2 records, 1 segments added, by klog " in str(appended)
    assert "create-topic" in str(created)
    assert "records" not in str(created)
