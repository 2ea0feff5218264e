"""Compactions of partitions with more keys than a task's memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from klog.jobs import merge
from klog.jobs.compacting import first_pass
from klog.jobs.merging import segments_to_merge
from klog.jobs.shared.marking.mark_records import KeyRangeMarks, MarkTask, mark_key_range
from klog.logformat.cleaning.offset_map import ALL_KEYS, MIN_MAP_BYTES, KeyRange
from tests.jobs.compacted_topics import NOW_MS, adopted, created, path_of, rows, run, survivors
from tests.jobs.partition_bytes import nothing_is_wrong, records, segments
from tests.jobs.written_root import WrittenRoot
from tests.support.batch_bytes import ABORT, COMMIT, Record, batch, marker

KEYS = 15_991
TRANSACTIONAL = 16


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def watched(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[MarkTask], object] = lambda task: None
) -> list[KeyRange]:
    """Return a list that gets the key ranges of the tasks after the first pass."""
    ranges: list[KeyRange] = []

    def watching(task: MarkTask) -> KeyRangeMarks:
        ranges.append(task.keys)
        before(task)
        return mark_key_range(task)

    monkeypatch.setattr(first_pass, "mark_key_range", watching)
    return ranges


@pytest.mark.parametrize(
    ("name", "limit", "tasks"),
    [("MAX_RANGES", 256, 3), ("MAX_RANGES", 2, 2), ("MAX_MARKS_BYTES", 1, 1)],
)
def test_what_a_task_does_not_hold_others_mark(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, tasks: int
) -> None:
    """Each has a range as wide as the first one's, or goes on alone where these would be many."""
    created(root)
    root.append("t", rows(0, 8000, keys=KEYS, size=5), batch_size="20000")
    monkeypatch.setattr(first_pass, name, limit)
    ranges = watched(monkeypatch)
    before = records(path_of(root))
    run(root, map_bytes=MIN_MAP_BYTES)
    assert records(path_of(root)) == survivors(before)
    nothing_is_wrong(path_of(root))
    assert len(ranges) == tasks
    assert len({keys.end - keys.start for keys in ranges}) == 1
    assert [keys.end for keys in ranges] == [*(keys.start for keys in ranges[1:]), ALL_KEYS[1]]


@pytest.mark.parametrize("at", ["first", "range"])
def test_a_partition_that_fails_leaves_the_others_theirs(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Its segment is gone before its first task, or before the first of its ranges."""
    created(root, partitions=3)
    for partition in range(3):
        sent = rows(partition * 9, 5000, keys=KEYS, size=5)
        root.append("t", sent, partition, batch_size="20000")
    before = {partition: records(path_of(root), partition) for partition in (0, 2)}
    (gone,) = [root.path(file) for file in root.files("t") if file.startswith("t-1/")][:1]

    def lose(task: MarkTask) -> None:
        if task.segments[0]["partition"] == 1:
            Path(gone).unlink(missing_ok=True)

    if at == "first":
        Path(gone).unlink()
    ranges = watched(monkeypatch, lose)
    report = run(root, map_bytes=MIN_MAP_BYTES)
    assert [partition.failure is not None for partition in report.partitions] == [
        False,
        True,
        False,
    ]
    assert len(ranges) == {"first": 2, "range": 3}[at]
    for partition, given_before in before.items():
        assert records(path_of(root), partition) == survivors(given_before)


def transactions(first: int, count: int) -> Iterator[bytes]:
    """Yield a broker's batches of some hundred records, by two producers; each third is aborted."""
    offset = first
    for number in range(count):
        producer = 7 + number % 2
        keys = [(offset + n) * (offset + n) % KEYS for n in range(100)]
        yield batch(
            [
                Record(
                    offset + n, NOW_MS + offset + n, b"k%d" % key, None if key % 9 == 0 else b"v"
                )
                for n, key in enumerate(keys)
            ],
            attributes=TRANSACTIONAL,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=number // 2 * 100,
        )
        offset += 100
        yield marker(offset, producer, ABORT if number % 3 == 0 else COMMIT)
        offset += 1


@pytest.mark.parametrize("merged", [False, True], ids=["apart", "merged"])
def test_little_memory_leaves_what_much_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, merged: bool
) -> None:
    """Of transactions, tombstones and markers, cleaned twice; merged, one segment is both parts.

    Another klog merges so.
    """
    left = []
    for name, map_bytes in (("small", MIN_MAP_BYTES), ("large", 1 << 24)):
        root = WrittenRoot(str(tmp_path / name))
        adopted(root, [b"".join(transactions(0, 160))], segment_bytes="10000000")
        ranges = watched(monkeypatch)
        run(root, map_bytes=map_bytes)
        first = segments(path_of(root))
        for begin in (0, 4000):
            sent = rows(begin, 4000, keys=9973, size=5)
            root.append("t", sent, batch_size="20000")
        if merged:
            monkeypatch.setattr(segments_to_merge, "_can_join", lambda *args: True)
            merge.run(None, root.location, "t")
            assert len(segments(path_of(root))) == 1
        run(root, map_bytes=map_bytes)
        nothing_is_wrong(path_of(root))
        left.append((first, segments(path_of(root))))
        assert (len(ranges) > 1) == (name == "small")
    assert left[0] == left[1]
