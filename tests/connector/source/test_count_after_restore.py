"""A count across restores is the number of records that a scan between the same bounds returns."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from klog.cli import main
from klog.connector.embedded import Log
from klog.errors import OffsetOutOfRangeError
from klog.jobs import compact, merge
from tests.support.reader_rows import LEVELS


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Make versions 1 to 4 by appends of 3 records, the last ones with the keys of the first."""
    log = klog.open(tmp_path / "root")
    log.create_topic("t", 1, {"cleanup.policy": "compact"})
    for number in range(4):
        keys = [f"{(3 * number + at) % 6}" for at in range(3)]
        log.append("t", pa.table({"key": keys, "value": [f"{number}"] * 3}))
    return str(tmp_path / "root")


def check(log: Log, expected: list[int]) -> None:
    """Compare the counts between bounds, amid segments too, with the offsets of a scan."""
    offsets = log.scan("t", columns=["offset"]).read_all()["offset"].to_pylist()
    assert offsets == expected
    end = log.offsets("t", at="latest")[0]
    assert end is not None
    bounds = [0, 2, 5, 6, 7, 11, end]
    for level in LEVELS:
        assert log.count("t", isolation_level=level) == {0: len(expected)}
    for first, stop in combinations_with_replacement(bounds, 2):
        count = sum(first <= offset < stop for offset in expected)
        assert log.count("t", first, stop) == {0: count}


@pytest.mark.parametrize("is_merged", [False, True])
def test_offsets_that_were_taken_back_count_nothing(path: str, is_merged: bool) -> None:
    log = klog.open(path)
    if is_merged:
        merge.run(None, path, "t")
    log.restore("t", version=2)
    check(log, [0, 1, 2, 3, 4, 5])
    log.append("t", pa.table({"key": ["a"], "value": ["after"]}))
    check(log, [0, 1, 2, 3, 4, 5, 12])
    merge.run(None, path, "t")
    check(log, [0, 1, 2, 3, 4, 5, 12])


def test_records_that_came_back_count_again(path: str) -> None:
    log = klog.open(path)
    compact.run(None, path, "t", min_dirty_ratio=0)
    check(log, [6, 7, 8, 9, 10, 11])
    log.restore("t", version=4)
    check(log, list(range(12)))
    log.restore("t", version=1)
    undone = log.describe("t").version - 1
    check(log, [0, 1, 2])
    log.restore("t", version=undone)
    check(log, list(range(12)))
    compact.run(None, path, "t", min_dirty_ratio=0)
    check(log, [6, 7, 8, 9, 10, 11])


def test_the_verb_says_the_same(path: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    log = klog.open(path)
    log.restore("t", version=2)
    log.append("t", pa.table({"key": ["a"], "value": ["after"]}))
    capfdbinary.readouterr()
    for start, end, count in (("earliest", "latest", 7), ("4", "12", 2), ("6", "13", 1)):
        bounds = [
            text if text.isalpha() else json.dumps({"t": {"0": int(text)}}) for text in (start, end)
        ]
        code = main(["count", "--root", path, "-t", "t", "--start", bounds[0], "--end", bounds[1]])
        assert (code, capfdbinary.readouterr().out) == (0, b"t:0:%d\n" % count)
    with pytest.raises(OffsetOutOfRangeError, match="out of range"):
        log.count("t", 0, 14)
