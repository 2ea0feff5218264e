"""`klog consume` on a klog root: it prints committed records, from offsets and times."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from klog.connector.embedded import open_log
from tests.support.klog_command import Klog

TIMES = pa.array([10, 20, 30], pa.timestamp("s", "UTC"))


@pytest.fixture
def root(tmp_path: Path) -> str:
    log = open_log(str(tmp_path / "root"), {})
    log.create_topic("t", partitions=2)
    rows = {"key": ["a", "b", "c"], "partition": pa.array([0, 1, 0]), "timestamp": TIMES}
    log.append("t", pa.table({**rows, "value": ["1", "2", None]}))
    return str(tmp_path / "root")


@pytest.mark.parametrize(
    ("where", "printed"),
    [
        ([], "0:0 a 1\n0:1 c NULL\n1:0 b 2\n"),
        (["-o", "-1"], "0:1 c NULL\n1:0 b 2\n"),
        (["-o", "s@20000"], "0:1 c NULL\n1:0 b 2\n"),
        (["-o", "e@30000"], "0:0 a 1\n1:0 b 2\n"),
        (["--partition", "0", "-o", "1"], "0:1 c NULL\n"),
        (["-c", "1"], "0:0 a 1\n"),
        (["-o", "latest"], ""),
    ],
)
def test_records_are_printed(klog: Klog, root: str, where: list[str], printed: str) -> None:
    result = klog("consume", "--root", root, "--topic", "t", "-f", r"%p:%o %k %s\n", *where)
    assert (result.code, result.out.decode(), result.err) == (0, printed, "")


def test_a_topic_that_is_not_there(klog: Klog, root: str) -> None:
    result = klog("consume", "--root", root, "--topic", "x")
    assert (result.code, result.out) == (1, b"")
    assert result.err == "klog: --topic: there is no topic x; the topics here are t\n"


def test_an_offset_that_is_not_there(klog: Klog, root: str) -> None:
    result = klog("consume", "--root", root, "--topic", "t", "-o", "7")
    assert result.code == 1
    assert "t-0: offset 7 is out of range; the log has 0 to 2" in result.err
