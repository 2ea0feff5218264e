"""`klog checkpoint copy` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.connector.spark_checkpoint.written_checkpoint import (
    QUERY_ID,
    contents,
    write_checkpoint,
)
from tests.support.klog_command import Klog

COPY = ("checkpoint", "copy", "--watch", "0")


@pytest.fixture
def source(tmp_path: Path) -> str:
    ends = [{"t": {"0": 5, "1": 2}}, {"t": {"0": 9, "1": 2}}]
    return str(write_checkpoint(tmp_path / "kafka", ends, committed=1))


def test_what_is_printed(klog: Klog, source: str, tmp_path: Path) -> None:
    target = str(tmp_path / "klog")
    dry = klog(*COPY, source, target, "--dry-run")
    assert (dry.code, dry.err) == (0, "")
    *lines, last = dry.out.decode().splitlines()
    assert lines[0].startswith(
        f"Checkpoint: {target}\tQuery: {QUERY_ID}\tLastCommittedBatch: 0\tRunsAgain: 1\tFiles: 6\t"
    )
    assert lines[1:] == [
        "\tSource: 0\tTopic: t\tPartition: 0\tNext: 5",
        "\tSource: 0\tTopic: t\tPartition: 1\tNext: 2",
    ]
    assert "dry run" in last
    assert not Path(target).exists()
    done = klog(*COPY, source, target).out.decode().splitlines()
    assert done[:-1] == lines
    assert 'format("klog")' in done[-1]


def test_json(klog: Klog, source: str, tmp_path: Path) -> None:
    target = tmp_path / "klog"
    printed = json.loads(klog(*COPY, source, str(target), "--json").out)
    assert printed == {
        "source": source,
        "target": str(target),
        "queryId": QUERY_ID,
        "lastCommittedBatch": 0,
        "unfinishedBatch": 1,
        "dryRun": False,
        "files": 6,
        "bytes": sum(map(len, contents(target).values())),
        "nextOffsets": {"0": {"t": {"0": 5, "1": 2}}},
    }


def test_a_refusal_is_one_line(klog: Klog, tmp_path: Path) -> None:
    result = klog(*COPY, str(tmp_path), str(tmp_path / "klog"))
    assert (result.code, result.out, result.err.count("\n")) == (1, b"", 1)
    assert "is not a checkpoint" in result.err


@pytest.mark.parametrize("seconds", ["-1", "nan", "x", "86401"])
def test_a_wrong_watch(klog: Klog, source: str, tmp_path: Path, seconds: str) -> None:
    result = klog("checkpoint", "copy", source, str(tmp_path / "klog"), f"--watch={seconds}")
    assert result.code == 2
    assert "--watch: must be seconds" in result.err
