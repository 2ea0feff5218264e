"""Append rows to a topic without Spark: a write with one task.

The rule: the plan, the task's writer and the commit are those of Spark's sink. A writer with a
transactional id writes each of its versions once: the version is looked up in the state before
anything is staged, and again in each state that the commit is tried on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from klog.connector.commit_log import append_commit
from klog.connector.commit_log.append_commit import Writer
from klog.connector.commit_log.commit import Actions
from klog.connector.commit_log.commit_builders import CommitBuilder
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.python_arguments import whole_argument
from klog.connector.options.write_option_table import TRANSACTION_VERSION, TRANSACTIONAL_ID
from klog.connector.sink.task_writer import InputRows, stage_task
from klog.connector.sink.write_plan import plan_append
from klog.errors import OptionError

_NO_QUERY = ""
"""The query id of batch writes outside of Spark."""


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of an append.

    Attributes:
        state: The state of the topic after the append. It is for klog's own code.
        version: The version of the append's commit. If the call committed nothing, the version of
            the topic's last commit.
        offsets: By partition, the first offset of the rows and the offset after the last one.
        is_new: Whether this call committed the rows. False if the topic already has this version
            of the writer, or if there were no rows.
    """

    state: TopicState = field(repr=False)
    version: int
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    is_new: bool = True


def append(
    log: CommitLog,
    state: TopicState,
    rows: InputRows,
    commit_info: CommitInfo,
    options: Mapping[str, str] | None = None,
    transactional_id: str | None = None,
    transaction_version: int | None = None,
) -> AppendResult:
    """Write rows to a topic and commit them; a column `topic` is ignored.

    Args:
        log: The topic's commit log.
        state: A state of the topic.
        rows: A table, a record batch, or record batches.
        commit_info: The write, with an id that no other write has.
        options: Options of a write (`SEGMENT_OPTIONS` of the option table).
        transactional_id: The writer's name. With it, a version at or below the last one committed
            writes nothing.
        transaction_version: The number of the writer's batch.

    Raises:
        OptionError: An option, a column, the id or the version is wrong; nothing was staged.
        KlogError: A row cannot be written; the message names it.
        CommitConflictError, ProducerFencedError, CommitStateUnknownError: As `CommitLog.commit`.
    """
    writer = _writer(commit_info.write_id, transactional_id, transaction_version)
    plan = plan_append(log.paths, state, options or {}, commit_info.write_id)
    if writer is not None and append_commit.is_committed(state, writer):
        return AppendResult(state, state.version, is_new=False)
    task = plan.task_attempt(writer, 0, 0, log.clock())
    message = stage_task(plan, writer, task, rows, log.store, log.paths.root)
    staged = message.topics.get(log.paths.topic)
    if staged is None:
        staged = plan.topics[log.paths.topic].staged([])
    if not staged.segments and writer is None:
        return AppendResult(state, state.version, is_new=False)
    state, added = _commit(log, state, append_commit.append(staged, writer), commit_info)
    if added is None:
        return AppendResult(state, state.version, is_new=False)
    offsets: dict[int, tuple[int, int]] = {}
    for segment in added:
        start_offset, _ = offsets.get(segment["partition"], (segment["base_offset"], 0))
        offsets[segment["partition"]] = start_offset, segment["next_offset"]
    return AppendResult(state, state.writes[commit_info.write_id], offsets)


def _commit(
    log: CommitLog, state: TopicState, build: CommitBuilder, commit_info: CommitInfo
) -> tuple[TopicState, Sequence[SegmentEntry] | None]:
    """Return the state after a commit and its segments; None if the log has the batch already."""
    last_build: Actions | None = None

    def build_and_keep(base_state: TopicState) -> Actions | None:
        nonlocal last_build
        last_build = build(base_state)
        return last_build

    state = log.commit(state, build_and_keep, commit_info)
    return state, None if last_build is None else last_build.add


def _writer(write_id: str, name: str | None, version: int | None) -> Writer | None:
    if name is None and version is None:
        return None
    if name is None or version is None:
        raise OptionError(
            "transactional_id, transaction_version: must be set together, or not at all: a write "
            "that is repeated is recognised by its version"
        )
    TRANSACTIONAL_ID.parser.value("transactional_id", name)
    version = whole_argument("transaction_version", version)
    TRANSACTION_VERSION.parser.value("transaction_version", str(version))
    return Writer(name, version, _NO_QUERY, write_id)
