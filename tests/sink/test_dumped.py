"""What a task stages, put before Kafka's dump tool under a broker's names: it finds no fault.

The rule: uncontended, a staged segment is an exact segment of Kafka's, indexes and all.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.broker import kafka_tool_output
from tests.commits.logs import ROOT
from tests.sink.staging import NOW_MS, Done, staged, topic

pytestmark = pytest.mark.kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROWS = 6000
RECORD = re.compile(
    r"^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+)", re.M
)
FAULTS = re.compile("isvalid: false|Found|[Ii]nvalid|not found|out of order")


def given() -> pa.Table:
    """Make rows with keys, headers and tombstones, half of them out of order by time."""
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


def as_a_broker_names_them(done: Done, folder: Path) -> list[Path]:
    """Write the staged files under the names that a broker would have given them."""
    paths = []
    for path, content in done.store.files.items():
        directory, _, name = path.removeprefix(f"{ROOT}/").partition("/")
        offset, suffix = name.split("-")[0], name.rpartition(".")[2]
        (folder / directory).mkdir(exist_ok=True, parents=True)
        paths.append(folder / directory / f"{offset}.{suffix}")
        paths[-1].write_bytes(content)
    return paths


def dumped(paths: list[Path], *options: str) -> str:
    """Run the tool over files; it names mismatches only on standard error."""
    files = ",".join(map(str, paths))
    said, told = kafka_tool_output("kafka.tools.DumpLogSegments", *options, "--files", files)
    assert [line for line in told.splitlines() if not line.startswith(("SLF4J", "WARNING"))] == []
    assert said.count("Dumping ") == len(paths), "it stops at the first file it cannot read"
    return said


def test_the_dump_tool_finds_every_record_and_no_fault(tmp_path: Path) -> None:
    options = {"batch.size": "5000", "segment.bytes": "150000"}
    staged_files: list[Path] = []
    for codec in CODECS:
        done = staged(topic(), given(), options | {"compression.type": codec})
        staged_files += as_a_broker_names_them(done, tmp_path / codec)
    logs = [path for path in staged_files if path.suffix == ".log"]
    indexes = [path for path in staged_files if path.suffix != ".log"]
    assert len(logs) > 2 * len(CODECS)
    assert len(indexes) > 2 * len(CODECS)
    said = dumped(logs, "--deep-iteration")
    rows = given()
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
    assert RECORD.findall(said) == expected * len(CODECS)
    # With no option it compares the entries of an index with the log beside it.
    for found in (said, dumped(indexes), dumped(indexes, "--index-sanity-check")):
        assert not FAULTS.findall(found)
