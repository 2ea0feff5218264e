"""Import a broker's log directories: copy what they hold into a klog root, from any store to any.

The rule: batches are copied as they are, a segment of the broker's to one of klog's; only names and
indexes are made anew. Each partition gets one commit, and the topic keeps its id, so that whoever
was killed runs it again: what has its commit is not copied again. A topic of the same name that is
another one is refused, and so is one that was written to since it was imported and does not reach
as far as the broker's. (docs/adopt.md.)
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("import_log")

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.connector.log import adoption, entries
from klog.connector.log.adoption import BrokersPartition
from klog.connector.log.author import random_uuid, this_engine
from klog.connector.log.checkpointing import CHECKPOINTER
from klog.connector.log.commit import Topic
from klog.connector.log.partition import RawPartition
from klog.connector.log.raw import RawRoot
from klog.connector.log.root import KlogRoot, find_root, make_root
from klog.connector.log.state import State
from klog.connector.log.topic_log import Attempt, TopicLog
from klog.connector.log.topics import refuse_collision
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import CommitConflictError, KlogError, OptionError, without_passwords
from klog.jobs.adopting.broker import BrokerTopic, broker_topics, counted_segments
from klog.jobs.adopting.planning import (
    add_common_options,
    config_of,
    configs_of,
    scan_tasks,
    taken_of,
    waves,
)
from klog.jobs.adopting.reading import CopyTask, copy
from klog.jobs.adopting.report import AdoptedPartition, AdoptReport
from klog.jobs.command import Command
from klog.jobs.failures import Failure
from klog.jobs.tasks import Failed, together, try_tasks
from klog.logformat.topic_config import klog_topic_config, read_topic_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK = "`klog dump --files` tells what is wrong with a file; what was imported is not copied again"


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None = None,
    *,
    source: str | Sequence[str],
    config: Mapping[str, str] | None = None,
    open_transactions: str | None = None,
    storage: Storage = NOTHING_GIVEN,
    dry_run: bool = False,
) -> AdoptReport:
    """Import one topic of a broker's log directories, several, or all, into a klog root.

    `source` is a directory, or several of one broker; the root is made if it is not there. `spark`
    may be None: then all is done in this process. `config` and `open_transactions` are as
    `adopt.run` has them. A dry run finds where logs end, and reads no more. Raises `OptionError`
    for a topic that is not there, and `KlogError` for what cannot be imported. A partition of which
    a segment cannot be read or copied is told in the report, and the others are imported.
    """
    begun = time.monotonic()
    configs = klog_topic_config(config or {})
    directories = [source] if isinstance(source, str) else list(source)
    for directory in directories:
        if find_root(directory, storage) is not None:
            raise OptionError(
                f"{directory} is a klog root; `klog export-log` makes a broker's directory of it"
            )
    named = [topic] if isinstance(topic, str) else topic
    raw = RawRoot(directories, storage)
    topics = broker_topics(raw, raw.look(), named, open_transactions)
    found = find_root(root, storage) if dry_run else make_root(root, random_uuid(), storage)
    job = _Import(found, configs, open_transactions, storage)
    done = tuple(job.plan(topics) if dry_run else job.take(spark, topics))
    note = without_passwords(f"from {', '.join(directories)}")
    return AdoptReport(root, dry_run, "Import", done, note, time.monotonic() - begun)


@dataclass(frozen=True, slots=True)
class _Target:
    """A topic in the klog root: its log, its state as of now, and what it is or is to be."""

    log: TopicLog
    state: State
    made: Topic
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Import:
    """An import to a root; None where a dry run finds none."""

    root: KlogRoot | None
    config: Mapping[str, str]
    open_transactions: str | None
    storage: Storage

    def plan(self, topics: Sequence[BrokerTopic]) -> Iterator[AdoptedPartition]:
        """Say what would become of each partition."""
        for one in topics:
            state = State() if self.root is None else self.root.log_to_read(one.name).load()
            for log in one.logs:
                yield AdoptedPartition.planned(log, _left(state, one, log))

    def take(
        self, spark: SparkSession | None, topics: Sequence[BrokerTopic]
    ) -> Iterator[AdoptedPartition]:
        """Import topics, and give what became of each partition."""
        for wave in waves(topics):
            targets = {one.name: self._target(one) for one in wave}
            left = {
                log.name: _left(targets[one.name].state, one, log)
                for one in wave
                for log in one.logs
            }
            tasks = [
                task
                for one in wave
                for log in one.logs
                if not left[log.name]
                for task in self._tasks(targets[one.name], log)
            ]
            copied = try_tasks(spark, copy, tasks, "import")
            for one in wave:
                target, state = targets[one.name], targets[one.name].state
                for log in one.logs:
                    planned = AdoptedPartition.planned(log, left[log.name])
                    if planned.left:
                        yield planned
                        continue
                    read = together(copied, len(counted_segments(log)))
                    try:
                        if isinstance(read, Failed):
                            raise read.error
                        taken = taken_of(one, log, iter(read), self.open_transactions)
                        state = self._commit(target, state, taken)
                    except OptionError:
                        raise
                    except (KlogError, OSError) as exc:
                        yield replace(planned, failure=Failure.of(exc, one.name, _LOOK))
                    else:
                        yield planned.done(taken)

    def _target(self, topic: BrokerTopic) -> _Target:
        assert self.root is not None
        state = self.root.log_to_write(topic.name).load()
        if not state.topic_id:
            refuse_collision(self.root, topic.name)
        log = self.root.new_log(topic.name)
        made = Topic(state.topic_id or topic.topic_id or random_uuid(), len(topic.logs))
        return _Target(log, state, made, state.config or config_of(topic, self.config))

    def _tasks(self, target: _Target, log: RawPartition) -> Iterator[CopyTask]:
        assert self.root is not None
        interval_bytes = read_topic_config(target.config).number("index.interval.bytes")
        for task in scan_tasks(log, self.storage):
            yield CopyTask(task, self.root.given, max(target.state.version, 0), interval_bytes)

    def _commit(self, target: _Target, state: State, taken: BrokersPartition) -> State:
        birth = max(target.state.version, 0)
        build = adoption.take_in(target.made, target.config, birth, taken)
        attempt = Attempt(random_uuid(), "adopt", this_engine())
        try:
            state = target.log.commit(state, build, attempt)
        except CommitConflictError as exc:
            raise CommitConflictError(f"topic {target.log.paths.topic}: {exc}") from exc
        return CHECKPOINTER.offer(target.log, state)


def _left(state: State, topic: BrokerTopic, log: RawPartition) -> str:
    """Say why a partition need not be copied; nothing for one that has to be.

    Raises `KlogError` where what is in the root is something else.
    """
    number = log.name.partition
    if not state.topic_id:
        return ""
    if topic.topic_id not in ("", state.topic_id) or len(topic.logs) > state.partitions:
        raise KlogError(
            f"topic {topic.name} is in the root already, with id {state.topic_id} and "
            f"{state.partitions} partitions, and the broker's has id {topic.topic_id or 'none'} "
            f"and {len(topic.logs)}; import it into another root"
        )
    if not state.log_end[number]:
        return "" if log.log_end else "it was imported before"
    if log.log_end and not state.log_start[number] and _is_written(state, number):
        raise KlogError(
            f"{log.name} was written to before it was imported, and an import comes first: import "
            "it into another root"
        )
    if not topic.topic_id and not _has_segments(state, log):
        raise KlogError(
            f"{log.name} is in the root already, with other segments, and the broker's directory "
            "does not say the topic's id; import it into another root"
        )
    if state.log_end[number] < log.log_end:
        raise KlogError(
            f"{log.name} was imported up to offset {state.log_end[number]}, and the broker's ends "
            f"at {log.log_end} now; import it anew, into another root"
        )
    return "it was imported before"


def _is_written(state: State, partition: int) -> bool:
    """Tell whether the first segment of a partition is one that klog's own writers made."""
    own = entries.of_partition(state.segments.combine_chunks(), partition)
    return bool(len(own)) and own["origin"][0].as_py() == "append"


def _has_segments(state: State, log: RawPartition) -> bool:
    """Tell whether a partition has the segments that an import of this one makes."""
    own = entries.of_partition(state.segments.combine_chunks(), log.name.partition)
    there = {(one["base_offset"], one["size_bytes"]) for one in own.to_pylist()}
    wanted = {(one.segment.base_offset, one.size_bytes) for one in counted_segments(log)}
    return wanted <= there


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        action="append",
        required=True,
        metavar="DIR",
        help="a broker's log directory, on any store; repeatable for all those of one broker",
    )
    add_common_options(parser)


def _run(spark: SparkSession | None, given: argparse.Namespace) -> AdoptReport:
    return run(
        spark,
        given.root,
        given.topic,
        source=given.source,
        config=configs_of(given.config),
        open_transactions=given.open_transactions,
        dry_run=given.dry_run,
    )


COMMAND = Command(
    "import-log",
    "copy a broker's log directory into a klog root, from any store to any",
    """\
Bytes are copied; offsets, times, headers, producers and transactions stay. The root is made if it
is not there. What was imported is not copied again. docs/adopt.md says more.""",
    _add_options,
    _run,
)
