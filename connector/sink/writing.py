"""A write of many tasks to one topic or several: planned once on the driver, staged by tasks.

The rule: all tasks write for the same state of the topic that the options name; for those that a
column names each task looks itself. A batch that the topic has already is not staged again. What
tasks tell is all that the commit knows (`committing.py`): it is made in another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from klog.connector.log.author import random_uuid
from klog.connector.log.operations import Staged, Writer
from klog.connector.log.root import KlogRoot, check_topic_name, now_ms
from klog.connector.log.topics import refuse_collision
from klog.connector.sink.dead_letters import DeadLetters
from klog.connector.sink.identity import attempt_id
from klog.connector.sink.known import KNOWN, KnownTopic, find
from klog.connector.sink.plan import WritePlan, plan_write
from klog.connector.sink.segments import Task
from klog.connector.sink.stage import stage_topics
from klog.connector.sink.write_options import WriteOptions
from klog.connector.store.schemes import writable_store_for
from klog.errors import OptionError
from klog.logformat.codecs import MAX_BATCH_BYTES


@dataclass(frozen=True, slots=True)
class Planned:
    """A write, as its tasks get it.

    `plan` is of the topic that the options name, `last_batches` how far each writer of that topic
    has come; tasks plan for the topics that a column names.
    """

    options: WriteOptions
    write_id: str
    path: str
    new_partitions: int
    plan: WritePlan | None
    last_batches: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TaskWork:
    """What one task did: what it staged by topic, and whose write it is.

    `is_done`: the topic has this batch already, and nothing was staged.
    """

    task: int
    write_id: str
    writer: Writer | None
    staged: Mapping[str, Staged]
    is_done: bool = False


def plan(options: WriteOptions, *, streaming: bool = False) -> Planned:
    """Plan a write, on the driver. Raises `OptionError` for a root or a topic that cannot be had.

    A root that is not there is made, if a missing topic may be. A stream's tasks learn how far all
    writers have come: only they know the query's id, which is its name by default.
    """
    write_id = random_uuid()
    if options.topic is None:
        return _planned(options, write_id, find(options))
    known = KNOWN.load(options, options.topic)
    found = _planned(options, write_id, known.root)
    last = {
        name: progress.batch_id
        for name, progress in known.state.progress.items()
        if name == options.name or (streaming and options.name is None)
    }
    return replace(found, plan=_plan_of(found, options.topic, known, None), last_batches=last)


def _planned(options: WriteOptions, write_id: str, root: KlogRoot) -> Planned:
    new_partitions = options.num_partitions or root.num_partitions
    return Planned(options, write_id, root.path, new_partitions, None, {})


def stage(
    planned: Planned,
    writer: Writer | None,
    task: int,
    attempt: int,
    batches: Iterable[pa.RecordBatch],
) -> TaskWork:
    """Stage a task's rows. `attempt` numbers the attempts of all tasks.

    Raises `KlogError` that names the row for one that cannot be written.
    """
    options = planned.options
    if writer is not None and writer.batch_id <= planned.last_batches.get(writer.name, -1):
        return TaskWork(task, planned.write_id, writer, {}, is_done=True)
    store, _ = writable_store_for(options.path, options.storage)
    dead_letters = None
    if options.dead_letter_topic is not None:
        whose = planned.write_id if writer is None else f"{writer.name}/{writer.batch_id}"
        dead_letters = DeadLetters(options.dead_letter_topic, whose, task)

    def plan_of(topic: str) -> WritePlan:
        check_topic_name(topic)
        if planned.plan is not None and topic == planned.plan.topic:
            name, number = _identity(planned, writer)
            return replace(planned.plan, name=name, number=number)
        known = KNOWN.load(options, topic)
        return _plan_of(planned, topic, known, writer)

    staged = stage_topics(
        plan_of,
        Task(task, attempt_id(planned.write_id, attempt), now_ms(), f"task {task}"),
        batches,
        store,
        topic=options.topic,
        dead_letters=dead_letters,
        buffer_bytes=options.buffer_bytes,
    )
    return TaskWork(task, planned.write_id, writer, staged)


def _plan_of(planned: Planned, topic: str, known: KnownTopic, writer: Writer | None) -> WritePlan:
    options = planned.options
    if not known.state.topic_id and not options.create_topic:
        raise OptionError(
            f"there is no topic {topic} in {options.path}, and createTopic=false; klog topics "
            "create makes it"
        )
    given = options.settings
    if topic == options.dead_letter_topic:
        # What is too large for its own topic has to fit here, unless this topic itself says not.
        is_set = "max.message.bytes" in known.state.config
        given = {} if is_set else {"max.message.bytes": str(MAX_BATCH_BYTES)}
    if not known.state.topic_id:
        refuse_collision(known.root, topic)
    name, number = _identity(planned, writer)
    return plan_write(topic, planned.path, known.state, given, name, number, planned.new_partitions)


def _identity(planned: Planned, writer: Writer | None) -> tuple[str, int]:
    return (planned.write_id, 0) if writer is None else (writer.name, writer.batch_id)
