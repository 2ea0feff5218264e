"""Export topics as the directories that a broker mounts as its own (docs/export.md).

The rule: all of the partitions asked for are there in the end, or none of them is. Each is read as
of the version of its topic that the job found as it began, copied on its own and synced; only then
do they get their names.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.start import start

    start("export_log")

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from klog.connector.log.committed import CommittedLook, CommittedPartition, CommittedRoot
from klog.connector.log.partition import TopicPartition
from klog.connector.log.root import KlogRoot, find_root, now_ms
from klog.connector.sink.settings import read_settings
from klog.connector.store.storage import NOTHING_GIVEN, Storage
from klog.errors import KlogError, OptionError
from klog.jobs.choosing import camel_case
from klog.jobs.command import DONE, Command
from klog.jobs.entry_rows import EntryRows
from klog.jobs.export_directory import ExportDirectory, export_directory
from klog.jobs.export_partition import ExportedPartition, Staged, planned, stage_partition
from klog.jobs.printing import labelled, printable
from klog.jobs.tasks import run_tasks
from klog.logformat.metadata import is_topic_id
from klog.logformat.rolling import RollLimits
from klog.logformat.time_index import ENTRY as TIME_ENTRY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUMMED = ("segments", "records", "size_bytes", "shifted", "ended")
END = "end"
"""What `open_transactions` may be: their markers are written behind the log."""


@dataclass(frozen=True, slots=True)
class ExportLogReport:
    """What an export did, or would do."""

    to: str
    dry_run: bool
    seconds: float
    partitions: tuple[ExportedPartition, ...]

    def total(self, column: str) -> int:
        """Sum a column of the partitions, of those in `_SUMMED`."""
        return sum(getattr(one, column) for one in self.partitions)

    @property
    def exit_code(self) -> int:
        """Give 0: an export is done or an error."""
        return DONE

    def lines(self) -> Iterator[str]:
        """Give a line a partition, and one of all."""
        for one in self.partitions:
            yield labelled(
                {
                    "Topic": one.topic,
                    "Partition": one.partition,
                    "LogStart": one.log_start,
                    "LogEnd": one.log_end,
                    "Segments": one.segments,
                    "Records": one.records,
                    "Bytes": one.size_bytes,
                    "Shifted": one.shifted,
                    "Ended": one.ended or None,
                }
            )
        done = "Would export" if self.dry_run else "Exported"
        what = (
            f"{len(self.partitions):,} partitions, {self.total('segments'):,} segments, "
            f"{self.total('records'):,} records, {self.total('size_bytes'):,} bytes to {self.to}"
        )
        shifted = f", {self.total('shifted'):,} segments shifted" if self.total("shifted") else ""
        shifted += f", {self.total('ended'):,} transactions ended" if self.total("ended") else ""
        took = "" if self.dry_run else f" in {self.seconds:.1f} s"
        yield printable(f"{done} {what}{shifted}{took}.")

    def as_json(self) -> dict[str, Any]:
        """Give the report for machines, in camelCase."""
        return {
            "to": self.to,
            "dryRun": self.dry_run,
            "seconds": round(self.seconds, 3),
            **camel_case({name: self.total(name) for name in _SUMMED}),
            "partitions": [camel_case(asdict(one)) for one in self.partitions],
        }


def run(
    spark: SparkSession | None,
    root: str,
    topic: str | Sequence[str] | None,
    to: str,
    *,
    open_transactions: str | None = None,
    dry_run: bool = False,
    storage: Storage = NOTHING_GIVEN,
    clock_ms: Callable[[], int] = now_ms,
) -> ExportLogReport:
    """Export a topic of a klog root, or several, or all if none is named, to a local directory.

    Partitions are tasks of `spark` where its tasks run on this machine (a `local` master), for the
    directory is here; all is done in this process elsewhere, and without it. A log that ends within
    a transaction is refused unless `open_transactions` is `end`: then each gets its marker behind
    the log, an abort where the topic's readers do not see its records, else a commit. A dry run
    reads the topics' states, and nothing of their segments. Raises `OptionError` for a root that is
    none, a topic that is not there, a directory that has one of the partitions, and
    a log that ends within a transaction; `CorruptFileError` for a damaged segment, and `KlogError`
    for what else a broker could not go on with.
    """
    begun = time.monotonic()
    if open_transactions not in (None, END):
        raise OptionError(f"open_transactions is {open_transactions!r}; {END} it can be")
    topics = [topic] if isinstance(topic, str) else list(topic or ())
    target = export_directory(to)
    look, found = _partitions(_klog_root(root, storage), topics)
    ids = {one.name: one.topic_id for one in found}
    target.check(ids)
    done = tuple(map(planned, found))
    if not dry_run:
        with target.held():
            target.check(ids)  # Another may have come since.
            end_open = open_transactions == END
            tasks = _tasks(look, found, target, storage, clock_ms(), end_open=end_open)
            ends = _export(_here(spark), found, target, tasks)
        done = tuple(
            replace(one, log_end=end, ended=end - one.log_end)
            for one, end in zip(done, ends, strict=True)
        )
    return ExportLogReport(str(target.path), dry_run, time.monotonic() - begun, done)


def _here(spark: SparkSession | None) -> SparkSession | None:
    """Give the session if its tasks write to the directories of this machine."""
    if spark is None:
        return None
    from pyspark.sql.utils import is_remote

    if is_remote() or not str(spark.sparkContext.master).startswith("local"):
        return None
    return spark


def _tasks(
    look: CommittedLook,
    found: list[CommittedPartition],
    target: ExportDirectory,
    storage: Storage,
    at_ms: int,
    *,
    end_open: bool,
) -> list[ExportTask]:
    limits = {
        topic: _limits(look.state(topic).config) for topic in {one.name.topic for one in found}
    }
    return [
        ExportTask(
            one.root.given,
            storage,
            one.name,
            one.topic_id,
            (one.log_start, one.log_end),
            EntryRows(one.segments),
            target,
            limits[one.name.topic],
            at_ms,
            end_open,
        )
        for one in found
    ]


def _export(
    spark: SparkSession | None,
    found: list[CommittedPartition],
    target: ExportDirectory,
    tasks: list[ExportTask],
) -> list[int]:
    """Stage all partitions, then give them their names; gives their log ends there."""
    try:
        done = list(run_tasks(spark, export, tasks, "export"))
        target.publish({one.name: staged.said for one, staged in zip(found, done, strict=True)})
    except BaseException:
        target.discard(one.name for one in found)
        raise
    for one, staged in zip(found, done, strict=True):
        staged.warn(one.name)
    return [staged.said.log_end for staged in done]


@dataclass(frozen=True, slots=True)
class ExportTask:
    """A partition to be staged; `bounds` are its log start and log end."""

    root: str
    storage: Storage
    name: TopicPartition
    topic_id: str
    bounds: tuple[int, int]
    segments: EntryRows
    target: ExportDirectory
    limits: RollLimits
    now_ms: int
    end_open: bool


def export(task: ExportTask) -> Staged:
    """Stage a partition; raises what `stage_partition` does."""
    root = _klog_root(task.root, task.storage)
    partition = CommittedPartition(
        task.name, task.topic_id, root, *task.bounds, task.segments.table
    )
    return stage_partition(partition, task.target, task.limits, task.now_ms, end_open=task.end_open)


def _limits(config: Mapping[str, str]) -> RollLimits:
    """Give what segments may grow to; an index has to hold one entry of a broker's."""
    limits = read_settings(config, {}).limits
    least = max(limits.segment_index_bytes, TIME_ENTRY.itemsize)
    return replace(limits, segment_index_bytes=least)


