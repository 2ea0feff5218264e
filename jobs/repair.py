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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from klog.connector.log import commit as commits
from klog.connector.log import description
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.cleaning import is_durable
from klog.connector.log.commit import MAX_PARTITIONS, Commit
from klog.connector.log.max_sizes import read_named
from klog.connector.log.paths import segment_path
from klog.connector.log.root import FORMAT_FILE, find_root_to_repair
from klog.connector.log.topic_log import TopicLog, with_sidecar
from klog.connector.log.topics import NO_CONFIG
from klog.connector.log.traces import topics_without_log
from klog.connector.store.contract import Put, WritableStore
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, OptionError
from klog.jobs.adopting.broker import cluster_id_of
from klog.jobs.choosing import not_a_klog_root, open_root
from klog.jobs.command import Command, name_and_value
from klog.jobs.repairing.filling import Choices
from klog.jobs.repairing.plan import Plan
from klog.jobs.repairing.planning import Planner
from klog.jobs.repairing.repair_report import RepairReport
from klog.jobs.repairing.topic_changes import NEW_ID
from klog.logformat.metadata import is_topic_id
from klog.logformat.topic_config import klog_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_CHOICES = Choices()
MAX_PLANS = 100
"""Others may put what was planned so often before a repair gives up."""


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    use: Sequence[str] = (),
    declare_holes: bool = False,
    discard_lost: bool = False,
    topic_id: str = "",
    partitions: int = 0,
    config: Mapping[str, str] = NO_CONFIG,
    cluster_id: str = "",
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = True,
) -> RepairReport:
    """Repair one topic, several, or all, and the root itself; all is done in this process.

    `use` to `config` are what only the user knows of a topic (`filling.Choices`); `cluster_id` is
    for a root that has lost its `format.json`: by default that of `meta.properties`, or a new one.
    Raises `OptionError` for a root without commit logs, and for a choice about one topic where
    several are repaired.
    """
    begun = time.monotonic()
    choices = Choices(use, declare_holes, discard_lost, topic_id, partitions, config)

    def known_cluster_id(store: WritableStore, path: str) -> str:
        return cluster_id or cluster_id_of(store, path) or random_uuid()

    opened = find_root_to_repair(root, known_cluster_id, storage)
    if opened is None:
        raise not_a_klog_root(root)
    found, lost_format = opened
    named = [topic] if isinstance(topic, str) else topic
    known = [*found.topic_names(), *topics_without_log(found)]
    names = list(dict.fromkeys(known if named is None else named))
    for name in set(names) - set(known):
        found.load(found.log_to_read(name))  # raises
    _check_choices(choices, names)
    if cluster_id and not lost_format:
        raise OptionError(f"--cluster-id: {found.path}/{FORMAT_FILE} is there, and has one")
    if lost_format and not dry_run:
        found.store.put_if_absent(f"{found.path}/{FORMAT_FILE}", lost_format)
        found = open_root(root, storage)  # What is there counts, whoever put it.

    def of_topic(name: str) -> Choices:
        return replace(choices, use=[file for file in use if _topic_of(file) == name])

    plans = {}
    for name in names:
        log = found.log_to_read(name) if dry_run else found.log_to_write(name)
        plans[name] = repair_topic(log, of_topic(name), dry_run=dry_run)
    file = f"{found.path}/{FORMAT_FILE}" if lost_format else ""
    return RepairReport(found.given, dry_run, plans, file, time.monotonic() - begun)


def _check_choices(choices: Choices, names: Sequence[str]) -> None:
    """Raise `OptionError` for what is wrong in itself."""
    of_one = {
        "topic-id": choices.topic_id,
        "partitions": choices.partitions,
        "config": choices.config,
        "declare-holes": choices.declare_holes,
        "discard-lost": choices.discard_lost,
    }
    given = [f"--{name}" for name, value in of_one.items() if value]
    if given and len(names) != 1:
        raise OptionError(f"{', '.join(given)}: name the one topic that is meant with --topic")
    if choices.topic_id not in ("", NEW_ID) and not is_topic_id(choices.topic_id):
        raise OptionError(
            f"--topic-id {choices.topic_id!r} is no topic id: 22 characters of URL-safe base64, or "
            f"{NEW_ID}"
        )
    for file in choices.use:
        if _topic_of(file) not in names:
            raise OptionError(
                f"--use {file!r} is not a segment of the topics to repair: give its path below the "
                "root, such as orders-0/00000000000000000000-0000000000-0123456789abcdef.log"
            )
    if len(set(choices.use)) < len(choices.use):
        raise OptionError("--use: a segment is named twice")
    if not 0 <= choices.partitions <= MAX_PARTITIONS:
        raise OptionError(f"--partitions {choices.partitions}: from 1 to {MAX_PARTITIONS:,}")
    klog_topic_config(choices.config)


