"""What the Python processes of a read import: no more than they need, by module and never by time.

The rule: Spark runs `schema()`, `partitions()` and `read()` each in a process of its own, and a
query waits for all three. What is named here is heavy, or is the work of another of these
processes; klog imports it inside of the function that needs it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import klog
from tests.connector.log_dirs import many, write_log
from tests.support.read_processes import PICKLE_A_STREAM, STEPS, run_step

HEAVY = {
    "pandas", "fsspec", "asyncio", "numba", "ssl", "http.client", "obstore", "hdfs_native",
    "pyarrow.parquet", "pyarrow.dataset", "pyarrow.fs", "requests", "aiohttp",
}  # fmt: skip
DECODING = {"klog.logformat.batches.decode_records", "klog.connector.source.slice_decoding"}
PLANNING = {
    "klog.connector.source.scan_planner", "klog.connector.source.read_plan",
    "klog.connector.commit_log.klog_root", "klog.connector.kafka_dir.raw_root",
}  # fmt: skip
OPTIONS = {"klog.connector.options.option_table", "klog.connector.options.storage_option_table"}
WRITING = {"klog.connector.sink", "klog.logformat.batches.encode_records"}

NEW_MODULES = """
import json

def begin():
    global before
    before = set(sys.modules)

def end():
    print(json.dumps(sorted(set(sys.modules) - before)))
"""
"""Print the modules that klog made the process import."""


@dataclass(frozen=True)
class Root:
    """A root with a topic of 100 records."""

    path: Path
    kind: str


@pytest.fixture(scope="module", params=["none", "lz4", "raw"])
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Root:
    path = tmp_path_factory.mktemp("root")
    if request.param == "raw":
        write_log(path, {0: many(100)})
        return Root(path, "raw")
    log = klog.open(path)
    log.create_topic("t", config={"compression.type": request.param})
    log.append("t", pa.table({"value": [str(number) for number in range(100)]}))
    return Root(path, "klog")


def test_each_process_imports_what_it_needs(root: Root, tmp_path: Path) -> None:
    imported: dict[str, set[str]] = {
        step: set(json.loads(run_step(step, NEW_MODULES, root.path, "t", 100, tmp_path)))
        for step in STEPS
    }
    for step, modules in imported.items():
        assert not modules & (HEAVY | WRITING), step
    assert "klog.connector.source.scan_planner" in imported["load"]
    assert not imported["load"] & {"numpy.ma", "klog.connector.decoded_offsets"}
    assert not imported["plan"] & (DECODING | PLANNING)
    assert imported["task"] >= DECODING
    assert not imported["task"] & (PLANNING | OPTIONS)
    if root.kind == "klog":
        assert "klog.connector.kafka_dir.raw_root" not in imported["load"]
    else:
        assert "klog.connector.kafka_dir.raw_root" in imported["load"]


def test_a_stream_reader_that_is_only_pickled_imports_no_planner(
    root: Root, tmp_path: Path
) -> None:
    imported = set(
        json.loads(run_step(PICKLE_A_STREAM, NEW_MODULES, root.path, "t", 100, tmp_path))
    )
    assert "klog.connector.source.stream_reader" in imported
    assert not imported & (DECODING | PLANNING | HEAVY | WRITING)
