"""Check a topic's commit log: lost and forked commits, checkpoints, files above its end, its id.

The rule: a lost commit may keep the log from being loaded, so lost commits are looked for first. A
log that cannot be loaded does not hide what else is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from klog.connector.commit_log.checkpoint_store import (
    complete_checkpoints,
    oldest_complete_checkpoint,
    read_last_expiration,
)
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.forked_commits import find_forked_commits
from klog.connector.commit_log.lost_commit_traces import find_lost_commit_traces
from klog.connector.commit_log.lost_commits import LostCommits, find_lost_commits
from klog.connector.commit_log.topic_state import TopicState
from klog.errors import ForkedCommitError, KlogError, LostCommitError, OptionError
from klog.jobs.shared.job_failures import discarding_step
from klog.jobs.verifying.findings import Finding
from klog.logformat.broker_files.metadata_files import is_topic_id


@dataclass(frozen=True, slots=True)
class VerifiedLog:
    """What was found in a topic's commit log, and its state; None if it cannot be loaded."""

    findings: tuple[Finding, ...]
    state: TopicState | None


def verify_log(log: CommitLog) -> VerifiedLog:
    """Look for lost commits, load the log, and look for what lost commits left.

    Args:
        log: The topic's commit log.

    Raises:
        OptionError: The topic's name or its root is wrong.
    """
    findings: list[Finding] = []
    errors: list[KlogError] = []
    state: TopicState | None = None
    try:
        findings += _lost_commits(log)
        state = log.load()
        findings += _incomplete_checkpoint(log, state)
        findings += _files_above(log, state.version)
        findings += _bad_topic_id(log, state)
    except OptionError:
        raise
    except KlogError as exc:
        is_lost = isinstance(exc, LostCommitError) and not isinstance(exc, ForkedCommitError)
        if not (findings and is_lost):
            errors.append(exc)
    try:
        findings += _forked_commits(log, state or log.newest_checkpoint())
    except KlogError as exc:
        errors.append(exc)  # A load begins with a checkpoint too: the first error is enough.
    findings += [unreadable_log(log.paths.topic, exc) for exc in errors[:1]]
    return VerifiedLog(tuple(findings), state)


def unreadable_log(topic: str, exc: KlogError) -> Finding:
    """Return the finding that a topic's commit log cannot be read.

    Args:
        topic: The topic.
        exc: The error that says why.
    """
    return Finding(topic, None, None, "log", f"its log cannot be read: {exc}")


def _lost_commits(log: CommitLog) -> Iterator[Finding]:
    """Find lost commits, even those that no load needs."""
    for lost in find_lost_commits(log):
        yield Finding(
            log.paths.topic,
            None,
            log.paths.commit(lost.first_version),
            "lost",
            f"{_subject(lost)} lost, and {lost.evidence.source} shows that version "
            f"{lost.evidence.version} was made",
        )


def _subject(lost: LostCommits) -> str:
    return f"commit {lost} is" if lost.first_version == lost.last_version else f"commits {lost} are"


def _files_above(log: CommitLog, last_version: int) -> Iterator[Finding]:
    """Find files of a later version than the last commit."""
    for file, version in find_lost_commit_traces(log).items():
        yield Finding(
            log.paths.topic,
            None,
            file,
            "above",
            f"it shows that version {version} was made, which the log does not reach: its last "
            "commits are lost, or a power loss undid a commit that was not acknowledged",
            other_step=discarding_step(log.paths.topic, last_version),
        )


def _incomplete_checkpoint(log: CommitLog, state: TopicState) -> Iterator[Finding]:
    """Check the checkpoint that the last expired version rests on: it is kept until that rises.

    The load began at a newer one, so readers of the present miss nothing.
    """
    expiration = read_last_expiration(log)
    name = expiration.checkpoint
    if name is None or any(
        other == name for other, _ in complete_checkpoints(log, name.version, name.version)
    ):
        return
    oldest = oldest_complete_checkpoint(log, expiration.version)
    if read_last_expiration(log) != expiration:
        return  # An expiration went on to another checkpoint, and deleted this one.
    first = state.version if oldest is None else min(oldest.version, state.version)
    yield Finding(
        log.paths.topic,
        None,
        log.paths.checkpoint(name),
        "checkpoint",
        "this checkpoint, or a part of it, is missing or damaged, and the commits up to version "
        f"{expiration.version} have expired: the oldest version that can be read is {first}",
    )


def _bad_topic_id(log: CommitLog, state: TopicState) -> Iterator[Finding]:
    """Check that the topic's id is one of Kafka's; a deleted topic has none."""
    if state.topic_id and not is_topic_id(state.topic_id):
        reason = f"its topic id is {state.topic_id[:100]!r}, which is not 22 characters of base64"
        yield Finding(log.paths.topic, None, None, "log", reason)


def _forked_commits(log: CommitLog, state: TopicState) -> Iterator[Finding]:
    """Find commits in the place of lost ones that a checkpoint stands for."""
    for fork in find_forked_commits(log, state):
        if isinstance(fork, KlogError):
            yield Finding(log.paths.topic, None, None, "log", f"no load needs this commit: {fork}")
        else:
            yield Finding(log.paths.topic, None, fork.path, "fork", str(fork))
