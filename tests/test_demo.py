"""`make demo` shows the main jobs from any folder, with the rows that the real consumer read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import scene
from tests.support.project import PROJECT

DEMO = PROJECT / "demo" / "demo.py"


@pytest.mark.full  # The README's blocks show most of it.
@pytest.mark.spark
def test_the_demo_shows_what_the_real_consumer_saw(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DEMO],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    topics, counts, window, stream, written, kept = done.stdout.split("\n== ")[1:]
    assert "Topic: txn.open\t" in topics
    committed = [record for record in scene("transactions").records() if record.read_committed]
    counted = re.findall(r"^\| *(\S+)\| *(\d+)\| *(\d+)\|$", counts, re.MULTILINE)
    assert Counter({(topic, int(p)): int(count) for topic, p, count in counted}) == Counter(
        (record.topic, record.partition) for record in committed
    )
    shown = [int(offset) for offset in re.findall(r"^\|(\d+) +\|", window, re.MULTILINE)]
    streamed = [
        (record.partition, record.offset)
        for record in committed
        if record.topic == "txn.interleaved"
    ]
    assert shown == [offset for p, offset in streamed if p == 0 and 40 <= offset < 50]
    first, *later = (int(rows) for rows in re.findall(r"(\d+) rows in the sink", stream))
    assert 0 < first < len(streamed)
    assert later == [len(streamed), len(streamed)]
    runs = [int(batches) for batches in re.findall(r"with (\d+) micro-batches", written)]
    assert 2 <= runs[0] < runs[1]
    numbers = re.search(r"records: (\d+), different ones: (\d+), expected: (\d+)", written)
    assert numbers is not None
    assert set(numbers.groups()) == {str(1000 * runs[1])}
    assert re.search(r"Segments: 20 -> [1-4]\t", kept)
    assert "Compacted: 2\tRecords: 20,000 -> 100\t" in kept
    assert "records in state: 100\n" in kept
    assert re.search(r"^  Topics: 1\tRemoved: [1-9]", kept, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []
