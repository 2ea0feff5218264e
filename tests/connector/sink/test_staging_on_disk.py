"""An append on local disk, with a real spool file; and what is pickled for other processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa

from klog.connector.commit_log import commit_builders
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.embedded_append import append
from klog.connector.producer_ids import ProducerIdentity
from klog.connector.sink.write_plan import TaskAttempt, plan_topic
from klog.connector.store.local_store import LocalStore
from tests.connector.commit_log.memory_logs import Clock, attempt
from tests.connector.sink.staged_rows import read_segment
from tests.connector.sink.staged_tasks import topic_state

ROWS = 30_000


def test_append_is_on_disk(tmp_path: Path) -> None:
    paths = TopicPaths(str(tmp_path), "orders")
    log = CommitLog(LocalStore(), paths, Clock(), lambda tries: None)
    build = commit_builders.create_topic(Topic("an id", 3), {"compression.type": "lz4"})
    state = log.commit(log.load(), build, attempt("create-topic"))
    values = [str(i).encode() * 10 for i in range(ROWS)]
    rows = pa.table({"key": pa.array(np.arange(ROWS)).cast(pa.string()), "value": values})
    options = {"buffer.memory": "100000", "batch.size": "4000"}
    result = append(log, state, rows, attempt("append"), options)
    records = []
    for entry in log.load().segments.to_pylist():
        records += read_segment((tmp_path / entry["file"]).read_bytes(), entry)
        for suffix, size in ((".index", "index_bytes"), (".timeindex", "time_index_bytes")):
            index = (tmp_path / entry["file"]).with_suffix(suffix)
            assert index.stat().st_size == entry[size] > 0
    assert sorted(row.value or b"" for row in records) == sorted(values)
    assert sum(end - start for start, end in result.offsets.values()) == ROWS
    temporary_files = [path.name for path in tmp_path.rglob("*") if path.suffix == ".tmp"]
    assert temporary_files == []


def test_plan_and_task_attempt_can_be_pickled() -> None:
    plan = plan_topic("orders", topic_state(3), {"compression.type": "gzip"})
    task = TaskAttempt(2, "00c0ffee", 5, ProducerIdentity(7, 0))
    assert pickle.loads(pickle.dumps((plan, task))) == (plan, task)
