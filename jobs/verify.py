"""Verify a klog root: hold the files of its topics to what their commit logs say.

The rule: a topic is verified as of one version of its log, and nothing is written. A file that is
not there is looked for in the log again before it is told: what compaction or retention took out
meanwhile may go, and is no finding. Segments are verified by tasks; what only a partition shows,
whether they fit each other, is seen when theirs are together.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("verify")

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klog.connector.log import entries
from klog.connector.log.root import KlogRoot, find_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import TopicLog
from klog.connector.log.traces import topics_without_log
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, OptionError
from klog.jobs.choosing import open_root
from klog.jobs.command import Command
from klog.jobs.entry_rows import EntryRows
from klog.jobs.tasks import Coming, Failed, run_tasks, try_tasks
from klog.jobs.verifying.commit_log import unreadable_log, verify_log
from klog.jobs.verifying.findings import Finding
from klog.jobs.verifying.keys import UniqueTask, superseded, unknown
from klog.jobs.verifying.partition import NeighbourFacts, put_together
from klog.jobs.verifying.report import VerifyReport
from klog.jobs.verifying.segment import verify_segment
from klog.jobs.verifying.tiling import Extent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASK_SEGMENTS = 1000
_TASK_BYTES = 256 << 20
"""A task's segments have so many bytes, or there are a thousand of them."""


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    fast: bool = False,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = False,
    timer: Callable[[], float] = time.perf_counter,
) -> VerifyReport:
    """Verify one topic, several, or all that are there.

    `spark` may be None: then all is done in this process. `fast` reads no record and computes no
    CRC. With `dry_run` it does the same: it never writes. Raises `OptionError` for a root that has
    no commit logs, and for a topic that was named and is not there.
    """
    found = find_root(root, storage)
    if found is None:
        raise OptionError(
            f"{root} is no klog root, and verify holds files to a commit log; `klog dump --files "
            "...` checks the segments and indexes of a broker's directory"
        )
    begun = timer()
    named = [topic] if isinstance(topic, str) else topic
    report = VerifyReport(found.given, fast)
    names = [*found.topic_names(), *topics_without_log(found)] if named is None else named
    for name in dict.fromkeys(names):
        report = _with_topic(spark, report, found, storage, name, is_named=named is not None)
    return replace(report, seconds=timer() - begun)


@dataclass(frozen=True, slots=True)
class VerifyTask:
    """Neighbouring segments of a partition, and the number of the first among all of it.

    `cleaned_to` is the offset up to which the partition was compacted. `root` and `storage` are as
    they were given.
    """

    root: str
    storage: Storage
    topic: str
    segments: EntryRows
    first: int
    cleaned_to: int
    fast: bool


def verify_segments(task: VerifyTask) -> NeighbourFacts:
    """Verify the segments of a task.

    One whose files are not there is told without a look at the log as it is now.
    """
    root = open_root(task.root, task.storage)
    facts = NeighbourFacts(int(task.segments[0]["base_offset"]), task.cleaned_to)
    for number, entry in enumerate(task.segments, task.first):
        found = verify_segment(root.store, root.path, task.topic, entry, fast=task.fast)
        facts.add(task.topic, number, entry, found)
    return facts


def _with_topic(
    spark: SparkSession | None,
    report: VerifyReport,
    root: KlogRoot,
    storage: Storage,
    topic: str,
    *,
    is_named: bool,
) -> VerifyReport:
    """Verify a topic; one whose log cannot be read is a finding, one that is not there is none."""
    try:
        log = root.log_to_read(topic)
    except OptionError:
        raise
    except KlogError as exc:
        return replace(report, findings=(*report.findings, unreadable_log(topic, exc)))
    verified = verify_log(log)
    report = replace(report, findings=(*report.findings, *verified.findings))
    state = verified.state
    if state is None:
        return report
    if not state.topic_id:
        if is_named and not verified.findings:
            root.load(log)  # raises
        return report
    report = replace(report, versions={**report.versions, topic: state.version})
    report, findings = _with_segments(spark, report, root, storage, topic, state)
    if not report.fast:
        findings += _key_findings(spark, root, storage, topic, state)
    there = _still_there(log, state, findings)
    return replace(
        report,
        findings=(*report.findings, *there),
        moved_on=report.moved_on + len(findings) - len(there),
    )


