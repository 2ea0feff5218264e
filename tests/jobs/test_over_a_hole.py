"""What reads and rewrites a topic that a repair has declared a hole in."""

from __future__ import annotations

from pathlib import Path

import pytest

import klog
from klog.connector.commit_log import checkpoint_writer
from klog.jobs import compact, export_log, import_log, merge, repair, retain, verify
from tests.corpus.clients import Sent
from tests.jobs.lost_files import TOPIC, lose_commits
from tests.jobs.written_root import WrittenRoot

NOW_MS = 1_700_000_000_000
OFFSETS = [0, 1, 2, 6, 7, 8]


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    """Make a partition of offsets 0 to 8; 3 to 5 are a hole."""
    root = WrittenRoot(str(tmp_path / "root"))
    root.create(TOPIC, 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    for number in range(3):
        rows = [Sent(b"key %d" % n, b"%d" % number, NOW_MS + number) for n in range(3)]
        root.append(TOPIC, rows)
    (file,) = (path for path in root.files(TOPIC) if f"/{3:020}" in path)
    lose_commits(root, 2)
    Path(root.path(file)).unlink()
    assert repair.run(None, root.location, dry_run=False).exit_code == 0
    (hole,) = root.state(TOPIC).holes
    assert (hole.base_offset, hole.next_offset) == (3, 6)
    return root


def offsets(path: str, start: int | None = None, end: int | None = None) -> list[int]:
    rows = klog.open(path).scan(TOPIC, start, end, ["offset"]).read_all()
    return [int(offset) for offset in rows["offset"].to_pylist()]


def is_sound(root: WrittenRoot) -> bool:
    return verify.run(None, root.location).findings == ()


def test_readers_skip_it(root: WrittenRoot) -> None:
    assert offsets(root.location) == OFFSETS
    assert offsets(root.location, 4) == [6, 7, 8]
    assert offsets(root.location, 1, 5) == [1, 2]
    (partition,) = klog.open(root.location).describe(TOPIC).partitions
    assert (partition.log_start, partition.log_end) == (0, 9)


def test_a_load_from_a_checkpoint_knows_it(root: WrittenRoot) -> None:
    checkpoint_writer.write_checkpoint(root.root.log(TOPIC), root.state(TOPIC))
    lose_commits(root, 0, 1, 2)
    assert len(root.state(TOPIC).holes) == 1
    assert offsets(root.location) == OFFSETS


def test_appends_go_after_the_hole(root: WrittenRoot) -> None:
    root.append(TOPIC, [Sent(b"more", b"", NOW_MS)])
    assert offsets(root.location) == [*OFFSETS, 9]
    assert is_sound(root)


def test_merge_joins_across_it(root: WrittenRoot) -> None:
    report = merge.run(None, root.location)
    assert report.exit_code == 0, list(report.lines())
    assert offsets(root.location) == OFFSETS
    assert is_sound(root)


def test_compact_cleans_around_it(root: WrittenRoot) -> None:
    report = compact.run(None, root.location, min_dirty_ratio=0)
    assert report.exit_code == 0, list(report.lines())
    assert offsets(root.location) == [6, 7, 8]
    assert is_sound(root)


def test_retention_and_deleted_records_take_it_away(root: WrittenRoot) -> None:
    klog.open(root.location).alter_config(
        TOPIC, {"cleanup.policy": "delete", "retention.ms": "1", "segment.ms": "1"}
    )
    root.delete_records(TOPIC, {0: 4})
    assert (offsets(root.location), is_sound(root)) == ([6, 7, 8], True)
    report = retain.run(None, root.location, clock_ms=lambda: NOW_MS + 10_000)
    assert report.exit_code == 0, list(report.lines())
    assert (offsets(root.location), is_sound(root)) == ([], True)
    assert root.state(TOPIC).holes == ()


def test_it_is_exported_and_imported_as_a_gap(root: WrittenRoot, tmp_path: Path) -> None:
    exported, again = str(tmp_path / "exported"), str(tmp_path / "again")
    export_log.run(None, root.location, TOPIC, exported)
    assert offsets(exported) == OFFSETS
    import_log.run(None, again, TOPIC, source=exported)
    assert offsets(again) == OFFSETS
    (partition,) = klog.open(again).describe(TOPIC).partitions
    assert partition.log_end == 9
    assert verify.run(None, again).findings == ()
