"""Spark's writer interfaces over klog's write: a batch, or a stream of micro-batches.

The rule, as Spark 4.2 does it: a writer is made on the driver and pickled to tasks. For a stream it
is made again, in another process, to commit; so only the messages of tasks say what to commit. Who
writes is in the local properties of a task: the id of the streaming query, which restarts keep; the
number of the micro-batch; and the job group, which is the id of the query's run. A write inside
`foreachBatch` has these properties too, so the commit notices a transactional id that another query
has used.

`abort` deletes nothing: Spark also calls it after a commit that landed but whose answer was lost.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema

from klog.connector.commit_log.append_commit import Writer
from klog.connector.missing_shim import missing_shim
from klog.connector.options.write_options import WriteOptions, parse_write_options
from klog.connector.sink import task_writer, write_commit, write_plan
from klog.connector.sink.jvm_plan_option import without_plan_for
from klog.connector.sink.task_writer import TaskCommitMessage
from klog.connector.sink.write_columns import check_columns, known_name
from klog.connector.sink.write_contract import (
    CommitMessageDict,
    WritePlanDict,
    message_from_dict,
    message_to_dict,
    plan_from_dict,
    plan_to_dict,
)
from klog.connector.sink.write_plan import WritePlan, with_dead_letter_plan
from klog.connector.spark_errors import sentence_first
from klog.errors import KlogError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_COMMIT_RUNNER = "pyspark.sql.worker.python_streaming_sink_runner"
"""The module of the process in which Spark makes a stream's writer only to commit."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_QUERY, _BATCH, _RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"


@dataclass(frozen=True)
class KlogCommitMessage(WriterCommitMessage):
    """What a task returns to the driver (docs/write-plan.md)."""

    fields: CommitMessageDict


