"""What the processes of these tests do to a topic; a process takes its task by name."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from klog.connector.log import cleaning, garbage, operations
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from tests.faults import topic
from tests.faults.topic import new, writer

NOTHING = State()
"""Made here, so that no forked process has to wait for Arrow's first table."""

NOBODY = 65534
RETENTION_MS = 0
"""Of these logs: all that may go, goes."""


def make_topic(log: TopicLog) -> None:
    """Create it."""
    topic.create(log)


def append_named(log: TopicLog) -> None:
    """Write batch 1 of the query, as the run that wrote batch 0 does."""
    topic.append(log, log.load(), {0: ["x0", "x1"], 1: ["y0"]}, writer(1))


def append_far_ahead(log: TopicLog) -> None:
    """Write batch 7 of the query."""
    topic.append(log, log.load(), {0: ["z0"]}, writer(7))


def append_unnamed(log: TopicLog) -> None:
    """Write a batch that nobody names."""
    topic.append(log, log.load(), {0: ["x0", "x1"], 1: ["y0"]})


def merge(log: TopicLog) -> None:
    """Put one segment in place of two."""
    state = log.load()
    log.commit(state, topic.merge_first_two(log, state, 0), new("merge"))


def checkpoint_and_clean(log: TopicLog) -> None:
    """Checkpoint, and delete the commits behind it."""
    cleaning.write_checkpoint(log, log.load())
    cleaning.clean_log(log, RETENTION_MS)


def vacuum(log: TopicLog) -> None:
    """Delete what is no more needed."""
    garbage.vacuum(log, new("vacuum"), RETENTION_MS)


def delete_first(log: TopicLog) -> None:
    """Delete a record."""
    log.commit(log.load(), operations.delete_records(topic.TOPIC_ID, {0: 1}), new("delete-records"))


def prepare(log: TopicLog) -> None:
    """Make a topic with live segments, removed ones, an orphan and a batch by name."""
    state = topic.append(log, topic.create(log), {0: ["a0", "a1"], 1: ["b0"]})
    topic.stage(log, state, {0: ["never committed"]})
    state = topic.append(log, state, {0: ["a2"]})
    state = topic.append(log, state, {0: ["w0"]}, writer(0))
    state = log.commit(state, topic.merge_first_two(log, state, 0), new("merge"))
    topic.append(log, state, {1: ["b1"]})


def append_as_nobody(log: TopicLog) -> None:
    """Write as a user who may read."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    append_named(log)


def load_as_nobody(log: TopicLog) -> str:
    """Read as a user who may not."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    return str(log.load().version)


def append_many(log: TopicLog, appends: int) -> str:
    """Append as soon as `go` is there, each time on the state of the last; gives who it was.

    The waits of a commit are counted: they are the tries that another won.
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
        state = topic.append(counting, state, {number % 2: [f"{who}-{number}"]})
    return f"{who} {max(waits, default=0)}"


append_20 = partial(append_many, appends=20)
append_4 = partial(append_many, appends=4)
