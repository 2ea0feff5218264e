"""One task's part of a write: from its rows to segments on the store and a message to the driver.

The rule: a row goes to the topic that the write names, or else to the one that its column `topic`
names. Rows wait within `buffer.memory`, all topics of the task together (`topic_writer.py`). A row
that has no topic, or whose topic cannot be written, fails the write or becomes a dead letter. A
batch that the named topic has already is not staged again.

The message to the driver is all that the commit knows: Spark commits in another process.
docs/write-plan.md specifies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from klog.connector.commit_log.append_commit import StagedSegments, Writer
from klog.connector.sink.batch_spool import BatchSpool, OpenFile
from klog.connector.sink.dead_letters import DeadLetters
from klog.connector.sink.row_checks import RejectedRowsError, Rejecter
from klog.connector.sink.topic_writer import TopicWriter
from klog.connector.sink.write_columns import check_columns, decode_dictionary, with_known_names
from klog.connector.sink.write_plan import TaskAttempt, TopicPlan, WritePlan, load_topic_plan
from klog.connector.store.store_for_url import writable_store_for
from klog.connector.store.writable_store import WritableStore
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, OptionError
from klog.logformat.array_types import Longs
from klog.logformat.batches.arrow_columns import Column


class ArrowStream(Protocol):
    """What speaks Arrow's C stream interface: frames of pandas and polars, results of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule with the stream."""


InputRows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch] | ArrowStream
LoadTopicPlan: TypeAlias = Callable[[WritePlan, str], TopicPlan]
"""Plans the write to a topic. Raises `OptionError` if the topic cannot be written."""

_ROW_TYPES = (
    "give a pyarrow Table, a RecordBatch, RecordBatches one after another, or an object with "
    "Arrow's C stream interface, such as a frame of polars or of pandas 2.2"
)


@dataclass(frozen=True, slots=True)
class TaskCommitMessage:
    """What a task has done, for the commit.

    Attributes:
        task: The number of the task in its write, from 0.
        write_id: The id of the write.
        writer: Who writes; None for a write without a transactional id.
        topics: The segments that were staged, by topic.
        is_committed: Whether the named topic had this batch already, and nothing was staged.
    """

    task: int
    write_id: str
    writer: Writer | None
    topics: Mapping[str, StagedSegments]
    is_committed: bool = False


def write_task(
    plan: WritePlan,
    writer: Writer | None,
    index: int,
    attempt: int,
    rows: InputRows,
) -> TaskCommitMessage:
    """Stage the rows of a task of several, in the process that Spark has chosen for it.

    Args:
        plan: The plan of the write.
        writer: Who writes; None for a write without a transactional id.
        index: The number of the task in its write, from 0.
        attempt: A number that no other attempt of any task of the write has.
        rows: The rows of the task.

    Raises:
        OptionError: A column is wrong.
        KlogError: A row cannot be written, and there is no topic for dead letters; the message
            names the row. The files that the task has put by then are orphans.
    """
    store, root = writable_store_for(plan.options.path, plan.options.storage)
    task = plan.task_attempt(writer, index, attempt, now_ms(), f"task {index}")
    return stage_task(plan, writer, task, rows, store, root)


def stage_task(
    plan: WritePlan,
    writer: Writer | None,
    task: TaskAttempt,
    rows: InputRows,
    store: WritableStore,
    root: str,
    *,
    load_plan: LoadTopicPlan = load_topic_plan,
    open_file: OpenFile = TemporaryFile,
) -> TaskCommitMessage:
    """Stage the rows of a task.

    Args:
        plan: The plan of the write.
        writer: Who writes; None for a write without a transactional id.
        task: The attempt.
        rows: The rows of the task.
        store: The store of the root.
        root: The path of the root, as the store spells it.
        load_plan: Plans the write to a topic that the driver has not planned.
        open_file: Opens a temporary file for batches that `buffer.memory` has no room for.

    Raises:
        OptionError: As `write_task`.
        KlogError: As `write_task`.
    """
    if plan.is_committed(writer):
        return TaskCommitMessage(task.index, plan.write_id, writer, {}, is_committed=True)
    dead_letters = None
    if plan.options.dead_letter_topic is not None:
        label = plan.write_id if writer is None else f"{writer.name}/{writer.batch_id}"
        dead_letters = DeadLetters(plan.options.dead_letter_topic, label, task.index)
    spool = BatchSpool(open_file)
    task_writer = _TaskWriter(plan, task, store, root, spool, dead_letters, load_plan)
    try:
        row_count = 0
        for batch in map(with_known_names, _batches(rows)):
            task_writer.add(batch, np.arange(row_count, row_count + len(batch)))
            row_count += len(batch)
        topics = task_writer.finish()
    finally:
        spool.close()
    return TaskCommitMessage(task.index, plan.write_id, writer, topics)


