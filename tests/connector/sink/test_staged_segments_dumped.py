"""Kafka's dump tool reads staged segments, under a broker's names, and finds no fault.

The rule: a staged segment and its indexes are exactly those of a broker.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.connector.commit_log.memory_logs import ROOT
from tests.connector.sink.staged_tasks import NOW_MS, StagedTask, stage_rows, topic_state
from tests.support.kafka_broker import kafka_tool_output

pytestmark = pytest.mark.kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROWS = 6000
RECORD = re.compile(
    r"^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+)", re.M
)
FAULTS = re.compile("isvalid: false|Found|[Ii]nvalid|not found|out of order")


def input_rows() -> pa.Table:
    """Return rows with keys, headers and tombstones, half of them out of order by time."""
    numbers = np.arange(ROWS)
    noise = np.random.default_rng(7)
    return pa.table(
        {
            "key": pa.array([None if i % 7 == 0 else str(i % 50) for i in range(ROWS)]),
            "value": pa.array([None if i % 11 == 0 else noise.bytes(100) for i in range(ROWS)]),
            "headers": [[{"key": "h", "value": b"x"}] * (i % 3) for i in range(ROWS)],
            "timestamp": pa.array(NOW_MS - (ROWS - numbers) * 1000 - numbers % 5 * 3000).cast(
                pa.timestamp("ms")
            ),
        }
    )


def write_as_broker(task: StagedTask, folder: Path) -> list[Path]:
    """Write the staged files under the names that a broker gives them."""
    paths = []
    for path, content in task.store.files.items():
        directory, _, name = path.removeprefix(f"{ROOT}/").partition("/")
        offset, suffix = name.split("-")[0], name.rpartition(".")[2]
        (folder / directory).mkdir(exist_ok=True, parents=True)
        paths.append(folder / directory / f"{offset}.{suffix}")
        paths[-1].write_bytes(content)
    return paths


def dump(paths: list[Path], *options: str) -> str:
    """Return the tool's output for files; it names mismatches only on standard error."""
    files = ",".join(map(str, paths))
    output, errors = kafka_tool_output("kafka.tools.DumpLogSegments", *options, "--files", files)
    assert [line for line in errors.splitlines() if not line.startswith(("SLF4J", "WARNING"))] == []
    assert output.count("Dumping ") == len(paths), "it stops at the first file it cannot read"
    return output


def test_kafkas_dump_tool_reads_all_records_without_fault(tmp_path: Path) -> None:
    options = {"batch.size": "5000", "segment.bytes": "150000"}
    staged_files: list[Path] = []
    for codec in CODECS:
        task = stage_rows(topic_state(), input_rows(), options | {"compression.type": codec})
        staged_files += write_as_broker(task, tmp_path / codec)
    logs = [path for path in staged_files if path.suffix == ".log"]
    indexes = [path for path in staged_files if path.suffix != ".log"]
    assert len(logs) > 2 * len(CODECS)
    assert len(indexes) > 2 * len(CODECS)
    output = dump(logs, "--deep-iteration")
    rows = input_rows()
    expected = [
        tuple(map(str, row))
        for row in zip(
            range(ROWS),
            rows["timestamp"].cast(pa.int64()).to_pylist(),
            [-1 if key is None else len(key) for key in rows["key"].to_pylist()],
            [-1 if value is None else len(value) for value in rows["value"].to_pylist()],
            strict=True,
        )
    ]
    assert RECORD.findall(output) == expected * len(CODECS)
    # Without options it compares the entries of an index with the log.
    for text in (output, dump(indexes), dump(indexes, "--index-sanity-check")):
        assert not FAULTS.findall(text)
