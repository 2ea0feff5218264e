"""Records that a compaction should have taken: where the first ones are, and how many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from klog.connector.commit_log import segment_entries
from klog.connector.commit_log.commit import Actions
from klog.connector.options.storage_options import NO_STORAGE_OPTIONS
from klog.jobs import compact, verify
from klog.jobs.shared import task_retries
from klog.jobs.shared.entry_rows import EntryRows
from klog.jobs.shared.marking.mark_records import KeyRangeMarks, MarkTask, mark_key_range
from klog.jobs.verifying import check_keys
from klog.jobs.verifying.findings import Finding
from tests.corpus.clients import Sent
from tests.jobs.partition_bytes import entries_of, state_of
from tests.jobs.verified_roots import commit
from tests.jobs.written_root import WrittenRoot
from tests.support.batch_bytes import COMMIT, batch, marker, transactional

NOW_MS = 1_700_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    root = WrittenRoot(str(tmp_path / "root"))
    root.create("t", 2)
    root.create("compacted", 1, {"cleanup.policy": "compact"})
    return root


def said_to_be_clean(root: WrittenRoot, to: int, partition: int = 0) -> None:
    commit(Path(root.location), lambda state: Actions(cleaned_to={partition: to}), "compact")


def findings_of(root: WrittenRoot) -> list[Finding]:
    return list(verify.run(None, root.location).findings)


def test_each_is_told_with_its_file_and_offset(root: WrittenRoot) -> None:
    keys = [b"a", b"b", b"a", b"c"], [b"b", b"d", None], [b"a", b"e"]
    for batch_keys in keys:
        root.append("t", [Sent(key, b"v", NOW_MS) for key in batch_keys], 1)
    said_to_be_clean(root, 7, 1)
    files = [entry["file"] for entry in entries_of(Path(root.location), 1)]
    findings = findings_of(root)
    assert [
        (finding.kind, finding.partition, finding.file, finding.offset) for finding in findings
    ] == [
        ("key", 1, files[0], 0),
        ("key", 1, files[0], 1),
        ("key", 1, files[1], 6),
    ]
    assert ["has no key" in finding.reason for finding in findings] == [False, False, True]
    assert all("below offset 7" in finding.reason for finding in findings)
    line = next(verify.run(None, root.location).lines())
    assert f"\tFile: {files[0]}\tOffset: 0\tWhat: " in line


def test_what_lies_below_the_log_start_no_compaction_saw(root: WrittenRoot) -> None:
    root.append("compacted", [Sent(key, b"v", NOW_MS) for key in (b"a", b"b", b"a", b"b", b"c")])
    root.delete_records("compacted", {0: 3})
    compact.run(None, root.location, "compacted", min_dirty_ratio=0.0)
    assert state_of(Path(root.location), "compacted").cleaned_to == {0: 5}
    assert findings_of(root) == []
    root.append("t", [Sent(key, b"v", NOW_MS) for key in (b"a", b"a", None, b"b", b"b", b"c")])
    root.delete_records("t", {0: 3})
    said_to_be_clean(root, 6)
    assert [finding.offset for finding in findings_of(root)] == [3]


def test_ten_are_told_and_the_rest_is_counted(root: WrittenRoot) -> None:
    for _ in range(3):
        root.append("t", [Sent(b"k%d" % n, b"v", NOW_MS) for n in range(800)])
    said_to_be_clean(root, 2400)
    *findings, last = findings_of(root)
    assert [finding.offset for finding in findings] == list(range(10))
    assert (last.file, last.offset, last.reason) == (None, None, "and 1,590 more such records")


def test_control_batches_are_no_records(root: WrittenRoot) -> None:
    """Places are those of records, not of batches that have none, or none of data."""
    empty = batch(base_offset=0, last_offset_delta=4)
    own = empty + transactional(5, 7) + marker(6, 7, COMMIT) + transactional(7, 7)
    root.adopt("t", 0, {0: own + marker(8, 7, COMMIT)})
    said_to_be_clean(root, 9)
    assert [finding.offset for finding in findings_of(root) if finding.kind == "key"] == [5]


def test_what_was_compacted_has_none(root: WrittenRoot) -> None:
    for _ in range(2):
        root.append("compacted", [Sent(b"k%d" % n, None, NOW_MS) for n in range(20)])
    compact.run(None, root.location, "compacted", min_dirty_ratio=0.0)
    assert state_of(Path(root.location), "compacted").cleaned_to == {0: 40}
    assert findings_of(root) == []


def doubled(root: WrittenRoot) -> list[Path]:
    """Write a key twice into each of two segments of both partitions; gives those of the first."""
    for partition in (0, 1):
        for key in (b"a", b"b"):
            root.append("t", [Sent(key, b"v", NOW_MS)] * 3, partition)
        said_to_be_clean(root, 6, partition)
    return [Path(root.location) / entry["file"] for entry in entries_of(Path(root.location))]


def test_damage_is_told_by_who_verifies_the_segment(root: WrittenRoot) -> None:
    first, _ = doubled(root)
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    actual = [(finding.partition, finding.kind) for finding in findings_of(root)]
    assert actual == [(0, "crc"), *[(1, "key")] * 4]


def test_damage_amid_it_hides_nothing_that_was_found(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file is gone when the places of its records are looked for."""
    _, second = doubled(root)
    done = mark_key_range

    def remove_after(task: MarkTask) -> KeyRangeMarks:
        marked = done(task)
        second.unlink(missing_ok=True)
        return marked

    monkeypatch.setattr(check_keys, "mark_key_range", remove_after)
    actual = [
        (finding.offset, finding.reason) for finding in findings_of(root) if finding.partition == 0
    ]
    assert [offset for offset, _ in actual] == [0, 1, None]
    assert actual[-1][1] == "and 2 more such records"


def failing(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the store be away when keys are asked for first, so many times."""
    done, calls = mark_key_range, []

    def away(task: MarkTask) -> KeyRangeMarks:
        calls.append(task)
        if len(calls) <= times:
            raise ConnectionResetError("the store is away")
        return done(task)

    monkeypatch.setattr(check_keys, "mark_key_range", away)


def test_what_the_store_did_not_give_is_told(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its own partition, and nothing else goes untold for it."""
    doubled(root)
    failing(monkeypatch, 1)
    first, *rest = findings_of(root)
    assert (first.kind, first.partition, first.file) == ("unreadable", 0, None)
    assert "below offset 6 is not known: the store is away" in first.reason
    assert [(finding.partition, finding.kind) for finding in rest] == [(1, "key")] * 4


def test_a_task_is_tried_again_when_the_store_was_away(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled(root)
    monkeypatch.setattr(task_retries, "PAUSE_SECONDS", 0)
    failing(monkeypatch, 2)
    own = EntryRows(segment_entries.to_table(entries_of(Path(root.location))))
    task = check_keys.KeysTask(root.location, NO_STORAGE_OPTIONS, "t", 0, own, 0)
    findings = task_retries.run_with_retries(check_keys.find_repeated_keys, task)
    assert isinstance(findings, list)
    assert [finding.offset for finding in findings] == [0, 1, 3, 4]
