"""A job of klog's killed (SIGKILL) wherever something gets its name, and half-way through writes.

The rule: the process is one of its own and does what the verb of `klog` does. What a kill between
two such steps leaves is what the step before has left, so those are all places that differ.
"""

from __future__ import annotations

import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import klog
from klog.connector.commit_log.commit_log import CommitLog
from klog.connector.commit_log.root_discovery import find_or_create_root, find_root
from klog.connector.store.local_store import LocalStore
from klog.jobs import merge, vacuum, verify
from klog.logformat.producers.control_records import ABORT, COMMIT
from tests.faults import signed_topic
from tests.faults.children import Child, Interrupt, steps_of
from tests.faults.verbs import Verb, run_verb, source_of
from tests.jobs.broker_dirs import made
from tests.jobs.verified_roots import START_MS, live, staged
from tests.support.batch_bytes import marker, transactional

pytestmark = pytest.mark.slow

PARTITIONS = 2
NAMING = ("link", "replace", "unlink")
DAY_MS = 86_400_000
CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": str(7 * DAY_MS)}

NEW = pa.table({"key": ["new"], "value": ["new"]})

Found = dict[int, list[tuple[Any, ...]]]


VERBS = (
    Verb("compact", ("--min-dirty-ratio", "0"), 7),
    Verb("compact", ("--min-dirty-ratio", "0"), 7, compiled=True),
    Verb("merge", (), 7, unchanged=True),
    Verb("retain", (), 6),
    Verb("vacuum", ("--execute", "--grace", "0s", "--log-retention", "0s"), unchanged=True),
    Verb("adopt"),
    Verb("import-log", ("--from", "{source}"), 2),
)


def rows(first: int, age_ms: int = 0) -> pa.Table:
    numbers = range(first, first + 20)
    at = time.time_ns() // 1_000_000 - age_ms
    return pa.table(
        {
            "key": [f"k{number % 6}" for number in numbers],
            "value": [f"v{number}" for number in numbers],
            "partition": pa.array([number % PARTITIONS for number in numbers], pa.int32()),
            "timestamp": pa.array([at] * len(numbers), pa.timestamp("ms", "UTC")),
        }
    )


