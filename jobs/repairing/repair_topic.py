"""Repair one topic: plan what stands for its lost commits, and put it.

The rule: each put is right on its own, so a killed repair is run again and goes on. If another
writer put one of the files meanwhile, the repair is planned again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from klog.connector.commit_log import commit_json, format_description
from klog.connector.commit_log.commit import Commit
from klog.connector.commit_log.commit_expiration import is_durable
from klog.connector.commit_log.commit_info import random_uuid, this_engine
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_sidecar import with_sidecar_if_large
from klog.connector.commit_log.file_size_limits import read_named
from klog.connector.store.writable_store import PutResult
from klog.errors import KlogError
from klog.jobs.repairing.repair_choices import RepairChoices
from klog.jobs.repairing.repair_plan import RepairPlan
from klog.jobs.repairing.repair_planner import RepairPlanner

NO_CHOICES = RepairChoices()
MAX_PLANS = 100
"""A repair gives up if other writers have put the planned files so often."""


def repair_topic(
    log: CommitLog, choices: RepairChoices = NO_CHOICES, *, dry_run: bool = True
) -> RepairPlan:
    """Plan the repair of a topic's commit log, and put what is planned unless it is a dry run.

    Args:
        log: The commit log.
        choices: What only the user knows.
        dry_run: Only plan.

    Returns:
        The plan. Its `problem` is the error, whether it came before or after a put.
    """
    for tries in range(MAX_PLANS):
        plan = RepairPlanner(log, random_uuid, this_engine(), choices).read_plan()
        if dry_run or plan.problem or not plan.is_needed:
            return plan
        try:
            if put_plan(log, plan):
                return plan
        except (KlogError, OSError) as exc:
            return replace(plan, problem=f"{exc}. Something may have been put: run repair again")
        log.wait(tries + 1)
    return RepairPlan(
        problem=f"{log.paths.directory}: other writers changed this log meanwhile; run repair again"
    )


def put_plan(log: CommitLog, plan: RepairPlan) -> bool:
    """Put what is planned; the fence first, so no writer goes on from another state.

    Args:
        log: The commit log.
        plan: What to put.

    Returns:
        False if another writer's file was there; the repair has to be planned again.
    """
    if plan.topic_file:
        # Every klog writes the same, so a file that another process put is right too.
        log.store.put_if_absent(plan.topic_file, format_description.encode_description({}))
    if plan.fence is not None and not _put_commit(log, plan.fence):
        return False
    if plan.checkpoint is not None:
        name = plan.checkpoint
        path = log.paths.checkpoint(name)
        if not is_durable(log, path, partial(read_named, log.store, path, name)):
            return False
        path = log.paths.expiration(name.version)
        if log.store.put_if_absent(path, str(name).encode()) is not PutResult.CREATED:
            return False
    if not all(_put_commit(log, commit) for commit in plan.commits):
        return False
    log.load()
    return True


def _put_commit(log: CommitLog, commit: Commit) -> bool:
    """Put a commit and its sidecar; return False if another commit has its version."""
    commit, sidecar = with_sidecar_if_large(commit)
    data = commit_json.encode_commit(commit)
    # A commit that no reader takes is not put.
    commit_json.decode_commit(data, log.paths.topic, commit.version)
    if sidecar is not None:
        log.store.put(log.paths.sidecar(sidecar.name), [sidecar.data])
    return log.store.put_if_absent(log.paths.commit(commit.version), data) is PutResult.CREATED