def _batches(rows: InputRows) -> Iterable[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return [rows]
    if hasattr(rows, "__arrow_c_stream__") and not isinstance(rows, pa.Table):
        rows = pa.RecordBatchReader.from_stream(rows)
    # A table or a reader without rows has no batch whose columns would be checked.
    schema = getattr(rows, "schema", None)
    if isinstance(schema, pa.Schema):
        check_columns(schema)
    if isinstance(rows, pa.Table):
        batches: list[pa.RecordBatch] = rows.to_batches()
        return batches
    if not isinstance(rows, Iterable):
        raise OptionError(f"rows are {type(rows).__name__}; {_ROW_TYPES}")
    return map(_batch, rows)


def _batch(rows: object) -> pa.RecordBatch:
    if not isinstance(rows, pa.RecordBatch):
        raise OptionError(f"rows come as {type(rows).__name__}; {_ROW_TYPES}")
    return rows


class _TaskWriter:
    """The rows of a task, on their way to the writers of their topics."""

    def __init__(
        self,
        plan: WritePlan,
        task: TaskAttempt,
        store: WritableStore,
        root: str,
        spool: BatchSpool,
        dead_letters: DeadLetters | None,
        load_plan: LoadTopicPlan,
    ) -> None:
        self._plan, self._task, self._spool = plan, task, spool
        self._store, self._root = store, root
        self._dead_letters, self._load_plan = dead_letters, load_plan
        self._writers: dict[str, TopicWriter] = {}
        self._refusals: dict[str, str] = {}

    def add(self, batch: pa.RecordBatch, numbers: Longs) -> None:
        """Take rows, with their numbers among all rows of the task."""
        if self._plan.options.topic is not None:
            self._writer(self._plan.options.topic).add(batch, numbers)
        else:
            check_columns(batch.schema)
            for topic, rows, row_numbers in _split_by_topic(batch, numbers):
                self._add(topic, rows, row_numbers)
        self._free_memory()

    def finish(self) -> dict[str, StagedSegments]:
        """Put the rest of the segments; return the segments of each topic that got rows."""
        topics = {topic: self._writers[topic].finish() for topic in sorted(self._writers)}
        return {
            topic: staged
            for topic, staged in topics.items()
            if staged.segments or topic == self._plan.options.topic
        }

    def _add(self, topic: str | None, rows: pa.RecordBatch, numbers: Longs) -> None:
        if topic is None:
            reason = "its topic is null; set it, or name one topic for all rows"
        else:
            reason = self._refusals.get(topic, "") or self._refusal(topic)
            if not reason:
                self._writer(topic).add(rows, numbers)
                return
        if self._dead_letters is None:
            place = f"row {numbers[0]}{self._task.name and f' of {self._task.name}'}"
            raise KlogError(f"{place}: {reason}")
        columns = {name: rows.column(name) for name in rows.schema.names}
        error = RejectedRowsError(np.ones(len(rows), bool), lambda row: reason)
        self._add_dead_letters(topic, columns, error, numbers)

    def _refusal(self, topic: str) -> str:
        """Return why a topic cannot be written, and remember it; empty if it can be written."""
        try:
            self._writer(topic)
        except OptionError as exc:
            self._refusals[topic] = str(exc)
        return self._refusals.get(topic, "")

    def _writer(self, topic: str) -> TopicWriter:
        writer = self._writers.get(topic)
        if writer is None:
            plan = self._load_plan(self._plan, topic)
            writer = TopicWriter(
                plan, self._task, self._root, self._store, self._spool, self._rejecter(topic)
            )
            self._writers[topic] = writer
        return writer

    def _rejecter(self, topic: str) -> Rejecter | None:
        """Return what takes the rejected rows of a topic; None if they fail the write."""
        if self._dead_letters is None or topic == self._dead_letters.topic:
            return None

        def reject(columns: Mapping[str, Column], error: RejectedRowsError, numbers: Longs) -> None:
            self._add_dead_letters(topic, columns, error, numbers)

        return reject

    def _add_dead_letters(
        self,
        topic: str | None,
        columns: Mapping[str, Column],
        error: RejectedRowsError,
        numbers: Longs,
    ) -> None:
        assert self._dead_letters is not None
        rows = self._dead_letters.rows(topic, columns, error, numbers)
        self._writer(self._dead_letters.topic).add(rows, numbers[error.is_rejected])

    def _free_memory(self) -> None:
        """Keep rows and batches within `buffer.memory`, as far as one chunk of rows allows."""
        budget = self._plan.options.buffer_bytes
        if self._pending_bytes() + self._spool.memory_bytes <= budget:
            return
        if self._pending_bytes() > budget // 2:
            for writer in self._writers.values():
                writer.copy_pending()
            if self._pending_bytes() > budget // 2:
                for writer in self._writers.values():
                    writer.encode_pending()
        if self._pending_bytes() + self._spool.memory_bytes > budget:
            self._spool.spill()

    def _pending_bytes(self) -> int:
        return sum(writer.pending_bytes for writer in self._writers.values())


def _split_by_topic(
    batch: pa.RecordBatch, numbers: Longs
) -> Iterator[tuple[str | None, pa.RecordBatch, Longs]]:
    """Yield the rows of each topic, in their order; None stands for rows whose topic is null."""
    if "topic" not in batch.schema.names:
        raise OptionError("there is no column topic; add it, or name one topic for all rows")
    if not len(batch):
        return
    column = decode_dictionary(batch.column("topic"))
    if column.null_count == len(batch):
        yield None, batch, numbers
        return
    encoded = column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy()
    topics = encoded.dictionary.to_pylist()
    for code in np.unique(codes).tolist():
        topic = topics[code] if code >= 0 else None
        if len(topics) == 1 and not column.null_count:
            yield topic, batch, numbers
            return
        row_indices = np.flatnonzero(codes == code)
        yield topic, batch.take(pa.array(row_indices)), numbers[row_indices]