def _klog_root(given: str, storage: Storage) -> KlogRoot:
    found = find_root(given, storage)
    if found is None:
        raise OptionError(
            f"{given} is no klog root. A broker's own log directory needs no export: a broker "
            "mounts it as it is"
        )
    return found


def _partitions(
    root: KlogRoot, topics: Sequence[str]
) -> tuple[CommittedLook, list[CommittedPartition]]:
    """Load the topics and give all their partitions; those named have to be there."""
    look = CommittedRoot(root).look()
    for topic in topics:
        if not look.state(topic).topic_id:
            root.load(root.log_to_read(topic))  # It says why.
            raise OptionError(f"topic {topic} was made just now; run it again")
    # Of those that the look lists, it has those that are not deleted.
    wanted = dict.fromkeys(topics or (name for name in look.topics if name in look.topics))
    found = [
        one
        for topic in wanted
        for one in look.open(
            TopicPartition(topic, number) for number in look.topics[topic]
        ).values()
    ]
    if not found:
        raise OptionError(f"{root.given} has no topics; there is nothing to export")
    for topic in wanted:
        _check_topic_id(root, topic, look.state(topic).topic_id)
    return look, found


def _check_topic_id(root: KlogRoot, topic: str, topic_id: str) -> None:
    """Refuse a topic whose id no broker takes: every partition's directory has to name it."""
    if is_topic_id(topic_id):
        return
    raise KlogError(
        f"topic {topic}: its commit log says the topic id {topic_id[:100]!r}, which is not 22 "
        f"characters of URL-safe base64. Its log in {root.log(topic).paths.directory} is damaged: "
        "restore it from a copy, or copy the records to a new topic and export that one"
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="DIR", help="a broker's log directory")
    parser.add_argument(
        "--open-transactions",
        choices=(END,),
        help="write the markers of transactions that have none; else a log that has one is refused",
    )


def _run(spark: SparkSession | None, given: argparse.Namespace) -> ExportLogReport:
    return run(
        spark,
        given.root,
        given.topic,
        given.to,
        open_transactions=given.open_transactions,
        dry_run=given.dry_run,
    )


COMMAND = Command(
    "export-log",
    "write topics as directories that a Kafka broker mounts",
    """\
Each partition becomes <topic>-<partition>/ with Kafka's own files: segments named by their first
offset, indexes, leader epochs, producers, the topic's id. Offsets are those that readers of the
topic see. docs/export.md says how a broker takes them over.

The directory has to be local. A partition that is there already is not overwritten; one that is
damaged ends the export, and nothing of it stays.""",
    _add_options,
    _run,
)
