"""Tasks that the processes of these tests run on a topic; a process gets its task by name."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - a user without rights may not read Python's library

from klog.connector.commit_log import (
    commit_builders,
    topic_restore,
    topic_vacuum,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.topic_state import TopicState
from tests.connector.commit_log import memory_logs
from tests.faults import signed_topic
from tests.faults.signed_topic import new, writer

NOTHING = TopicState()
"""Created here, so that forked processes do not wait for Arrow's first table."""

NOBODY = 65534
RETENTION_MS = 0
"""The retention of these logs: everything that may expire does."""


def make_topic(log: CommitLog) -> None:
    """Create the topic."""
    signed_topic.create(log)


def append_named(log: CommitLog) -> None:
    """Write batch 1 of the query, as the run that wrote batch 0 does."""
    signed_topic.append(log, log.load(), {0: ["x0", "x1"], 1: ["y0"]}, writer(1))


def append_far_ahead(log: CommitLog) -> None:
    """Write batch 7 of the query."""
    signed_topic.append(log, log.load(), {0: ["z0"]}, writer(7))


def append_unnamed(log: CommitLog) -> None:
    """Write a batch without a name."""
    signed_topic.append(log, log.load(), {0: ["x0", "x1"], 1: ["y0"]})


def merge(log: CommitLog) -> None:
    """Replace two segments by one."""
    state = log.load()
    log.commit(state, signed_topic.merge_first_two(log, state, 0), new("merge"))


def checkpoint_and_expire(log: CommitLog) -> None:
    """Write a checkpoint, and delete the commits up to it."""
    memory_logs.checkpoint_and_expire(log, RETENTION_MS)


def restore(log: CommitLog) -> None:
    """Restore version 2, which has two segments that a merge has replaced since."""
    topic_restore.restore_log(log, log.load(), 2)


def vacuum(log: CommitLog) -> None:
    """Delete files that are no longer needed."""
    topic_vacuum.vacuum(log, new("vacuum"), RETENTION_MS)


def delete_first(log: CommitLog) -> None:
    """Delete a record."""
    log.commit(
        log.load(),
        commit_builders.delete_records(signed_topic.TOPIC_ID, {0: 1}),
        new("delete-records"),
    )


def prepare(log: CommitLog) -> None:
    """Create a topic with live and removed segments, an orphan file and a named batch."""
    state = signed_topic.append(log, signed_topic.create(log), {0: ["a0", "a1"], 1: ["b0"]})
    signed_topic.stage(log, state, {0: ["never committed"]})
    state = signed_topic.append(log, state, {0: ["a2"]})
    state = signed_topic.append(log, state, {0: ["w0"]}, writer(0))
    state = log.commit(state, signed_topic.merge_first_two(log, state, 0), new("merge"))
    signed_topic.append(log, state, {1: ["b1"]})


def append_as_nobody(log: CommitLog) -> None:
    """Write as a user who has permission to read."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    append_named(log)


def load_as_nobody(log: CommitLog) -> str:
    """Read as a user who has no permission."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    return str(log.load().version)


def append_many(log: CommitLog, appends: int) -> str:
    """Append once the file `go` exists, each time to the state of the last append.

    Return the process id and the most waits of a commit: the number of tries that it lost.
    """
    waits: list[int] = []

    def wait(tries: int) -> None:
        waits.append(tries)
        log.wait(tries)

    who, counting = os.getpid(), replace(log, wait=wait)
    state = log.load()
    while not (Path(log.paths.root) / "go").exists():
        time.sleep(0.001)
    for number in range(appends):
        state = signed_topic.append(counting, state, {number % 2: [f"{who}-{number}"]})
    return f"{who} {max(waits, default=0)}"


append_20 = partial(append_many, appends=20)
append_4 = partial(append_many, appends=4)
