"""Many writers of one topic at once, as processes: nobody's record is lost, doubled or held up."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.commit_log.commit_log import MAX_COMMITS
from klog.connector.store.local_store import LocalStore
from tests.faults import process_work, signed_topic
from tests.faults.children import Child, Task


def race(root: Path, writers: int, task: Task) -> tuple[list[str], list[int]]:
    """Let them all begin at once; gives who they were, and the most tries that each needed."""
    signed_topic.create(signed_topic.log_on(LocalStore(), str(root)))
    children = [Child(task, root) for _ in range(writers)]
    (root / "go").touch()
    assert [child.wait() for child in children] == [0] * writers
    said = [child.said.split() for child in children]
    assert all(len(words) == 2 for words in said), said
    return [who for who, _ in said], [int(tries) for _, tries in said]


def dense(root: Path, whose: list[str], appends: int) -> None:
    """Assert that each record is there once, each writer's in order, and no number is left out."""
    log = signed_topic.log_on(LocalStore(), str(root))
    state = log.load()
    assert state.version == len(whose) * appends
    assert state.version + 1 == len(list((root / "_klog/topics/orders/log").iterdir()))
    records = signed_topic.records_of(log, state)
    for partition in (0, 1):
        assert len(records[partition]) == state.log_end[partition]
        for who in whose:
            own = [line for line in records[partition] if line.startswith(f"{who}-")]
            assert own == [f"{who}-{number}" for number in range(partition, appends, 2)]
    assert sum(map(len, records)) == len(whose) * appends


@pytest.mark.slow
def test_f01_sixteen_processes_append_twenty_times_each(tmp_path: Path) -> None:
    whose, _ = race(tmp_path, 16, process_work.append_20)
    dense(tmp_path, whose, 20)


@pytest.mark.slow
def test_f32_fifty_writers_all_finish(tmp_path: Path) -> None:
    """The bound of tries is far off: the wait grows with each, so that writers thin out."""
    whose, tries = race(tmp_path, 50, process_work.append_4)
    dense(tmp_path, whose, 4)
    assert max(tries) < MAX_COMMITS / 2
