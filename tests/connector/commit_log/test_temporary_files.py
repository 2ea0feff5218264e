"""A writer whose temporary file vacuum took: an error, no effect, and the next try is right."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from klog.connector.commit_log import commit_builders, topic_vacuum
from klog.connector.commit_log.commit import Topic
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.commit_log_paths import TopicPaths
from klog.connector.commit_log.segment_path import segment_of_file
from klog.connector.store.local_store import LocalStore
from klog.errors import KlogError
from tests.connector.commit_log.memory_logs import DAY_MS, TOPIC, Clock, append, attempt


def test_a_paused_writer_whose_file_was_taken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    log = CommitLog(LocalStore(), TopicPaths(str(tmp_path), TOPIC), clock, lambda tries: None)
    old = log.commit(
        log.load(), commit_builders.create_topic(Topic("id", 1), {}), attempt("create-topic")
    )
    link, taken = os.link, list[str]()

    def paused(source: str, target: str) -> Any:
        """Stand still between the file and its name, while others commit and vacuum."""
        monkeypatch.setattr(os, "link", link)
        state = old
        for _ in range(3):
            clock.now_ms += DAY_MS
            state = append(log, state, (0, 1))
        taken.extend(topic_vacuum.vacuum(log, attempt("vacuum"), DAY_MS).temporary_files)
        assert not Path(source).exists()
        return link(source, target)

    monkeypatch.setattr(os, "link", paused)
    with pytest.raises(KlogError, match="not written"):
        append(log, old, (0, 5))  # As version 1, which another gets.
    assert [name.rsplit("/", 1)[0] for name in taken] == [f"_klog/topics/{TOPIC}/log"]
    assert log.load().log_end == (3,)
    state = append(log, log.load(), (0, 5))
    assert state.log_end == (8,)


@pytest.mark.parametrize(
    ("file", "segment"),
    [
        ("t-0/{}-0000000003-0000000a.log", "t-0/{}-0000000003-0000000a.log"),
        ("t-0/{}-0000000003-0000000a.index", "t-0/{}-0000000003-0000000a.log"),
        ("t-0/{}-0000000003-0000000a.timeindex", "t-0/{}-0000000003-0000000a.log"),
        ("t-0/{}.index", "t-0/{}.log"),
        ("t-0/{}-0000000003-0000000a.log.index", None),
        ("t-0/{}-0000000003-0000000a", None),
        ("t-0/leader-epoch-checkpoint", None),
        ("t-0/.log", None),
        ("t/{}.log", None),
        ("../t-0/{}.log", None),
    ],
)
def test_what_belongs_to_a_segment(file: str, segment: str | None) -> None:
    offset = "0" * 20
    expect = None if segment is None else segment.format(offset)
    assert segment_of_file(file.format(offset)) == expect
