"""Times of fields: each row by itself, and the row that is not one."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from klog.errors import OptionError
from klog.jobs.importing_files.field_times import WrongRowError, times_of

SECOND = 1_000_000
AT = 1_735_787_045 * SECOND
"""2025-01-02 03:04:05 UTC, in microseconds."""
DAY = AT - (3 * 3600 + 4 * 60 + 5) * SECOND


def test_text_has_many_forms_in_one_column() -> None:
    expected: dict[str | None, int | None] = {
        "2025-01-02T03:04:05Z": AT,
        "2025-01-02 03:04:05": AT,
        "2025-01-02T03:04:05.123456789Z": AT + 123_456,
        "2025-01-02T03:04:05.5": AT + 500_000,
        "2025-01-02T03:04": AT - 5 * SECOND,
        "2025-01-02T03:04:05+00": AT,
        "2025-01-02T05:34:05+0230": AT,
        "2025-01-02T01:04:05-02:00": AT,
        "2025-01-02": DAY,
        "1735787045678": AT + 678_000,
        "-1": -1000,
        "0": 0,
        "": None,
        None: None,
    }
    times = times_of(pa.array(list(expected), pa.string()), "at")
    assert times.cast(pa.int64()).to_pylist() == list(expected.values())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([AT // 1000, None], pa.uint64()), AT),
        (pa.array([AT * 1000 + 7, None], pa.timestamp("ns")), AT),
        (pa.array([AT // SECOND, None], pa.timestamp("s", "Europe/Berlin")), AT),
        (pa.array([dt.date(2025, 1, 2), None]), DAY),
        (pa.array([dt.date(2025, 1, 2), None], pa.date64()), DAY),
        (pa.array([None, None], pa.null()), None),
    ],
)
def test_columns_with_types(column: pa.Array, expected: int | None) -> None:
    assert times_of(column, "at").cast(pa.int64()).to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ("20250102", pa.string()),
        ("1735787045", pa.string()),
        ("1735787045678.0", pa.string()),
        ("2025-02-30", pa.string()),
        ("2025-01-02T24:00", pa.string()),
        ("2025-01-02T03:04:05.1234567890", pa.string()),
        ("yesterday", pa.string()),
        ("9" * 18, pa.string()),
        (1_735_787_045, pa.int64()),
        (2**64 - 1, pa.uint64()),
        (2**62, pa.int64()),
        (2**62, pa.timestamp("s")),
        (2**31 - 1, pa.date32()),
    ],
)
def test_the_first_wrong_row_is_named(wrong: Any, kind: pa.DataType) -> None:
    column = pa.array([None, 0 if kind != pa.string() else "0", wrong, wrong], kind)
    with pytest.raises(WrongRowError, match=r"at is .*, which is not a time") as raised:
        times_of(column, "at")
    assert raised.value.row == 2


def test_a_type_without_times_is_refused() -> None:
    with pytest.raises(OptionError, match="column at has the type double"):
        times_of(pa.array([1.5]), "at")
