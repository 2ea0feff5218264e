"""What a topic's commit log shows of itself: lost commits, and what is there without them.

The rule: a lost commit may keep the log from being loaded, so it is looked for first; and a log
that cannot be loaded hides nothing else of what is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from klog.connector.log.forked_commits import find_forked_commits
from klog.connector.log.lost_commits import LostCommits, find_lost_commits
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.connector.log.traces import find_traces
from klog.errors import ForkedCommitError, KlogError, LostCommitError, OptionError
from klog.jobs.verifying.findings import Finding
from klog.logformat.metadata import is_topic_id


@dataclass(frozen=True, slots=True)
class VerifiedLog:
    """What was found in a topic's log, and its state; None if it cannot be loaded."""

    findings: tuple[Finding, ...]
    state: State | None


def verify_log(log: TopicLog) -> VerifiedLog:
    """Look for lost commits, load the log, and look for what lost commits leave there."""
    findings: list[Finding] = []
    errors: list[KlogError] = []
    state: State | None = None
    try:
        findings += _lost(log)
        state = log.load()
        findings += _above(log)
        findings += _bad_topic_id(log, state)
    except OptionError:
        raise
    except KlogError as exc:
        is_told = isinstance(exc, LostCommitError) and not isinstance(exc, ForkedCommitError)
        if not (findings and is_told):
            errors.append(exc)
    try:
        findings += _forked(log, state or log.newest_checkpoint())
    except KlogError as exc:
        errors.append(exc)  # The load, too, begins with a checkpoint: the first error says it.
    findings += [unreadable_log(log.paths.topic, exc) for exc in errors[:1]]
    return VerifiedLog(tuple(findings), state)


def unreadable_log(topic: str, exc: KlogError) -> Finding:
    """Return the finding that a topic's log cannot be read."""
    return Finding(topic, None, None, "log", f"its log cannot be read: {exc}")


def _lost(log: TopicLog) -> Iterator[Finding]:
    """Look for commits that were lost, those too that no load needs."""
    for one in find_lost_commits(log):
        yield Finding(
            log.paths.topic,
            None,
            log.paths.commit(one.first),
            "lost",
            f"{_commits(one)} lost, and {one.evidence.source} shows that version "
            f"{one.evidence.version} was made",
        )


def _commits(lost: LostCommits) -> str:
    return f"commit {lost} is" if lost.first == lost.last else f"commits {lost} are"


def _above(log: TopicLog) -> Iterator[Finding]:
    """Look for files that are of a later version than the last commit."""
    for file, version in find_traces(log).items():
        yield Finding(
            log.paths.topic,
            None,
            file,
            "above",
            f"it shows that version {version} was made, which the log does not reach: its last "
            "commits are lost, or a loss of power undid one that nobody was told of",
        )


def _bad_topic_id(log: TopicLog, state: State) -> Iterator[Finding]:
    """Look whether the topic's id is one of Kafka's; a deleted topic has none."""
    if state.topic_id and not is_topic_id(state.topic_id):
        said = f"its topic id is {state.topic_id[:100]!r}, which is not 22 characters of base64"
        yield Finding(log.paths.topic, None, None, "log", said)


def _forked(log: TopicLog, state: State) -> Iterator[Finding]:
    """Look for commits in the place of lost ones that a checkpoint stands for."""
    for one in find_forked_commits(log, state):
        if isinstance(one, KlogError):
            yield Finding(log.paths.topic, None, None, "log", f"no load needs this commit: {one}")
        else:
            yield Finding(log.paths.topic, None, one.path, "fork", str(one))