def _with_segments(
    spark: SparkSession | None,
    report: VerifyReport,
    root: KlogRoot,
    storage: Storage,
    topic: str,
    state: State,
) -> tuple[VerifyReport, list[Finding]]:
    """Verify a topic's segments, and whether those of a partition fit each other."""
    table = state.segments.combine_chunks()
    tasks = _tasks(root, storage, topic, state, fast=report.fast)
    facts = run_tasks(spark, verify_segments, tasks, "verify")
    findings: list[Finding] = []
    for number in range(state.partitions):
        extent = Extent(
            topic,
            number,
            state.log_start[number],
            state.log_end[number],
            state.cleaned_to.get(number, 0),
            tuple(hole for hole in state.holes if hole.partition == number),
        )
        done = put_together(extent, entries.of_partition(table, number), facts)
        findings += done.findings
        report = replace(
            report,
            partitions=report.partitions + 1,
            segments=report.segments + done.segments,
            batches=report.batches + done.batches,
            records=report.records + done.records,
            size_bytes=report.size_bytes + done.size_bytes,
        )
    return report, findings


def _tasks(
    root: KlogRoot, storage: Storage, topic: str, state: State, *, fast: bool
) -> Coming[VerifyTask]:
    """Cut a topic's segments, in their order, into tasks of one partition each."""
    table = state.segments.combine_chunks()
    bounds = list(_bounds(table))
    segments = EntryRows(table)

    def made() -> Iterator[VerifyTask]:
        for first, begin, end in bounds:
            own = segments.part(begin, end)
            cleaned_to = state.cleaned_to.get(own[0]["partition"], 0)
            yield VerifyTask(root.given, storage, topic, own, begin - first, cleaned_to, fast)

    return Coming(made(), len(bounds))


def _bounds(table: pa.Table) -> Iterator[tuple[int, int, int]]:
    """Give of each task where its partition begins, and where it begins and ends itself."""
    partitions, sizes = table["partition"].to_numpy(), table["size_bytes"].to_numpy()
    begins = np.flatnonzero(np.append(True, partitions[1:] != partitions[:-1]))
    bounds = [*begins.tolist(), len(partitions)] if len(partitions) else []
    for first, behind in pairwise(bounds):
        begin, size_bytes = first, 0
        for number in range(first, behind):
            if size_bytes >= _TASK_BYTES or number - begin >= _TASK_SEGMENTS:
                yield first, begin, number
                begin, size_bytes = number, 0
            size_bytes += int(sizes[number])
        yield first, begin, behind


def _key_findings(
    spark: SparkSession | None, root: KlogRoot, storage: Storage, topic: str, state: State
) -> Iterator[Finding]:
    """Look in what was compacted for records that a later one of their key replaces."""
    table = state.segments.combine_chunks()
    begun: list[UniqueTask] = []

    def made() -> Iterator[UniqueTask]:
        for number, cleaned_to in state.cleaned_to.items():
            own = entries.of_partition(table, number)
            below = own.filter(pc.less_equal(own["next_offset"], cleaned_to))
            if len(below):
                start = state.log_start[number]
                begun.append(
                    UniqueTask(root.given, storage, topic, number, EntryRows(below), start)
                )
                yield begun[-1]

    tasks = Coming(made(), len(state.cleaned_to))
    for found in try_tasks(spark, superseded, tasks, "verify keys"):
        task = begun.pop(0)
        if isinstance(found, Failed):
            yield unknown(task, found.error)
        else:
            yield from found


def _still_there(log: TopicLog, state: State, findings: list[Finding]) -> list[Finding]:
    """Leave out what is said of files that were gone and that the log as it is now has no more."""
    missing = {_log_file(one) for one in findings if one.kind == "missing"}
    if not missing:
        return findings
    try:
        now = log.load(state)
    except KlogError as exc:
        return [*findings, unreadable_log(log.paths.topic, exc)]
    live = now.live.present(missing) if now.topic_id == state.topic_id else set()
    gone = missing - live
    return [one for one in findings if one.kind != "missing" or _log_file(one) not in gone]


def _log_file(finding: Finding) -> str:
    """Give the segment that a finding's file belongs to."""
    return f"{(finding.file or '').rsplit('.', 1)[0]}.log"


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fast", action="store_true", help="headers only: no CRC, no record")


def _run(spark: SparkSession | None, given: argparse.Namespace) -> VerifyReport:
    return run(spark, given.root, given.topic, fast=given.fast, dry_run=given.dry_run)


COMMAND = Command(
    "verify",
    "hold a root's files to its commit logs",
    """\
Each finding is a line that says where it is, what it is and what to do; the last line counts. All
are told, and nothing is written. docs/verify.md says what each kind means. A broker's directory has
no commit log to be held to: `klog dump` checks its segments and indexes.""",
    _add_options,
    _run,
    dry_run_help="the same as without it: verify only reads",
)
