"""What reads and rewrites a topic that was restored: its holes, its lower log start, its bounds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import klog
from klog.connector.commit_log import checkpoint_writer
from klog.connector.commit_log.topic_restore import restore_topic
from klog.errors import RestoreRefusedError
from klog.jobs import compact, export_log, import_log, merge, repair, retain, vacuum, verify
from tests.corpus.clients import Sent
from tests.jobs.lost_files import TOPIC, lose_commits
from tests.jobs.test_over_a_hole import is_sound, offsets
from tests.jobs.written_root import WrittenRoot

NOW_MS = 1_700_000_000_000
OFFSETS = [0, 1, 2, 3, 4, 5, 9, 10, 11]


def append(root: WrittenRoot, number: int) -> int:
    """Append three records, a version of each key; return the version of the commit."""
    rows = [Sent(b"key %d" % n, b"%d" % number, NOW_MS + number) for n in range(3)]
    return root.append(TOPIC, rows).version


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    """Make a partition of offsets 0 to 11; a restore made a hole of 6 to 8."""
    root = WrittenRoot(str(tmp_path / "root"))
    root.create(TOPIC, 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    versions = [append(root, number) for number in range(3)]
    restore_topic(root.root, TOPIC, versions[1])
    append(root, 3)
    (hole,) = root.state(TOPIC).holes
    assert (hole.base_offset, hole.next_offset) == (6, 9)
    return root


def test_readers_and_verify_skip_the_hole(root: WrittenRoot) -> None:
    assert offsets(root.location) == OFFSETS
    assert offsets(root.location, 7) == [9, 10, 11]
    assert offsets(root.location, 4, 8) == [4, 5]
    assert is_sound(root)


def test_merge_joins_across_it_and_a_restore_parts_it_again(root: WrittenRoot) -> None:
    before = append(root, 4)
    report = merge.run(None, root.location)
    assert report.exit_code == 0, list(report.lines())
    assert (offsets(root.location), is_sound(root)) == ([*OFFSETS, 12, 13, 14], True)
    assert len(root.files(TOPIC)) == 1
    restore_topic(root.root, TOPIC, before)
    assert (offsets(root.location), is_sound(root)) == ([*OFFSETS, 12, 13, 14], True)
    assert len(root.files(TOPIC)) == 4


def test_compaction_starts_again_where_it_was(root: WrittenRoot) -> None:
    before = root.state(TOPIC).version
    assert compact.run(None, root.location, min_dirty_ratio=0).exit_code == 0
    assert (offsets(root.location), is_sound(root)) == ([9, 10, 11], True)
    cleaned_to = root.state(TOPIC).cleaned_to
    assert cleaned_to[0] > 0
    restore_topic(root.root, TOPIC, before)
    assert (offsets(root.location), is_sound(root)) == (OFFSETS, True)
    assert root.state(TOPIC).cleaned_to[0] == 0
    assert compact.run(None, root.location, min_dirty_ratio=0).exit_code == 0
    assert (offsets(root.location), is_sound(root)) == ([9, 10, 11], True)
    assert root.state(TOPIC).cleaned_to == cleaned_to


def test_retention_after_the_log_start_became_lower(root: WrittenRoot) -> None:
    before = root.state(TOPIC).version
    root.delete_records(TOPIC, {0: 4})
    assert offsets(root.location) == [4, 5, 9, 10, 11]
    restore_topic(root.root, TOPIC, before)
    assert (offsets(root.location), is_sound(root)) == (OFFSETS, True)
    klog.open(root.location).alter_config(
        TOPIC, {"cleanup.policy": "delete", "retention.ms": "1", "segment.ms": "1"}
    )
    report = retain.run(None, root.location, clock_ms=lambda: NOW_MS + 10_000)
    assert report.exit_code == 0, list(report.lines())
    assert (offsets(root.location), is_sound(root)) == ([], True)
    assert root.state(TOPIC).holes == ()


def test_it_is_exported_and_imported_with_its_hole_and_its_end(
    root: WrittenRoot, tmp_path: Path
) -> None:
    last = root.state(TOPIC).version
    append(root, 4)
    restore_topic(root.root, TOPIC, last)
    exported, again = str(tmp_path / "exported"), str(tmp_path / "again")
    assert export_log.run(None, root.location, TOPIC, exported).exit_code == 0
    assert offsets(exported) == OFFSETS
    log_end = klog.open(exported).offsets(TOPIC)
    assert log_end == {0: 15}
    import_log.run(None, again, TOPIC, source=exported)
    assert offsets(again) == OFFSETS
    assert klog.open(again).offsets(TOPIC) == {0: 15}
    assert verify.run(None, again).findings == ()


def test_vacuum_takes_what_a_restore_removed_and_leaves_what_it_brought_back(
    root: WrittenRoot,
) -> None:
    before = root.state(TOPIC).version
    taken_back = set(root.files(TOPIC))
    merge.run(None, root.location)
    merged, _ = root.files(TOPIC)
    restore_topic(root.root, TOPIC, before)
    time.sleep(0.01)
    report = vacuum.run(None, root.location, dry_run=False, grace_ms=0)
    removed = report.topics[0].orphan_files.removed
    assert merged in removed
    assert not taken_back & set(removed)
    assert (offsets(root.location), is_sound(root)) == (OFFSETS, True)
    with pytest.raises(RestoreRefusedError, match="vacuum has deleted it"):
        restore_topic(root.root, TOPIC, before + 1)


def test_repair_of_a_commit_before_a_restore(root: WrittenRoot) -> None:
    """The segments that a restore brings back say nothing about the log ends before it."""
    first = root.state(TOPIC).version
    merge.run(None, root.location)
    restore_topic(root.root, TOPIC, first)
    held = offsets(root.location)
    lose_commits(root, 2)
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    assert (offsets(root.location), is_sound(root)) == (held, True)


def test_a_checkpoint_after_it_stands_for_lost_commits(root: WrittenRoot) -> None:
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), root.state(TOPIC))
    restores = root.state(TOPIC).restores
    lose_commits(root, 0, 1, 2)
    assert root.state(TOPIC).restores == restores
    assert offsets(root.location) == OFFSETS
