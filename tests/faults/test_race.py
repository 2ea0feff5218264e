"""Many processes write to one topic at once: no record is lost or duplicated, no writer starves."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.commit_log.commit_log import MAX_COMMITS
from klog.connector.store.local_store import LocalStore
from tests.faults import process_work, signed_topic
from tests.faults.children import Child, Task


def race(root: Path, writers: int, task: Task) -> tuple[list[str], list[int]]:
    """Let all writers begin at once; return their ids, and the most tries of each."""
    signed_topic.create(signed_topic.log_on(LocalStore(), str(root)))
    children = [Child(task, root) for _ in range(writers)]
    (root / "go").touch()
    assert [child.wait() for child in children] == [0] * writers
    outputs = [child.output.split() for child in children]
    assert all(len(words) == 2 for words in outputs), outputs
    return [writer_id for writer_id, _ in outputs], [int(tries) for _, tries in outputs]


def assert_dense(root: Path, writer_ids: list[str], appends: int) -> None:
    """Assert that each record is there once, each writer's in order, without gaps."""
    log = signed_topic.log_on(LocalStore(), str(root))
    state = log.load()
    assert state.version == len(writer_ids) * appends
    assert state.version + 1 == len(list((root / "_klog/topics/orders/log").iterdir()))
    records = signed_topic.records_of(log, state)
    for partition in (0, 1):
        assert len(records[partition]) == state.log_end[partition]
        for writer_id in writer_ids:
            own = [line for line in records[partition] if line.startswith(f"{writer_id}-")]
            assert own == [f"{writer_id}-{number}" for number in range(partition, appends, 2)]
    assert sum(map(len, records)) == len(writer_ids) * appends


@pytest.mark.slow
def test_f01_sixteen_processes_append_twenty_times_each(tmp_path: Path) -> None:
    writer_ids, _ = race(tmp_path, 16, process_work.append_20)
    assert_dense(tmp_path, writer_ids, 20)


@pytest.mark.slow
def test_f32_fifty_writers_all_finish(tmp_path: Path) -> None:
    """No writer comes near the limit of tries: the wait grows with each try."""
    writer_ids, tries = race(tmp_path, 50, process_work.append_4)
    assert_dense(tmp_path, writer_ids, 4)
    assert max(tries) < MAX_COMMITS / 2
