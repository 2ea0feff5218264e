"""Append the rows of several tasks to a topic in one commit, wherever the tasks run.

The rule: plan, staging and commit are those of Spark's sink. The plan and what a task returns
pickle. Rows are in the order of the tasks; each attempt of a task writes files of its own, and the
commit names those of one attempt.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from klog.connector.commit_log import append_commit
from klog.connector.commit_log.append_commit import StagedSegments, Writer
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.segment_entries import SegmentEntry
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.options.storage_options import StorageOptions
from klog.connector.sink.task_writer import InputRows, write_task
from klog.connector.sink.write_plan import WritePlan, plan_append

_ATTEMPT_BITS = 62
_NO_QUERY = ""
"""The query id of batch writes outside of Spark."""


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """What the tasks of an append have in common.

    Attributes:
        plan: The plan of the write.
        writer: The writer and the number of its batch.
    """

    plan: WritePlan
    writer: Writer


def plan_append_tasks(
    log: CommitLog,
    state: TopicState,
    storage: StorageOptions,
    options: Mapping[str, str],
    transaction: tuple[str, int],
    commit_info: CommitInfo,
) -> AppendPlan:
    """Plan an append.

    Args:
        log: The topic's commit log.
        state: A state of the topic.
        storage: The options of the root's store.
        options: Options of a write (`SEGMENT_OPTIONS` of the option table).
        transaction: The transactional id and the version.
        commit_info: The write, with an id that no other write has.

    Raises:
        OptionError: The topic does not exist, or an option is wrong.
    """
    plan = plan_append(log.paths, state, options, commit_info.write_id)
    plan = replace(plan, options=replace(plan.options, storage=storage))
    name, version = transaction
    return AppendPlan(plan, Writer(name, version, _NO_QUERY, commit_info.write_id))


def stage_rows(plan: AppendPlan, index: int, rows: InputRows) -> Sequence[SegmentEntry]:
    """Stage the rows of one task, in the process that runs it.

    Args:
        plan: The plan.
        index: The number of the task, from 0.
        rows: The rows of the task.

    Returns:
        The segments that it has put.

    Raises:
        OptionError: A column is wrong.
        KlogError: A row cannot be written; the message names it.
    """
    attempt = secrets.randbits(_ATTEMPT_BITS)
    message = write_task(plan.plan, plan.writer, index, attempt, rows)
    staged = message.topics.get(plan.plan.options.topic or "")
    return () if staged is None else staged.segments


def commit_rows(
    log: CommitLog,
    state: TopicState,
    plan: AppendPlan,
    segments: Sequence[SegmentEntry],
    commit_info: CommitInfo,
) -> tuple[TopicState, bool]:
    """Commit what the tasks have staged, unless the log has the batch already.

    Args:
        log: The topic's commit log.
        state: A state of the topic.
        plan: The plan.
        segments: The segments of the tasks, in their order.
        commit_info: The write.

    Returns:
        The state after it, and whether this call has committed.

    Raises:
        CommitConflictError, ProducerFencedError, CommitStateUnknownError: As `CommitLog.commit`.
    """
    (topic_plan,) = plan.plan.topics.values()
    staged: StagedSegments = topic_plan.staged(segments)
    state = log.commit(state, append_commit.append(staged, plan.writer), commit_info)
    return state, commit_info.write_id in state.writes
