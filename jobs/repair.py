"""Repair a topic's log of which commits were lost at rest: put what stands for them.

The rule: a dry run is what it does unless told otherwise. Repair never overwrites, renumbers or
deletes, and what is killed is run again: each put is right on its own, and the next run goes on.
What another put meanwhile is planned again. `repairing/planning.py` says what is put.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("repair")

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from klog.connector.log import commit as commits
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.cleaning import is_durable
from klog.connector.log.commit import hole_to_json
from klog.connector.log.max_sizes import read_named
from klog.connector.log.topic_log import TopicLog
from klog.connector.store.contract import Put
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, without_passwords
from klog.jobs.choosing import open_root
from klog.jobs.command import DONE, REFUSED, Command
from klog.jobs.printing import labelled
from klog.jobs.repairing.planning import Plan, Planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PLANS = 100
"""Others may put what was planned so often before a repair gives up."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair put, or would put, by topic."""

    root: str
    dry_run: bool
    topics: dict[str, Plan]
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return 1 if a topic cannot be repaired, or was not because this was a dry run."""
        plans = self.topics.values()
        undone = any(plan.problem or (self.dry_run and plan.lost) for plan in plans)
        return REFUSED if undone else DONE

    def lines(self) -> Iterator[str]:
        """Return the lines of each topic, and one that sums up."""
        for topic, plan in self.topics.items():
            for one in plan.lost:
                yield labelled({"Topic": topic, "Lost": str(one)})
            if plan.problem:
                yield labelled({"Topic": topic, "Error": plan.problem})
            if plan.checkpoint is not None:
                yield labelled({"Topic": topic, "Boundary": plan.checkpoint.version})
            for commit in plan.commits:
                yield labelled({"Topic": topic, "Commit": commit.version})
                for entry in commit.actions.add:
                    offsets = f"{entry['base_offset']} to {entry['next_offset'] - 1}"
                    yield f"\t{labelled({'Added': entry['file'], 'Offsets': offsets})}"
                for hole in commit.actions.holes:
                    offsets = f"{hole.base_offset} to {hole.next_offset - 1}"
                    yield f"\t{labelled({'Hole': hole.partition, 'Offsets': offsets})}"
        if not any(plan.lost or plan.problem for plan in self.topics.values()):
            yield "Nothing is lost."
        elif self.dry_run:
            yield "This was a dry run: give --execute to put what is named."

    def as_json(self) -> dict[str, Any]:
        """Return the report for machines, in camelCase."""
        return {
            "root": without_passwords(self.root),
            "dryRun": self.dry_run,
            "topics": {topic: _as_json(plan) for topic, plan in self.topics.items()},
            "seconds": round(self.seconds, 3),
        }


def _as_json(plan: Plan) -> dict[str, Any]:
    said = [
        {
            "version": commit.version,
            "added": [entry["file"] for entry in commit.actions.add],
            "holes": [hole_to_json(hole) for hole in commit.actions.holes],
        }
        for commit in plan.commits
    ]
    return {
        "lost": [{"first": one.first, "last": one.last} for one in plan.lost],
        "boundary": None if plan.checkpoint is None else plan.checkpoint.version,
        "commits": said,
        "error": plan.problem or None,
    }


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    use: Sequence[str] = (),
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = True,
) -> RepairReport:
    """Repair one topic, several, or all; all is done in this process.

    `use` are segments that were chosen to be added, in the order of the log. Raises `OptionError`
    for a root without commit logs.
    """
    begun = time.monotonic()
    found = open_root(root, storage)
    named = [topic] if isinstance(topic, str) else topic
    plans = {}
    for name in dict.fromkeys(found.topic_names() if named is None else named):
        log = found.log_to_read(name) if dry_run else found.log_to_write(name)
        own = [file for file in use if file.startswith(f"{name}-")]
        plans[name] = repair_topic(log, own, dry_run=dry_run)
    return RepairReport(found.given, dry_run, plans, time.monotonic() - begun)


def repair_topic(log: TopicLog, use: Sequence[str] = (), *, dry_run: bool = True) -> Plan:
    """Plan the repair of a topic's log, and put what is planned unless it is a dry run."""
    for tries in range(MAX_PLANS):
        plan = Planner(log, random_uuid, this_engine(), use).plan()
        if dry_run or plan.problem or not plan.lost or _put(log, plan):
            return plan
        log.wait(tries + 1)
    raise KlogError(f"{log.paths.directory}: others changed this log meanwhile; run repair again")


def _put(log: TopicLog, plan: Plan) -> bool:
    """Put what is planned; false if another's file was there, so that it is planned again."""
    if plan.checkpoint is not None:
        name = plan.checkpoint
        path = log.paths.checkpoint(name)
        if not is_durable(log, path, partial(read_named, log.store, path, name)):
            return False
        path = log.paths.boundary(name.version)
        if log.store.put_if_absent(path, str(name).encode()) is not Put.CREATED:
            return False
    for commit in plan.commits:
        data = commits.encode(commit)
        commits.decode(data, log.paths.topic, commit.version)
        path = log.paths.commit(commit.version)
        if log.store.put_if_absent(path, data) is not Put.CREATED:
            return False
    log.load()
    return True


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--use", action="append", default=[], metavar="FILE", help="add this segment again"
    )
    parser.add_argument("--execute", action="store_true", help="put; without it, only tell")


def _run(spark: SparkSession | None, given: argparse.Namespace) -> RepairReport:
    if given.execute and given.dry_run:
        raise argparse.ArgumentError(
            None, "argument --dry-run: not allowed with argument --execute"
        )
    return run(spark, given.root, given.topic, use=given.use, dry_run=not given.execute)


COMMAND = Command(
    "repair",
    "put what stands for lost commits; a dry run unless told otherwise",
    """\
Restore lost commits from a copy if there is one. Repair is for the case that there is none:
  boundary    a complete checkpoint at or above the lost commits stands for them
  commit      adds segments that fill the missing offsets exactly, or declares a hole
It never overwrites, renumbers or deletes. Stop all writers of the topic first. Exit code 1: a dry
run found lost commits, or a topic cannot be repaired.""",
    _add_options,
    _run,
)
