"""Adopt a broker's log directory: it becomes a klog root, and no byte of its logs is touched.

The rule: each topic gets one commit that names the broker's files where they lie, with what was
read of them: sizes, checksums, records, times, producers, and which transactions were aborted. What
a torn append left behind the end is left there, and not counted. `_klog/format.json` comes last
(`connector/log/adoption.py`), so that readers see the broker's directory or all that was adopted.
A topic that was adopted already is left: whoever was killed runs it again. (docs/adopt.md.)
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("adopt")

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klog.connector.log import adoption
from klog.connector.log.adoption import BrokersPartition
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.commit import Topic
from klog.connector.log.raw import RawLook, RawRoot
from klog.connector.log.root import KlogRoot, find_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt
from klog.connector.store.schemes import store_for
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, OptionError
from klog.jobs.adopting.broker import (
    BrokerTopic,
    broker_topics,
    cluster_id_of,
    counted_segments,
    left_by_a_broker,
)
from klog.jobs.adopting.planning import (
    add_common_options,
    config_of,
    configs_of,
    scan_tasks,
    taken_of,
    waves,
)
from klog.jobs.adopting.reading import scan
from klog.jobs.adopting.report import AdoptedPartition, AdoptReport
from klog.jobs.command import Command
from klog.jobs.tasks import run_tasks
from klog.logformat.names import segment_name
from klog.logformat.topic_config import klog_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALREADY = (
    "it is a klog root already, and a broker left nothing in it that was not adopted: nothing was "
    "to be done"
)
NOTE = (
    "a broker does not start on this directory again until _klog/ is moved out of it; what klog "
    "writes here, it would not see"
)


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    config: Mapping[str, str] | None = None,
    open_transactions: str | None = None,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = False,
) -> AdoptReport:
    """Adopt one topic of a broker's log directory, several, or all.

    `spark` may be None: then all is done in this process. `config` is given to each topic, for the
    directory does not say what they had. `open_transactions` says what became of transactions that
    no marker ends, `abort` or `commit`. A dry run finds where logs end, and reads no more. Raises
    `OptionError` for a topic that is not there, `KlogError` for what cannot be adopted: a directory
    that a broker has, a topic that is not whole, an open transaction, an unfinished cleaning; and
    `CorruptFileError` for a damaged segment.
    """
    begun = time.monotonic()
    configs = klog_topic_config(config or {})
    named = [topic] if isinstance(topic, str) else topic
    raw = RawRoot([root], storage, beside_commits=True)
    finished, look = find_root(root, storage), raw.look()
    own: list[AdoptedPartition] = []
    if finished is not None:
        brokers = left_by_a_broker(look)
        own = _own_topics(finished, look, brokers, named)
        look = brokers
        named = None if named is None else [name for name in named if name in look.topics]
    topics = broker_topics(raw, look, named, open_transactions)
    if not topics and finished is None:
        raise OptionError(f"{root} has no topics of a broker's; there is nothing to adopt")
    _refuse_unfinished(topics)
    cluster_id = cluster_id_of(*store_for(root, storage)) or random_uuid()
    start = adoption.foresee if dry_run else adoption.begin
    target = start(root, cluster_id, storage)
    job = _Adoption(target, raw, configs, open_transactions, storage, finished is not None)
    if dry_run:
        done = list(job.plan(topics, is_named=named is not None))
    else:
        done = list(job.adopt(spark, topics, is_named=named is not None))
        # A broker that was started meanwhile has changed them.
        broker_topics(raw, raw.look(), [], None)
        adoption.finish(target, storage)
    note = ALREADY if finished is not None and all(one.left for one in done) else NOTE
    seconds = time.monotonic() - begun
    return AdoptReport(root, dry_run, "Adopt", (*done, *own), note, seconds)


def _own_topics(
    root: KlogRoot, look: RawLook, brokers: RawLook, named: Sequence[str] | None
) -> list[AdoptedPartition]:
    """Tell of the directories of a klog root in which no broker left anything: nothing is done.

    Those of a topic are told as such. Others are what a failed write left, and no topic. Raises
    `OptionError` where one of these was named, or a topic that is not there.
    """
    own: list[AdoptedPartition] = []
    others = look.topics.keys() - brokers.topics.keys()
    for topic in sorted(others) if named is None else named:
        if topic in brokers.topics:
            continue
        if root.log_to_read(topic).load().version < 0:
            if named is None:
                continue
            raise OptionError(
                f"there is no topic {topic} of a broker's in {root.given}, which is a klog root "
                "already: `klog topics list` names its topics. A directory of that name without a "
                "broker's files is what a failed write left"
            )
        there = [name for name in look.listed if name.topic == topic]
        left = "no broker left anything of it"
        own += [AdoptedPartition.planned(log, left) for log in look.open(there).values()]
    return own


@dataclass(frozen=True, slots=True)
class _Adoption:
    """The adoption of one directory; `is_root` tells that it is a klog root already."""

    root: KlogRoot
    raw: RawRoot
    config: Mapping[str, str]
    open_transactions: str | None
    storage: Storage
    is_root: bool

    def plan(self, topics: Sequence[BrokerTopic], *, is_named: bool) -> Iterator[AdoptedPartition]:
        """Say what would become of each partition, as `adopt` decides it; nothing is written."""
        for one in topics:
            left = self._left(one, is_named=is_named)
            yield from (AdoptedPartition.planned(log, left) for log in one.logs)

    def adopt(
        self, spark: SparkSession | None, topics: Sequence[BrokerTopic], *, is_named: bool
    ) -> Iterator[AdoptedPartition]:
        """Adopt topics, and give what became of each partition."""
        for wave in waves(topics):
            left = {one.name: self._left(one, is_named=is_named) for one in wave}
            todo = [one for one in wave if not left[one.name]]
            logs = [log for one in todo for log in one.logs]
            tasks = [task for log in logs for task in scan_tasks(log, self.storage)]
            scanned = run_tasks(spark, scan, tasks, "adopt")
            for one in wave:
                if left[one.name]:
                    yield from (AdoptedPartition.planned(log, left[one.name]) for log in one.logs)
                    continue
                taken = [taken_of(one, log, scanned, self.open_transactions) for log in one.logs]
                self._commit(one, taken)
                for log, each in zip(one.logs, taken, strict=True):
                    yield AdoptedPartition.planned(log).done(each)

    def _left(self, topic: BrokerTopic, *, is_named: bool) -> str:
        """Say why a topic needs no commit; nothing for one that does. Raises where it cannot be."""
        state = self.root.log_to_write(topic.name).load()
        if state.version < 0:
            return ""
        if not state.topic_id:
            if is_named:
                raise OptionError(
                    f"topic {topic.name} was adopted and then deleted: its files are garbage, and "
                    "go with the next vacuum"
                )
            return "it was deleted"
        if self.is_root and not topic.topic_id and not any(map(counted_segments, topic.logs)):
            return "no broker left anything of it"
        if topic.topic_id not in ("", state.topic_id) or not self._has_files(state, topic):
            step = (
                "its name is taken: adopt it in a directory of its own"
                if self.is_root
                else "something changed the directory since: move _klog/ away, and adopt it anew"
            )
            raise KlogError(
                f"topic {topic.name} is in {self.root.given} with id {state.topic_id}, and what "
                f"the broker left is not what was adopted; {step}"
            )
        return "it was adopted before"

    def _has_files(self, state: State, topic: BrokerTopic) -> bool:
        """Tell whether a topic was made of these files; those of a klog root may be gone again."""
        wanted = {
            f"{log.name}/{one.segment.log.name}": one.size_bytes
            for log in topic.logs
            for one in counted_segments(log)
        }
        live = state.segments.select(["file", "size_bytes"]).to_pylist()
        sizes = {one["file"]: one["size_bytes"] for one in live}
        if not self.is_root:
            return wanted == sizes
        # Of a topic that went on some files were taken out since.
        known = sizes.keys() | set(state.removed["file"].to_pylist())
        is_it = bool(topic.topic_id) or not known.isdisjoint(wanted)
        return is_it and all(sizes.get(file, size) == size for file, size in wanted.items())

    def _commit(self, topic: BrokerTopic, taken: Sequence[BrokersPartition]) -> None:
        log = self.root.new_log(topic.name)
        made = Topic(topic.topic_id or random_uuid(), len(taken))
        build = adoption.adopt(made, config_of(topic, self.config), taken)
        log.commit(log.load(), build, Attempt(random_uuid(), "adopt", this_engine()))


def _refuse_unfinished(topics: Sequence[BrokerTopic]) -> None:
    """Refuse segments that a broker would rename as it starts: files stay under their names."""
    for topic in topics:
        for log in topic.logs:
            for one in counted_segments(log):
                found = one.segment.log
                if found.name != segment_name(one.segment.base_offset, "log"):
                    raise KlogError(
                        f"{found.path}: a cleaning of the broker's was cut short there. Start the "
                        "broker and stop it cleanly, which ends it, or copy the topic with "
                        "`klog import-log`"
                    )


def _run(spark: SparkSession | None, given: argparse.Namespace) -> AdoptReport:
    return run(
        spark,
        given.root,
        given.topic,
        config=configs_of(given.config),
        open_transactions=given.open_transactions,
        dry_run=given.dry_run,
    )


COMMAND = Command(
    "adopt",
    "make a klog root of a broker's log directory, as it lies",
    """\
The broker has to be stopped. No file of its is copied or changed: everything that klog adds lies in
_klog/ until topics are written to. A broker does not start there again until _klog/ is moved away.
docs/adopt.md says more.""",
    add_common_options,
    _run,
)
