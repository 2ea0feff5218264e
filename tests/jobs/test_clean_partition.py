"""Compactions in one pass from the end of what is dirty: what they read, and where they give up."""

from __future__ import annotations

import errno
import pickle
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, NoReturn

import pytest

from klog.connector.store.local_store import LocalStore
from klog.connector.store.readable_store import File
from klog.jobs import compact
from klog.jobs.compacting import clean_partition, first_pass
from klog.jobs.compacting.clean_partition import CleanTask
from klog.jobs.shared.marking import cleaning_workload, compiled_kernels
from klog.jobs.shared.marking.compiled_kernels import LOADING_COST_RECORDS
from klog.logformat.cleaning.offset_map import MIN_MAP_BYTES
from tests.corpus.clients import Sent
from tests.jobs.compacted_topics import (
    NOW_MS,
    by_loops,
    contended,
    created,
    path_of,
    rows,
    run,
    sent_at,
    survivors,
)
from tests.jobs.partition_bytes import entries_of, nothing_is_wrong, records, segments
from tests.jobs.written_root import WrittenRoot
from tests.support.kernel_choices import CLEANING_FROM_THE_START, NEVER_KERNELS
from tests.support.sampled_cases import sampled
from tests.support.waiting import TIMEOUT_SECONDS


@pytest.fixture(autouse=True, params=["compiled", "little memory"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    by_loops(monkeypatch, little_memory=request.param == "little memory")


@pytest.fixture
def root(tmp_path: Path) -> WrittenRoot:
    return WrittenRoot(str(tmp_path / "root"))


def test_what_is_dirty_is_read_once(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """By loops, and what is left is one segment, but for those that lose nothing."""
    created(root, segment_bytes="1000000")
    for first in range(0, 90, 30):
        root.append("t", rows(first, 30))
    run(root)
    before, (clean,) = records(path_of(root)), entries_of(path_of(root))
    for first in range(90, 180, 30):
        root.append("t", rows(first, 30))
    unique = [Sent(b"u%d" % n, b"v", NOW_MS) for n in range(5)]
    root.append("t", unique)
    root.append("t", rows(180, 30))
    expected = survivors([*before, *sent_at(90, rows(90, 90)), *sent_at(180, unique)])
    expected = survivors([*expected, *sent_at(185, rows(180, 30))])
    opened = Counter[str]()
    real = LocalStore.open

    def counted(store: LocalStore, path: str, *more: Any) -> File:
        opened[path] += 1
        return real(store, path, *more)

    monkeypatch.setattr(LocalStore, "open", counted)
    monkeypatch.setattr(compiled_kernels, "CLEANING", CLEANING_FROM_THE_START)
    monkeypatch.setattr(clean_partition, "MAX_BUFFER_BYTES", 1 << 20)
    dirty = entries_of(path_of(root))[1:]
    run(root)
    assert {opened[str(path_of(root) / entry["file"])] for entry in dirty} == {1}
    assert opened[str(path_of(root) / clean["file"])] == 2
    assert records(path_of(root)) == expected
    assert [entry["record_count"] for entry in entries_of(path_of(root))[-2:]] == [5, 4]
    nothing_is_wrong(path_of(root))


def test_more_keys_than_memory_holds(root: WrittenRoot) -> None:
    """By loops a pass is begun and given up: what it wrote is garbage."""
    created(root)
    root.append("t", rows(0, 8000, keys=15_991, size=5), batch_size="20000")
    before = records(path_of(root))
    run(root, map_bytes=MIN_MAP_BYTES)
    assert records(path_of(root)) == survivors(before)
    nothing_is_wrong(path_of(root))


def test_no_room_for_what_waits(root: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full makes it take two passes, and nothing else."""

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    contended(root)
    before = {partition: records(path_of(root), partition) for partition in (0, 1)}
    monkeypatch.setattr(SpooledTemporaryFile, "write", full)
    assert run(root).exit_code == 0
    for partition in (0, 1):
        assert records(path_of(root), partition) == survivors(before[partition])
    nothing_is_wrong(path_of(root))


def test_a_task_imports_no_pandas(
    root: WrittenRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes longer than all that klog itself imports."""
    contended(root)
    pickled = tmp_path / "task"

    def keep_first(_: object, work: object, tasks: Sequence[CleanTask], __: str) -> NoReturn:
        pickled.write_bytes(pickle.dumps((work, tasks[0])))
        raise KeyboardInterrupt

    monkeypatch.setattr(first_pass, "try_tasks", keep_first)
    monkeypatch.setattr(cleaning_workload, "BATCH_RECORDS", LOADING_COST_RECORDS)
    with pytest.raises(KeyboardInterrupt):
        run(root)
    code = "import pickle, sys; work, task = pickle.load(open(sys.argv[1], 'rb')); work(task)"
    command = [sys.executable, "-c", f"{code}; sys.exit('pandas' in sys.modules)", str(pickled)]
    before = len(list(path_of(root).glob("t-0/*.log")))
    assert subprocess.run(command, timeout=TIMEOUT_SECONDS, check=False).returncode == 0
    assert len(list(path_of(root).glob("t-0/*.log"))) > before


@pytest.mark.parametrize("seed", sampled(range(4), 4, pytest.mark.full))
def test_both_ways_leave_the_same_of_what_klog_wrote(
    root: WrittenRoot, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Many producers and sizes, lost races, records deleted at the start; several rounds."""
    drawn = random.Random(seed)
    created(root, segment_bytes=str(drawn.choice((400, 3000, 100_000))), delete_retention_ms="20")
    other, now_ms = Path(f"{root.location}.other"), NOW_MS
    for _ in range(3):
        for _ in range(drawn.randint(1, 5)):
            seen = root.state("t")
            for state in (None, seen):
                sent = [
                    Sent(
                        b"k%d" % drawn.randrange(30),
                        drawn.choice((None, b"z" * 300, drawn.randbytes(20))),
                        now_ms + drawn.randrange(100),
                    )
                    for _ in range(drawn.randint(1, 40))
                ]
                size = str(drawn.choice((200, 3000)))
                codec = drawn.choice(("uncompressed", "lz4", "zstd"))
                root.append("t", sent, batch_size=size, compression_type=codec, seen=state)
        state = root.state("t")
        if drawn.random() < 0.5:
            start = drawn.randint(state.log_start[0], state.log_end[0])
            root.delete_records("t", {0: start})
        shutil.copytree(root.location, other)
        (mine,) = run(root, now_ms=now_ms).partitions
        with monkeypatch.context() as patched:
            patched.setattr(compiled_kernels, "CLEANING", NEVER_KERNELS)
            clock = partial(int, now_ms)
            report = compact.run(None, str(other), min_dirty_ratio=0.0, clock_ms=clock)
            (theirs,) = report.partitions
        assert b"".join(segments(path_of(root))) == b"".join(segments(other))
        assert (mine.left, mine.records_after) == (theirs.left, theirs.records_after)
        nothing_is_wrong(path_of(root))
        shutil.rmtree(other)
        now_ms += drawn.choice((0, 20, 1000))
