"""A job killed (SIGKILL) wherever a file gets or loses its name, and half-way through writes.

The rule: a separate process runs the command of `klog`. A kill between two such steps leaves the
same files as a kill right after the first, so these are all the points that differ.
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
from tests.jobs.broker_dirs import write_broker_dir
from tests.jobs.verified_roots import START_MS, live, staged
from tests.support.batch_bytes import marker, transactional

pytestmark = pytest.mark.slow

PARTITIONS = 2
NAMING = ("link", "replace", "unlink")
DAY_MS = 86_400_000
CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": str(7 * DAY_MS)}

NEW = pa.table({"key": ["new"], "value": ["new"]})

RecordsByPartition = dict[int, list[tuple[Any, ...]]]


VERBS = (
    Verb("compact", ("--min-dirty-ratio", "0"), 7),
    Verb("compact", ("--min-dirty-ratio", "0"), 7, compiled=True),
    Verb("merge", (), 7, unchanged=True),
    Verb("retain", (), 6),
    Verb("vacuum", ("--execute", "--grace", "0s", "--log-retention", "0s"), unchanged=True),
    Verb("adopt"),
    Verb("import-log", ("--from", "{source}"), 2),
)
KILLED_IN_CI = ("compact", "vacuum", "import-log")
"""The others take their steps, and run with `make full` only."""


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
    """Create a root in which the verb has work to do."""
    if verb.is_import:
        aborted = transactional(0, 1) + marker(1, 1, ABORT)
        committed = transactional(10, 2) + marker(11, 2, COMMIT)
        other = transactional(0, 1) + marker(1, 1, COMMIT)
        directory = root if verb.name == "adopt" else source_of(root)
        if verb.name == "import-log":
            find_or_create_root(str(root), "AAAAAAAAAAAAAAAAAAAAAA")
        write_broker_dir(directory, {"t-0": {0: aborted, 10: committed}, "t-1": {0: other}})
        return
    log = klog.open(root)
    log.create_topic("t", PARTITIONS, CONFIG)
    for first, age_ms in ((0, 30 * DAY_MS), (20, 30 * DAY_MS), (40, 0), (60, 0)):
        log.append("t", rows(first, age_ms))
    if verb.name == "vacuum":
        merge.run(None, str(root))
        staged(root, rows(80, time.time_ns() // 1_000_000 - START_MS), {})


def read_records(root: Path) -> RecordsByPartition:
    """Read the records of each partition."""
    by_partition: RecordsByPartition = {}
    if find_root(str(root)) is None:
        return by_partition
    columns = ("partition", "offset", "key", "value", "timestamp")
    log = klog.open(root)
    for row in log.scan("t", columns=columns).read_all().to_pylist() if log.topics() else []:
        by_partition.setdefault(row["partition"], []).append(tuple(row.values()))
    return by_partition


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(
            verb,
            id=verb.name + "-compiled" * verb.compiled,
            marks=() if verb.name in KILLED_IN_CI and not verb.compiled else pytest.mark.full,
        )
        for verb in VERBS
    ],
)
def test_killed_at_each_change_of_a_name(tmp_path: Path, verb: Verb) -> None:
    """Readers see the old or new records; the next run finishes, and vacuum deletes the rest."""
    base, root = tmp_path / "base", tmp_path / "root"
    make(base, verb)
    before = read_records(base)
    shutil.copytree(base, root)
    with steps_of(str(root), Interrupt()) as steps:
        run_verb(log_at(root), verb)
    after = read_records(root)
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
        actual = read_records(root)
        for partition in range(PARTITIONS):
            assert actual.get(partition) in (before.get(partition), after[partition])
        left += len(orphans(root))
        if not verb.is_import:
            klog.open(root).append("t", NEW)
        run_verb(log_at(root), verb)
        actual = read_records(root)
        assert without_new(actual) == after
        assert (actual == after) == verb.is_import
        assert verify.run(None, str(root)).findings == ()
        vacuum.run(None, str(root), grace_ms=0, log_retention_ms=0, dry_run=False)
        assert orphans(root) == set()
        assert read_records(root) == actual
        shutil.rmtree(root)
    assert left or verb.name in ("retain", "adopt")
    # `adopt` begins with a probe of the store, whose number of tries varies.
    assert missed < (len(steps) // 10 if verb.name == "adopt" else 1)


def test_a_stopped_compaction_resumes_after_another(tmp_path: Path) -> None:
    """Another compaction and a writer have committed meanwhile: it commits what still fits.

    Its process ends without an error; its report says what another compaction replaced.
    """
    verb, base = VERBS[0], tmp_path / "base"
    make(base, verb)
    shutil.copytree(base, tmp_path / "counted")
    with steps_of(str(tmp_path / "counted"), Interrupt()) as steps:
        run_verb(log_at(tmp_path / "counted"), verb)
    after = read_records(tmp_path / "counted")
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
        assert zombie.output == "done"
        assert without_new(read_records(root)) == after
        new_values = [
            record[3]
            for records in read_records(root).values()
            for record in records
            if record[2] == b"new"
        ]
        assert new_values in ([b"new", b"newer"], [b"newer"])
        assert verify.run(None, str(root)).findings == ()
        vacuum.run(None, str(root), grace_ms=0, log_retention_ms=0, dry_run=False)
        assert orphans(root) == set()


def without_new(by_partition: RecordsByPartition) -> RecordsByPartition:
    """Return the records without the one written between a kill and the next run."""
    return {
        number: [record for record in records if record[2] != b"new"]
        for number, records in by_partition.items()
    }


def interrupts(steps: list[str]) -> list[Interrupt]:
    """Return the points where a kill leaves different files."""
    naming = [at for at, step in enumerate(steps) if step.split()[0] in NAMING]
    writes = [at for at, step in enumerate(steps) if step.startswith("write")]
    assert len(naming) > 1
    return [
        *(Interrupt(at) for at in naming),
        *(Interrupt(at, "during") for at in writes),
        Interrupt(len(steps) - 1, "after"),
    ]


def orphans(root: Path) -> set[str]:
    """Return the partitions' files that no commit names, with temporary ones."""
    named = {segment["file"] for segment in live(root)} if find_root(str(root)) else set()
    bases = {Path(file).with_suffix("").as_posix() for file in named}
    files = {path.relative_to(root) for path in root.glob("t-*/*")}
    orphan_files = {
        path.as_posix() for path in files if path.with_suffix("").as_posix() not in bases
    }
    return {name for name in orphan_files if not name.endswith("partition.metadata")}


def log_at(root: Path) -> CommitLog:
    return signed_topic.log_on(LocalStore(), str(root))
