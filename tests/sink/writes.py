"""Writes of several tasks, planned, staged and committed in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import klog
from klog.connector.log.operations import Writer
from klog.connector.sink import committing, writing
from klog.connector.sink.write_options import WriteOptions, write_options
from klog.connector.sink.writing import Planned, TaskWork


def options(root: Path, **given: Any) -> WriteOptions:
    return write_options({"path": str(root), **{name: str(v) for name, v in given.items()}})


def rows(*values: object, **columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [str(value) for value in values], **columns})


def writer(batch: int, query: str = "q", run: str = "r", name: str = "etl") -> Writer:
    return Writer(name, batch, query, run)


def work(
    planned: Planned, *tasks: pa.RecordBatch, by: Writer | None = None, attempt: int = 0
) -> list[TaskWork]:
    """Stage a task for each batch."""
    return [
        writing.stage(planned, by, task, attempt + task, iter([batch]))
        for task, batch in enumerate(tasks)
    ]


def write(given: WriteOptions, *tasks: pa.RecordBatch, by: Writer | None = None) -> None:
    committing.commit(given, work(writing.plan(given, streaming=True), *tasks, by=by))


def values(root: Path, topic: str = "t") -> list[str]:
    """What a topic has, by partition and offset."""
    table = klog.open(root).scan(topic).read_all()
    return [value.decode() for value in table["value"].to_pylist()]


def versions(root: Path, topic: str = "t") -> int:
    return len(klog.open(root).history(topic))
