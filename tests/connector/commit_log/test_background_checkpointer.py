"""When checkpoints are written, by whom, and what makes none."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from klog.connector.commit_log import (
    checkpoint_writer,
    parquet_tables,
    state_checkpoint,
)
from klog.connector.commit_log.background_checkpointer import BackgroundCheckpointer
from klog.connector.commit_log.checkpoint_schedule import is_checkpoint_due
from klog.connector.commit_log.commit import WriterTransaction
from klog.connector.commit_log.commit_log_paths import CheckpointName, parse_checkpoint_name
from klog.connector.commit_log.live_segments import ROW_SCHEMA, LiveSegments
from klog.connector.commit_log.topic_state import REMOVED_SCHEMA, TopicState
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError, UnsupportedFormatError
from tests.connector.commit_log.memory_logs import (
    CountingStore,
    append,
    appended,
    created,
    plain,
    topic_log,
)


def test_a_checkpoint_is_due_after_100_commits_and_a_tenth_of_its_size() -> None:
    newest = CheckpointName(500, 10_000, 0)
    assert not is_checkpoint_due(TopicState(version=98))
    assert is_checkpoint_due(TopicState(version=99))
    assert not is_checkpoint_due(TopicState(version=599, checkpoint=newest, tail_bytes=10**9))
    assert not is_checkpoint_due(TopicState(version=9999, checkpoint=newest, tail_bytes=999))
    assert is_checkpoint_due(TopicState(version=600, checkpoint=newest, tail_bytes=1000))


def test_a_state_knows_its_tail() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = appended(log, created(log), 3)
    commits = [len(data) for path, data in store.files.items() if "/log/" in path]
    assert (state.checkpoint, state.tail_bytes) == (None, sum(commits))
    assert log.load().tail_bytes == sum(commits)
    name = checkpoint_writer.write_checkpoint(log, state)
    state = append(log, state, (0, 1))
    loaded = log.load()
    assert loaded.checkpoint == name
    assert loaded.tail_bytes == len(store.files[log.paths.commit(state.version)])


def test_checkpoints_are_written_while_commits_go_on() -> None:
    store, checkpointer = CountingStore(), BackgroundCheckpointer()
    log = topic_log(store)
    state = created(log)
    names = []
    for _ in range(250):
        state = checkpointer.offer(log, append(log, state, (0, 1)))
        checkpointer.join()
    names = [name for name in log.names(log.paths.checkpoints) if parse_checkpoint_name(name)]
    assert [int(name.split("-")[0]) for name in sorted(names)] == [99, 199]
    assert state.checkpoint is not None
    assert str(state.checkpoint) in names
    store.requests.clear()
    assert plain(log.load()) == plain(state)
    assert store.requests["read"] == 1 + 51 + 1


def test_one_checkpoint_is_written_though_many_write(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore()
    log = topic_log(store)
    state = appended(log, created(log), 120)
    for _ in range(5):
        each = BackgroundCheckpointer()
        each.offer(log, state)
        each.join()
    assert len(log.names(log.paths.checkpoints)) == 1


def test_a_checkpoint_that_fails_fails_no_commit(caplog: pytest.LogCaptureFixture) -> None:
    class Full(CountingStore):
        def put_if_absent(self, path: str, data: bytes) -> PutResult:
            if "/checkpoints/" in path:
                raise KlogError("no space left")
            return super().put_if_absent(path, data)

    store, checkpointer = Full(), BackgroundCheckpointer()
    log = topic_log(store)
    state = created(log)
    with caplog.at_level(logging.WARNING):
        for _ in range(250):
            state = checkpointer.offer(log, append(log, state, (0, 1)))
            checkpointer.join()
    assert state.version == 250
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2  # Of versions 99 and 199, though states were loaded between.
    assert "no space left" in warnings[0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"vacuum_version": "x"}, "horizon is 'x'"),
        ({"version": 10**12}, "version is 1000000000000"),
        ({"log_start": ("a",)}, "log_start is 'a'"),
        ({"log_start": (0,)}, "1 log starts and 2 log ends"),
        ({"config": {"a": 5}}, "config is 5"),
        ({"config": {"a": "\ud800"}}, "config is "),
        ({"cleaned_to": {-1: 5}}, "cleaned_to is -1"),
        ({"writer_transactions": {"a": WriterTransaction("a", 1.5, "q", "r")}}, "batch_id is 1.5"),  # type: ignore[arg-type]
        ({"removed": ["other-0/" + "0" * 20 + ".log"]}, "not a segment of the topic"),
        ({"files": ["other-0/" + "0" * 20 + ".log"]}, "not a segment of the topic"),
        ({"files": ["orders-1/" + "0" * 20 + ".log"]}, "not a segment of the topic"),
        ({"files": ["orders-0/" + "9" * 20 + ".log"]}, "not a segment of the topic"),
        ({"files": ["orders-0/0" + "9" * 19 + ".log"]}, "not a segment of the topic"),
    ],
)
def test_what_a_checkpoint_may_not_say_is_refused(fields: dict[str, Any], words: str) -> None:
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 3))
    if (files := fields.pop("files", None)) is not None:
        rows = state.live.rows().set_column(1, ROW_SCHEMA.field("file"), pa.array(files))
        fields["live"] = LiveSegments.of(rows)
    if (files := fields.pop("removed", None)) is not None:
        columns = [pa.array(files), pa.array([1]), pa.array([1])]
        fields["removed"] = pa.table(columns, schema=REMOVED_SCHEMA)
    name, data = state_checkpoint.encode_checkpoint(replace(state, **fields))
    store.files[log.paths.checkpoint(replace(name, version=1))] = data
    with pytest.raises(UnsupportedFormatError, match=rf"checkpoint .*parquet: .*{words}"):
        log.load()


@pytest.mark.parametrize("limit", ["MAX_ROWS", "MAX_BYTES"])
def test_a_file_that_holds_too_much_is_not_read(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = topic_log(CountingStore())
    _, data = state_checkpoint.encode_checkpoint(append(log, created(log), (0, 3)))
    state_checkpoint.decode_checkpoint(data)
    monkeypatch.setattr(parquet_tables, limit, 2)
    with pytest.raises(UnsupportedFormatError, match="are read"):
        state_checkpoint.decode_checkpoint(data)


def test_no_checkpoint_is_written_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata may be larger than what a reader of Parquet takes."""
    store = CountingStore()
    log = topic_log(store)
    state = append(log, created(log), (0, 3))
    long = {str(i): WriterTransaction(str(i), 1, "q" * 60_000, "r") for i in range(2000)}
    with pytest.raises(UnsupportedFormatError, match="not a Parquet file"):
        checkpoint_writer.write_checkpoint(log, replace(state, writer_transactions=long))
    assert log.names(log.paths.checkpoints) == []


def test_a_checkpoint_from_nowhere_stops_no_other() -> None:
    store = CountingStore()
    log = topic_log(store)
    state = appended(log, created(log), 100)
    name = CheckpointName(10**9, 1, 0)
    store.files[log.paths.checkpoint(name)] = b"x"
    checkpointer = BackgroundCheckpointer()
    checkpointer.offer(log, state)
    checkpointer.join()
    assert len(log.names(log.paths.checkpoints)) == 2
    assert log.load().checkpoint is not None
