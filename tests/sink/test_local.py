"""Staging on local disk, with a real temporary file; and what travels to other processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa

from klog.connector.log import operations
from klog.connector.log.commit import Topic
from klog.connector.log.paths import TopicPaths
from klog.connector.log.topic_log import TopicLog
from klog.connector.sink.append import append
from klog.connector.sink.plan import plan_write
from klog.connector.sink.segments import Task
from klog.connector.store.local import LocalStore
from tests.commits.logs import Clock, attempt
from tests.sink.reading import read_segment
from tests.sink.staging import topic

ROWS = 30_000


def test_an_append_is_on_disk(tmp_path: Path) -> None:
    paths = TopicPaths(str(tmp_path), "orders")
    log = TopicLog(LocalStore(), paths, Clock(), lambda tries: None)
    build = operations.create_topic(Topic("an id", 3), {"compression.type": "lz4"})
    state = log.commit(log.load(), build, attempt("create-topic"))
    values = [str(i).encode() * 10 for i in range(ROWS)]
    rows = pa.table({"key": pa.array(np.arange(ROWS)).cast(pa.string()), "value": values})
    options = {"buffer.memory": "100000", "batch.size": "4000"}
    done = append(log, state, rows, attempt("append"), options)
    found = []
    for entry in log.load().segments.to_pylist():
        found += read_segment((tmp_path / entry["file"]).read_bytes(), entry)
        for suffix, size in ((".index", "index_bytes"), (".timeindex", "time_index_bytes")):
            index = (tmp_path / entry["file"]).with_suffix(suffix)
            assert index.stat().st_size == entry[size] > 0
    assert sorted(row.value or b"" for row in found) == sorted(values)
    assert sum(behind - first for first, behind in done.offsets.values()) == ROWS
    names = [path.name for path in tmp_path.rglob("*") if path.suffix == ".tmp"]
    assert names == []


def test_plan_and_task_travel_to_other_processes() -> None:
    plan = plan_write("orders", "/root", topic(3), {"compression.type": "gzip"}, "a writer", 7)
    task = Task(2, "00c0ffee", 5)
    assert pickle.loads(pickle.dumps((plan, task))) == (plan, task)
