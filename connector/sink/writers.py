"""Spark's writers over klog's write: batches in one commit, micro-batches under the query's name.

The rule, as Spark 4.2 has it: a writer is made on the driver, pickled to tasks, and for a stream
made anew in another process to commit, so that only the tasks' messages say what is committed. Who
writes is in the local properties of a task: the id of a streaming query, the same over restarts;
the number of its micro-batch; and the job group, which is the id of its run. A write inside
`foreachBatch` has them too, so a transactional id that another query has used is noticed there.

`abort` deletes nothing: Spark calls it as well where a commit landed and its answer was lost.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema

from klog.connector.log.operations import Writer
from klog.connector.sink import committing, writing
from klog.connector.sink.columns import check_columns
from klog.connector.sink.write_options import WriteOptions, write_options
from klog.connector.sink.writing import Planned, TaskWork
from klog.errors import KlogError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_COMMITS = "pyspark.sql.worker.python_streaming_sink_runner"
"""The module of the process in which Spark makes a stream's writer only to commit."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_QUERY, _BATCH, _RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    work: TaskWork


class KlogBatchWriter(DataSourceArrowWriter):
    """Appends a DataFrame, each topic of it in one commit."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Check options and columns, and plan; raises `OptionError`."""
        if overwrite:
            raise OptionError(
                'mode: klog appends, say mode("append"). To begin anew, delete the topic '
                "first (klog topics delete)"
            )
        self._options = write_options(given)
        _check_schema(schema, self._options)
        self._planned = writing.plan(self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage a task's rows."""
        context = _context()
        options, writer = self._options, None
        if options.name is not None and options.version is not None:
            query = context.getLocalProperty(_QUERY) or ""
            run = _run(context, self._planned)
            writer = Writer(options.name, options.version, query, run)
        return _stage(self._planned, writer, context, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the tasks staged."""
        committing.commit(self._options, _work(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leave what was staged to vacuum."""


class KlogStreamWriter(DataSourceStreamArrowWriter):
    """Appends micro-batches, each topic of one in one commit under the query's name."""

    def __init__(self, given: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Check options and columns, and plan where tasks are to write; raises `OptionError`."""
        if overwrite:
            raise OptionError(
                'outputMode: klog appends, say outputMode("append"). For a result that changes, '
                "write it in foreachBatch, keyed, to a topic with cleanup.policy=compact"
            )
        self._options = write_options(given, streaming=True)
        _check_schema(schema, self._options)
        self._planned = None
        if _COMMITS not in sys.modules:
            self._planned = writing.plan(self._options, streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage a task's rows."""
        assert self._planned is not None
        context = _context()
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if not query or not batch:
            raise KlogError(
                f"Spark does not say whose rows these are ({_QUERY} is {query!r}, {_BATCH} is "
                f"{batch!r}): without it a stream cannot be written exactly once"
            )
        run = _run(context, self._planned)
        writer = Writer(self._options.name or query, int(batch), query, run)
        return _stage(self._planned, writer, context, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a micro-batch."""
        work = _work(messages)
        for one in work:
            if one.writer is None or one.writer.batch_id != batchId:
                raise KlogError(
                    f"batch {batchId} was to be committed, and task {one.task} wrote for "
                    f"{one.writer}: start the query again"
                )
        committing.commit(self._options, work)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Leave what was staged to vacuum."""


def _stage(
    planned: Planned,
    writer: Writer | None,
    context: TaskContext,
    iterator: Iterator[pa.RecordBatch],
) -> Written:
    task, attempt = context.partitionId(), context.taskAttemptId()
    return Written(writing.stage(planned, writer, task, attempt, iterator))


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise KlogError("this is no task of Spark's: klog.open(root).append writes without Spark")
    return context


def _run(context: TaskContext, planned: Planned) -> str:
    """Give the id of the query's run; of another job group, which a user may set, the write's."""
    found = context.getLocalProperty(_RUN) or ""
    if context.getLocalProperty(_QUERY) and _UUID.fullmatch(found):
        return found
    return planned.write_id


def _work(messages: list[WriterCommitMessage | None]) -> list[TaskWork]:
    work = [message.work for message in messages if isinstance(message, Written)]
    if len(work) != len(messages):
        raise KlogError(
            f"{len(messages) - len(work)} of {len(messages)} tasks did not say what they wrote: "
            "their rows would be missing. Write it again"
        )
    return work


def _check_schema(schema: StructType, options: WriteOptions) -> None:
    """Raise `OptionError` for columns that a write does not take, before a task is begun."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    check_columns(arrow)
    if options.topic is None and "topic" not in arrow.names:
        raise OptionError(
            "topic: name the topic by this option, or give each row its own in a column topic"
        )