def _topic_of(file: str) -> str:
    path = segment_path(file)
    return "" if path is None else path.topic


def repair_topic(log: TopicLog, choices: Choices = NO_CHOICES, *, dry_run: bool = True) -> Plan:
    """Plan the repair of a topic's log, and put what is planned unless it is a dry run.

    What fails, before or after something was put, is the plan's `problem`.
    """
    for tries in range(MAX_PLANS):
        plan = Planner(log, random_uuid, this_engine(), choices).plan()
        if dry_run or plan.problem or not plan.is_needed:
            return plan
        try:
            if _put(log, plan):
                return plan
        except (KlogError, OSError) as exc:
            return replace(plan, problem=f"{exc}. Something may have been put: run repair again")
        log.wait(tries + 1)
    return Plan(problem=f"{log.paths.directory}: others changed this log meanwhile; run it again")


def _put(log: TopicLog, plan: Plan) -> bool:
    """Put what is planned; false if another's file was there, so that it is planned again.

    The fence comes first: from then on no writer goes on from a state that the repaired log does
    not have.
    """
    if plan.description:
        # Every klog wrote the same, so whoever puts it puts what is lost.
        log.store.put_if_absent(plan.description, description.encode({}))
    if plan.fence is not None and not _is_put(log, plan.fence):
        return False
    if plan.checkpoint is not None:
        name = plan.checkpoint
        path = log.paths.checkpoint(name)
        if not is_durable(log, path, partial(read_named, log.store, path, name)):
            return False
        path = log.paths.boundary(name.version)
        if log.store.put_if_absent(path, str(name).encode()) is not Put.CREATED:
            return False
    if not all(_is_put(log, commit) for commit in plan.commits):
        return False
    log.load()
    return True


def _is_put(log: TopicLog, commit: Commit) -> bool:
    commit, beside = with_sidecar(commit)
    data = commits.encode(commit)
    commits.decode(data, log.paths.topic, commit.version)  # What no reader takes is not put.
    if beside is not None:
        log.store.put(log.paths.sidecar(beside[0]), [beside[1]])
    return log.store.put_if_absent(log.paths.commit(commit.version), data) is Put.CREATED


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--execute", action="store_true", help="put; without it, only tell")
    parser.add_argument(
        "--use", action="append", default=[], metavar="FILE", help="add this segment again"
    )
    parser.add_argument(
        "--declare-holes", action="store_true", help="add nothing else: the rest is a hole"
    )
    parser.add_argument(
        "--discard-lost",
        action="store_true",
        help="go on where the last commits are lost too, which are not to come back",
    )
    parser.add_argument(
        "--topic-id",
        default="",
        metavar="ID",
        help=f"of a topic without its first commit; {NEW_ID}: make one",
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=0,
        metavar="N",
        help="how many a lost commit set",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=name_and_value,
        metavar="NAME=VALUE",
        help="a config of a topic without its first commit; by default nothing expires",
    )
    parser.add_argument(
        "--cluster-id", default="", metavar="ID", help="of a root without its format.json"
    )


def _run(spark: SparkSession | None, given: argparse.Namespace) -> RepairReport:
    if given.execute and given.dry_run:
        raise argparse.ArgumentError(
            None, "argument --dry-run: not allowed with argument --execute"
        )
    return run(
        spark,
        given.root,
        given.topic,
        use=given.use,
        declare_holes=given.declare_holes,
        discard_lost=given.discard_lost,
        topic_id=given.topic_id,
        partitions=given.partitions,
        config=dict(given.config),
        cluster_id=given.cluster_id,
        dry_run=not given.execute,
    )


COMMAND = Command(
    "repair",
    "put what stands for lost commits; a dry run unless told otherwise",
    """\
Restore lost files from a copy if there is one. Repair is for the case that there is none:
  boundary     a complete checkpoint at or above the lost commits stands for them
  commit       adds segments that fill the missing offsets exactly, or declares a hole
  topic.json, format.json   are put again
It never overwrites, renumbers or deletes. Stop all writers of the topic first. Exit code 1: a dry
run found something lost, or a topic cannot be repaired.""",
    _add_options,
    _run,
)