def make(root: Path, verb: Verb) -> None:
    """Make what a verb has work in."""
    if verb.takes_in:
        aborted = transactional(0, 1) + marker(1, 1, ABORT)
        committed = transactional(10, 2) + marker(11, 2, COMMIT)
        other = transactional(0, 1) + marker(1, 1, COMMIT)
        directory = root if verb.name == "adopt" else source_of(root)
        if verb.name == "import-log":
            find_or_create_root(str(root), "AAAAAAAAAAAAAAAAAAAAAA")
        made(directory, {"t-0": {0: aborted, 10: committed}, "t-1": {0: other}})
        return
    log = klog.open(root)
    log.create_topic("t", PARTITIONS, CONFIG)
    for first, age_ms in ((0, 30 * DAY_MS), (20, 30 * DAY_MS), (40, 0), (60, 0)):
        log.append("t", rows(first, age_ms))
    if verb.name == "vacuum":
        merge.run(None, str(root))
        staged(root, rows(80, time.time_ns() // 1_000_000 - START_MS), {})


def records(root: Path) -> Found:
    """Give what readers find in each partition."""
    found: Found = {}
    if find_root(str(root)) is None:
        return found
    columns = ("partition", "offset", "key", "value", "timestamp")
    log = klog.open(root)
    for row in log.scan("t", columns=columns).read_all().to_pylist() if log.topics() else []:
        found.setdefault(row["partition"], []).append(tuple(row.values()))
    return found


@pytest.mark.parametrize("verb", VERBS, ids=lambda one: one.name + "-compiled" * one.compiled)
def test_killed_wherever_something_gets_its_name(tmp_path: Path, verb: Verb) -> None:
    """Readers find what was there or what is to be; the next run ends it, and vacuum the rest."""
    base, root = tmp_path / "base", tmp_path / "root"
    make(base, verb)
    before = records(base)
    shutil.copytree(base, root)
    with steps_of(str(root), Interrupt()) as steps:
        run_verb(log_at(root), verb)
    after = records(root)
    assert after
    assert (after == before) == verb.unchanged
    shutil.rmtree(root)
    left = missed = 0
    for interrupt in interrupts(steps):
        shutil.copytree(base, root)
        child = Child(partial(run_verb, verb=verb), root, interrupt)
        code = child.wait()
        assert code in (-signal.SIGKILL, 0), interrupt
        missed += code == 0
        found = records(root)
        for partition in range(PARTITIONS):
            assert found.get(partition) in (before.get(partition), after[partition])
        left += len(orphans(root))
        if not verb.takes_in:
            klog.open(root).append("t", NEW)
        run_verb(log_at(root), verb)
        found = records(root)
        assert without_new(found) == after
        assert (found == after) == verb.takes_in
        assert verify.run(None, str(root)).findings == ()
        vacuum.run(None, str(root), grace_ms=0, log_retention_ms=0, dry_run=False)
        assert orphans(root) == set()
        assert records(root) == found
        shutil.rmtree(root)
    assert left or verb.name in ("retain", "adopt")
    # How often a store's probe, which `adopt` begins with, tries something is chance.
    assert missed < (len(steps) // 10 if verb.name == "adopt" else 1)


def test_a_compaction_that_was_stopped_goes_on_behind_another(tmp_path: Path) -> None:
    """It is a zombie when another has compacted and a writer written: it commits what still fits.

    Its process ends as if nothing were: who was faster is in its report.
    """
    verb, base = VERBS[0], tmp_path / "base"
    make(base, verb)
    shutil.copytree(base, tmp_path / "counted")
    with steps_of(str(tmp_path / "counted"), Interrupt()) as steps:
        run_verb(log_at(tmp_path / "counted"), verb)
    after = records(tmp_path / "counted")
    naming = [at for at, step in enumerate(steps) if step.split()[0] in NAMING]
    for at in naming[::2]:
        root = tmp_path / str(at)
        shutil.copytree(base, root)
        zombie = Child(partial(run_verb, verb=verb), root, Interrupt(at, "before", signal.SIGSTOP))
        assert zombie.wait_for_stop()
        klog.open(root).append("t", NEW)
        run_verb(log_at(root), verb)
        klog.open(root).append("t", NEW.set_column(1, "value", [["newer"]]))
        assert zombie.resume() == 0
        assert zombie.said == "done"
        assert without_new(records(root)) == after
        wrote = [one[3] for some in records(root).values() for one in some if one[2] == b"new"]
        assert wrote in ([b"new", b"newer"], [b"newer"])
        assert verify.run(None, str(root)).findings == ()
        vacuum.run(None, str(root), grace_ms=0, log_retention_ms=0, dry_run=False)
        assert orphans(root) == set()


def without_new(found: Found) -> Found:
    """Leave out the record that was written between a kill and the next run."""
    return {number: [one for one in some if one[2] != b"new"] for number, some in found.items()}


def interrupts(steps: list[str]) -> list[Interrupt]:
    """Give the places where a kill leaves something of its own."""
    naming = [at for at, step in enumerate(steps) if step.split()[0] in NAMING]
    writes = [at for at, step in enumerate(steps) if step.startswith("write")]
    assert len(naming) > 1
    return [
        *(Interrupt(at) for at in naming),
        *(Interrupt(at, "during") for at in writes),
        Interrupt(len(steps) - 1, "after"),
    ]


def orphans(root: Path) -> set[str]:
    """Give the files of partitions that no commit names, temporary ones too."""
    named = {one["file"] for one in live(root)} if find_root(str(root)) else set()
    bases = {Path(file).with_suffix("").as_posix() for file in named}
    files = {path.relative_to(root) for path in root.glob("t-*/*")}
    found = {path.as_posix() for path in files if path.with_suffix("").as_posix() not in bases}
    return {name for name in found if not name.endswith("partition.metadata")}


def log_at(root: Path) -> CommitLog:
    return signed_topic.log_on(LocalStore(), str(root))
