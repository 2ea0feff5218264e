"""Export topics as the directories that a broker mounts as its own (docs/export.md).

The rule: at the end the directory has all partitions of the export, or none. Each is read as of the
version of its topic when the job began, copied on its own and synced; then all get their final
names.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("export_log")

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.commit_log.committed_snapshot import (
    CommittedPartition,
    CommittedRoot,
    CommittedSnapshot,
)
from klog.connector.commit_log.klog_root import KlogRoot
from klog.connector.options.storage_options import StorageOptions, storage_of
from klog.connector.system_clock import now_ms
from klog.errors import KlogError, OptionError
from klog.jobs.exporting.export_directory import open_export_directory
from klog.jobs.exporting.export_report import ExportedPartition, ExportLogReport
from klog.jobs.exporting.export_tasks import export_tasks, root_to_export, stage_and_publish
from klog.jobs.exporting.open_transactions import END
from klog.logformat.broker_files.metadata_files import is_topic_id
from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None,
    to: str,
    *,
    open_transactions: str | None = None,
    dry_run: bool = False,
    storage: Mapping[str, object] | StorageOptions | None = None,
    clock_ms: Callable[[], int] = now_ms,
) -> ExportLogReport:
    """Write one topic of a klog root, several, or all as a log directory that a broker mounts.

    Args:
        spark: The session that runs the tasks, if its master is local: the directory is on this
            machine. With another master, or with None, this process does the work.
        root: The path or URL of the klog root.
        topic: The name of a topic, several names, or None for all topics.
        to: The path of a local directory, which becomes a broker's log directory or is one.
        open_transactions: None refuses a log that ends within a transaction. With `end`, klog adds
            a marker after the end of the log: an abort if the topic's readers skip the records of
            the transaction, otherwise a commit.
        dry_run: Whether to plan only. This reads topic states and no segment.
        storage: The `storage.*` options of the root's store, by their names without `storage.`.
        clock_ms: A function that returns the time, in ms since the epoch.

    Returns:
        A report with one entry for each partition, with offsets, segments, records and bytes.

    Raises:
        OptionError: The root is not a klog root, a topic does not exist, the directory has one of
            the partitions, or a log ends within a transaction.
        CorruptFileError: A segment is damaged.
        KlogError: A broker could not continue a log.
    """
    started = time.monotonic()
    root, storage = fspath(root), storage_of(storage)
    if open_transactions not in (None, END):
        raise OptionError(f"open_transactions: must be {END!r}, got {open_transactions!r}")
    topics = [topic] if isinstance(topic, str) else list(topic or ())
    target = open_export_directory(to)
    snapshot, partitions = _partitions_to_export(root_to_export(root, storage), topics)
    topic_ids = {partition.name: partition.topic_id for partition in partitions}
    target.check(topic_ids)
    exported = tuple(map(ExportedPartition.of_partition, partitions))
    if not dry_run:
        with target.lock():
            target.check(topic_ids)  # Another export may have come since.
            end_open = open_transactions == END
            tasks = export_tasks(
                snapshot, partitions, target, storage, clock_ms(), end_open=end_open
            )
            log_ends = stage_and_publish(spark, target, tasks)
        exported = tuple(
            replace(partition, log_end=log_end, ended=log_end - partition.log_end)
            for partition, log_end in zip(exported, log_ends, strict=True)
        )
    return ExportLogReport(str(target.path), dry_run, time.monotonic() - started, exported)


def _partitions_to_export(
    root: KlogRoot, topics: Sequence[str]
) -> tuple[CommittedSnapshot, list[CommittedPartition]]:
    """Load the named topics, or all, and return all their partitions."""
    snapshot = CommittedRoot(root).snapshot()
    for topic in topics:
        if not snapshot.state(topic).topic_id:
            root.load(root.log_to_read(topic))  # Its error says why.
            raise OptionError(f"topic {topic} was created just now; run the export again")
    # `snapshot.topics` lists deleted topics too, and does not contain them.
    names = dict.fromkeys(topics or (name for name in snapshot.topics if name in snapshot.topics))
    partitions = [
        partition
        for name in names
        for partition in snapshot.open(
            TopicPartition(name, number) for number in snapshot.topics[name]
        ).values()
    ]
    if not partitions:
        raise OptionError(f"{root.location} has no topics. Give a root that has some")
    for name in names:
        _check_topic_id(root, name, snapshot.state(name).topic_id)
    return snapshot, partitions


def _check_topic_id(root: KlogRoot, topic: str, topic_id: str) -> None:
    """Refuse a topic id that no broker takes: each partition's directory has to name it."""
    if is_topic_id(topic_id):
        return
    raise KlogError(
        f"topic {topic}: its commit log has the topic id {topic_id[:100]!r}, which is not 22 "
        f"characters of URL-safe base64. Its log in {root.log(topic).paths.directory} is damaged: "
        "restore it from a copy, or copy the records to a new topic and export that one"
    )
