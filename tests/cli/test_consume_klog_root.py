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


@pytest.mark.parametrize(
    ("where", "printed"),
    [
        (["--as-of-version", "0"], ""),
        (["--as-of-version", "1", "-o", "-1"], "0:1 c NULL\n1:0 b 2\n"),
        (["--as-of-version", "2"], "0:0 a 1\n0:1 c NULL\n1:0 b 2\n1:1 d 4\n"),
        (["--as-of-timestamp", "now-0s"], ""),
    ],
)
def test_an_earlier_version(klog: Klog, root: str, where: list[str], printed: str) -> None:
    log = open_log(root, {})
    log.append("t", pa.table({"key": ["d"], "value": ["4"], "partition": [1]}))
    log.restore("t", version=0)
    result = klog("consume", "--root", root, "--topic", "t", "-f", r"%p:%o %k %s\n", *where)
    assert (result.code, result.out.decode(), result.err) == (0, printed, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--as-of-version", "7"], 1, "klog: --as-of-version: topic t has no version 7"),
        (["--as-of-timestamp", "1"], 1, "klog: --as-of-timestamp: topic t has no version at 1970"),
        (["--as-of-timestamp", "x"], 1, "klog: --as-of-timestamp: must be a time in ms"),
        (["--as-of-version", "0", "--follow"], 2, "nothing comes to an earlier version"),
        (["--as-of-version", "0", "--as-of-timestamp", "1"], 2, "not allowed with argument"),
        (["--as-of-version", "0", "-t", "x"], 1, "there is no topic x"),
    ],
)
def test_an_earlier_version_that_is_not_there(
    klog: Klog, root: str, arguments: list[str], code: int, message: str
) -> None:
    result = klog("consume", "--root", root, "--topic", "t", *arguments)
    assert (result.code, result.out) == (code, b"")
    assert message in result.err


def test_a_brokers_directory_has_no_earlier_version(on_scene: Klog) -> None:
    result = on_scene("records", "consume", "--topic", "codecs", "--as-of-version", "0")
    assert result.code == 1
    assert "which keep no earlier versions" in result.err
