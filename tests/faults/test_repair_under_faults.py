"""Repairs whose calls fail in every way, or that run at the same time: the next run completes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.commit_info import CommitInfo
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.topic_state import TopicState
from klog.connector.embedded_append import append as sink_append
from klog.connector.store.local_store import LocalStore
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, LostCommitError
from klog.jobs import repair, verify
from klog.jobs.repairing.repair_topic import repair_topic
from tests.corpus.clients import Sent
from tests.faults.failing import FailingStore, Fault
from tests.jobs.lost_files import TOPIC, append, lose_commits, lose_description, written
from tests.jobs.written_root import WrittenRoot, table
from tests.support.sampled_cases import sampled

MAX_CALLS, APPENDS = 200, 20


def lose_a_range(root: WrittenRoot) -> None:
    """Lose two consecutive commits and `topic.json`."""
    lose_commits(root, 2, 3)
    lose_description(root)


def lose_below_a_checkpoint(root: WrittenRoot) -> None:
    """Lose commits that a complete checkpoint covers."""
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), root.state(TOPIC))
    lose_commits(root, 2, 6)


LOSSES = (lose_a_range, lose_below_a_checkpoint)


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    root = written(tmp_path / "root")
    append(root, 1, 0)
    return root


def is_same(state: TopicState, other: TopicState) -> bool:
    return state.segments.equals(other.segments) and state.log_end == other.log_end


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    sampled(product(LOSSES, Fault), 3, pytest.mark.full),
    ids=lambda case: f"{case[0].__name__}-{case[1].name}",
)
def test_each_call_failing(
    root: WrittenRoot, case: tuple[Callable[[WrittenRoot], None], Fault]
) -> None:
    lose, fault = case
    before = root.state(TOPIC)
    lose(root)
    for at in range(MAX_CALLS):
        damaged = f"{root.location}-{at}"
        shutil.copytree(root.location, damaged)
        store = FailingStore(LocalStore(root=damaged))
        paths = TopicPaths(damaged, TOPIC)
        is_described = Path(paths.description).exists()
        log = CommitLog(store, paths, now_ms, lambda tries: None, has_description=is_described)
        store.fail(fault, at)
        error = ""
        try:
            error = repair_topic(log, dry_run=False).problem
        except KlogError as exc:
            error = str(exc)
        was_reached = store.was_reached
        store.land()
        store.heal()
        again = repair_topic(log, dry_run=False)
        assert again.problem == ""
        assert is_same(replace(log, has_description=False).load(), before)
        if not was_reached:
            assert error == ""
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("lose", LOSSES)
def test_two_at_once(root: WrittenRoot, lose: Callable[[WrittenRoot], None]) -> None:
    before = root.state(TOPIC)
    lose(root)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(repair.run, None, root.location, dry_run=False) for _ in range(4)]
    for run in runs:
        assert run.result().exit_code == 0, list(run.result().lines())
    assert is_same(root.state(TOPIC), before)
    assert verify.run(None, root.location).findings == ()


def test_a_writer_that_continues_during_a_repair(root: WrittenRoot) -> None:
    """It has the state and can append after the lost commit for a while: all records are kept.

    Between the repair's fence and the commits that it puts back it gets an error, and tries again.
    """
    known = root.state(TOPIC)
    held = sum(known.log_end)
    lose_commits(root, 3)
    log = root.root.log(TOPIC)
    with ThreadPoolExecutor(1) as pool:
        repairing = pool.submit(repair.run, None, root.location, dry_run=False)
        for number in range(APPENDS):
            attempt = CommitInfo(f"write meanwhile {number}", "append", "a test")
            try:
                known = sink_append(log, known, table([Sent(None, b"x")], 0), attempt).state
            except LostCommitError:
                repairing.result()
                known = root.state(TOPIC)
                known = sink_append(log, known, table([Sent(None, b"x")], 0), attempt).state
        assert repairing.result().exit_code == 0
    report = verify.run(None, root.location)
    assert (report.findings, report.records) == ((), held + APPENDS)
