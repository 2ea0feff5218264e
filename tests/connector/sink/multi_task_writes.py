"""Writes of several tasks, planned, staged and committed in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log.append_commit import Writer
from klog.connector.options.write_options import WriteOptions, parse_write_options
from klog.connector.sink import write_commit, write_plan
from klog.connector.sink.task_writer import TaskCommitMessage, write_task
from klog.connector.sink.topic_state_cache import TopicStateCache
from klog.connector.sink.write_contract import (
    message_from_dict,
    message_to_dict,
    plan_from_dict,
    plan_to_dict,
)
from klog.connector.sink.write_plan import WritePlan, load_write_plan


def forget_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the caches of topics, as new processes have them: one plans, another commits."""
    for module in (write_plan, write_commit):
        monkeypatch.setattr(module, "TOPIC_STATES", TopicStateCache())


def write_options(root: Path, **options: Any) -> WriteOptions:
    return parse_write_options(
        {"path": str(root), **{name: str(value) for name, value in options.items()}}
    )


def rows(*values: object, **columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [str(value) for value in values], **columns})


def writer(batch: int, query: str = "q", run: str = "r", name: str = "etl") -> Writer:
    return Writer(name, batch, query, run)


def stage(
    plan: WritePlan, *batches: pa.RecordBatch, by: Writer | None = None, first_task: int = 0
) -> list[TaskCommitMessage]:
    """Stage each batch as a task; the plan and the messages travel as other processes get them."""
    sent_plan = plan_from_dict(plan_to_dict(plan), plan.options.storage)
    messages = [
        write_task(sent_plan, by, index, index, iter([batch]))
        for index, batch in enumerate(batches, first_task)
    ]
    return [message_from_dict(message_to_dict(message)) for message in messages]


def write(options: WriteOptions, *batches: pa.RecordBatch, by: Writer | None = None) -> None:
    write_commit.commit(
        options, stage(load_write_plan(options, is_streaming=True), *batches, by=by)
    )


def values(root: Path, topic: str = "t") -> list[str]:
    """Return the values of a topic, by partition and offset."""
    table = klog.open(root).scan(topic).read_all()
    return [value.decode() for value in table["value"].to_pylist()]


def versions(root: Path, topic: str = "t") -> int:
    return len(klog.open(root).history(topic))