class _PlannedWriter:
    """The options and the plan of a writer.

    They are pickled as plain values, because the JVM engine reads the plan from the pickle.
    """

    _is_streaming = False
    _plan: WritePlanDict | None = None

    def _set_options(self, options: Mapping[str, str]) -> None:
        self._given = dict(options)
        own, self._is_for_jvm = without_plan_for(self._given)
        self._options = parse_write_options(own, is_streaming=self._is_streaming)

    def __getstate__(self) -> dict[str, object]:
        """Return the state as plain values."""
        return {"options": self._given, "plan": self._plan}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Parse the options again."""
        self._set_options(state["options"])
        self._plan = state["plan"]


class KlogBatchWriter(_PlannedWriter, DataSourceArrowWriter):
    """Appends a DataFrame, each of its topics in one commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Check the options and the columns, and plan the write.

        Args:
            options: The options as Spark gives them.
            schema: The columns of the DataFrame.
            overwrite: Whether Spark's mode is overwrite.

        Raises:
            OptionError: An option or a column is wrong, or the mode is not append.
        """
        if overwrite:
            raise OptionError(
                'mode: klog only appends; use mode("append"). To start again, delete the topic '
                "first (klog topics delete)"
            )
        self._set_options(options)
        _check_schema(schema, self._options)
        self._plan = _plan_write(self._options, is_for_jvm=self._is_for_jvm)

    @sentence_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> KlogCommitMessage:
        """See `DataSourceArrowWriter.write`."""
        assert self._plan is not None
        context = _task_context()
        plan = plan_from_dict(self._plan, self._options.storage)
        options, writer = plan.options, None
        if options.transactional_id is not None and options.transaction_version is not None:
            query_id = context.getLocalProperty(_QUERY) or ""
            writer = Writer(
                options.transactional_id,
                options.transaction_version,
                query_id,
                _run_id(context, plan),
            )
        return _write_task(plan, writer, context, iterator)

    @sentence_first()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """See `DataSourceArrowWriter.commit`."""
        write_commit.commit(self._options, _task_messages(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """See `DataSourceArrowWriter.abort`. The staged files are left to vacuum."""


class KlogStreamWriter(_PlannedWriter, DataSourceStreamArrowWriter):
    """Appends micro-batches, each topic of one in one commit under the query's name."""

    _is_streaming = True

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Check the options and the columns, and plan the write unless this is to commit.

        Args:
            options: The options as Spark gives them.
            schema: The columns of the DataFrame.
            overwrite: Whether the output mode is complete.

        Raises:
            OptionError: An option or a column is wrong, or the output mode is not append.
        """
        if overwrite:
            raise OptionError(
                'outputMode: klog only appends; use outputMode("append"). For a result that '
                "changes, write it in foreachBatch, with keys, to a topic with "
                "cleanup.policy=compact"
            )
        self._set_options(options)
        _check_schema(schema, self._options)
        if _COMMIT_RUNNER not in sys.modules:
            self._plan = _plan_write(self._options, is_for_jvm=self._is_for_jvm, is_streaming=True)

    @sentence_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> KlogCommitMessage:
        """See `DataSourceStreamArrowWriter.write`."""
        assert self._plan is not None
        context = _task_context()
        plan = plan_from_dict(self._plan, self._options.storage)
        query_id, batch_id = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if not query_id or not batch_id:
            raise KlogError(
                f"Spark does not say whose rows these are ({_QUERY} is {query_id!r}, {_BATCH} is "
                f"{batch_id!r}): without it a stream cannot be written exactly once. "
                "Write it from foreachBatch, with transactionalId and transactionVersion"
            )
        name = plan.options.transactional_id or query_id
        writer = Writer(name, int(batch_id), query_id, _run_id(context, plan))
        return _write_task(plan, writer, context, iterator)

    @sentence_first()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """See `DataSourceStreamArrowWriter.commit`."""
        task_messages = _task_messages(messages)
        for message in task_messages:
            if message.writer is None or message.writer.batch_id != batchId:
                raise KlogError(
                    f"batch {batchId} was to be committed, and task {message.task} wrote for "
                    f"{message.writer}: start the query again"
                )
        write_commit.commit(self._options, task_messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """See `DataSourceStreamArrowWriter.abort`. The staged files are left to vacuum."""


def _plan_write(
    options: WriteOptions, *, is_for_jvm: bool, is_streaming: bool = False
) -> WritePlanDict:
    if options.engine == "jvm" and not is_for_jvm:
        raise missing_shim()
    plan = write_plan.load_write_plan(options, is_streaming=is_streaming)
    return plan_to_dict(with_dead_letter_plan(plan) if is_for_jvm else plan)


def _write_task(
    plan: WritePlan,
    writer: Writer | None,
    context: TaskContext,
    iterator: Iterator[pa.RecordBatch],
) -> KlogCommitMessage:
    index, attempt = context.partitionId(), context.taskAttemptId()
    message = task_writer.write_task(plan, writer, index, attempt, iterator)
    return KlogCommitMessage(message_to_dict(message))


def _task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise KlogError(
            "this is not a task of Spark: to write without Spark, use klog.open(root).append"
        )
    return context


def _run_id(context: TaskContext, plan: WritePlan) -> str:
    """Return the id of the query's run, or the write id if the user has set another job group."""
    job_group = context.getLocalProperty(_RUN) or ""
    if context.getLocalProperty(_QUERY) and _UUID.fullmatch(job_group):
        return job_group
    return plan.write_id


def _task_messages(messages: list[WriterCommitMessage | None]) -> list[TaskCommitMessage]:
    task_messages = [
        message_from_dict(message.fields)
        for message in messages
        if isinstance(message, KlogCommitMessage)
    ]
    if len(task_messages) != len(messages):
        raise KlogError(
            f"{len(messages) - len(task_messages)} of {len(messages)} tasks did not say what they "
            "wrote: their rows would be missing. Write it again"
        )
    return task_messages


def _check_schema(schema: StructType, options: WriteOptions) -> None:
    """Raise `OptionError` for columns that a write does not take, before a task starts."""
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    check_columns(arrow_schema)
    if options.topic is None and "topic" not in map(known_name, arrow_schema.names):
        raise OptionError(
            "topic: name the topic with this option, or give each row its own in a column topic"
        )
