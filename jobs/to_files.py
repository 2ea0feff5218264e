"""Copy topics into Parquet files by hour, exactly once and without a checkpoint (docs/files.md).

The rule: where a copy is, is in the manifest next to its files, and what is written next is there
before it is written. So a run that was killed, is repeated or has a second one at its side loses
and doubles nothing, for readers of the manifest and for readers of the directory.
"""

from __future__ import annotations

if __name__ == "__main__":
    from klog.jobs.shared.script_start import start

    start("to_files")

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from klog.connector.back_off import back_off
from klog.connector.options.spark_paths import log_directories
from klog.connector.options.storage_options import parse_storage_options
from klog.connector.root_urls import absolute_root
from klog.connector.store.store_for_url import writable_store_for
from klog.errors import OptionError
from klog.jobs.copying_to_files.bucket_writers import COMPRESSIONS
from klog.jobs.copying_to_files.copy_files import FileOptions, FilesCopy
from klog.jobs.copying_to_files.files_report import FilesPartition, ToFilesReport
from klog.jobs.copying_to_files.orphan_parquet_files import find_orphans
from klog.jobs.shared.copy_rounds import copy_in_rounds, topic_strategy
from klog.jobs.shared.files_manifest import FilesManifest
from klog.jobs.shared.job_failures import FailedTopic
from klog.jobs.shared.parquet_paths import HOUR, check_partitioning
from klog.jobs.shared.topic_batches import TopicReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_FILE_BYTES = 128 << 20
BATCH_FILES = 64
"""A plan has so many files' bytes by default: what a killed run may have to write again."""
NO_OPTIONS: Mapping[str, str] = {}
_LIMITS = ("maxoffsetspertrigger", "maxbytespertrigger")
_REMEDY = (
    "give the option failOnDataLoss=false to go on with what is left, or another directory for "
    "what the topic has now"
)


def run(
    spark: SparkSession | None,
    root: str | PathLike[str],
    topic: str | Sequence[str] | None,
    to: str,
    *,
    topic_pattern: str | None = None,
    options: Mapping[str, str] = NO_OPTIONS,
    max_file_bytes: int = MAX_FILE_BYTES,
    partition_by: str = HOUR,
    compression: str = "zstd",
    continuous: bool = False,
    interval_seconds: float = 60.0,
    remove_orphans: bool = False,
    dry_run: bool = False,
) -> ToFilesReport:
    """Copy topics into Parquet files: what they have now, or continuously.

    A manifest next to the files has the position of the copy, so a run that is repeated copies only
    new records.

    Args:
        spark: The session that runs the tasks; None for this process.
        root: A klog root or a broker's log directories, as `load()` takes them.
        topic: The name of a topic, several names, or None for all topics, or for those of
            `topic_pattern`.
        to: A directory or a URL; each topic gets a folder of its name in it.
        topic_pattern: A regular expression that is searched for in names of topics.
        options: Options of a stream that reads the root, such as `startingOffsets`,
            `failOnDataLoss`, `maxBytesPerTrigger` and `storage.*`.
        max_file_bytes: The size at which a file is cut, in bytes of the log.
        partition_by: `hour` or `day` of the records' timestamps, in UTC, or `none`.
        compression: `zstd`, `snappy`, `gzip`, `lz4` or `none`.
        continuous: Whether to go on until the process is interrupted.
        interval_seconds: The pause between two rounds, in seconds; a round closes all its files.
        remove_orphans: Whether to delete, at the end, files that the manifest does not list and
            will never list.
        dry_run: Whether to plan only, and write and delete nothing.

    Returns:
        A report with the offsets, records, files and bytes of each partition.

    Raises:
        OptionError: An option is wrong, a topic does not exist, or the directory has other files.
        DataLossError: Records that were not copied are gone, and `failOnDataLoss` is not false.
        KlogError: A file of the only topic cannot be read or written.
    """
    root = fspath(root)
    started = time.monotonic()
    check_partitioning(partition_by)
    if compression not in COMPRESSIONS:
        choices = ", ".join(COMPRESSIONS)
        raise OptionError(f"--compression: must be one of {choices}, got {compression!r}")
    if max_file_bytes < 1:
        raise OptionError(f"--max-file-bytes: must be at least 1, got {max_file_bytes}")
    paths = log_directories({"path": root})
    reader = TopicReader(paths, _with_limit(options, max_file_bytes), _REMEDY)
    file_options = FileOptions(max_file_bytes, partition_by, compression)
    storage = parse_storage_options(options)

    def manifest_of(name: str) -> tuple[FilesManifest, str]:
        target = f"{absolute_root(to).rstrip('/')}/{name}"
        store, directory = writable_store_for(target, storage)
        return FilesManifest(store, directory, back_off), target

    def copy(name: str) -> tuple[tuple[FilesPartition, ...], int]:
        manifest, target = manifest_of(name)
        job = FilesCopy(spark, name, reader, paths, manifest, target, file_options)
        partitions = job.plan() if dry_run else job.copy()
        return partitions, _remove(manifest, dry_run=dry_run) if remove_orphans else 0

    copies = _Copies()
    strategy = topic_strategy(topic, topic_pattern)
    failed = copy_in_rounds(
        lambda: reader.topics(strategy),
        lambda name: copies.add(*copy(name)),
        is_continuous=continuous and not dry_run,
        interval_seconds=interval_seconds,
    )
    return copies.report(root, to, failed, dry_run=dry_run, seconds=time.monotonic() - started)


class _Copies:
    """What was copied so far, in any number of rounds."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], FilesPartition] = {}
        self._removed = 0

    def add(self, partitions: Sequence[FilesPartition], removed: int) -> None:
        """Add what was copied of a topic, and how many orphans were removed."""
        self._removed += removed
        for part in partitions:
            key = (part.topic, part.partition)
            before = self._partitions.get(key)
            self._partitions[key] = part if before is None else _added(before, part)

    def report(
        self,
        root: str,
        to: str,
        failed: tuple[FailedTopic, ...],
        *,
        dry_run: bool,
        seconds: float,
    ) -> ToFilesReport:
        """Return the report."""
        partitions = tuple(self._partitions.values())
        return ToFilesReport(root, dry_run, partitions, seconds, failed, to, self._removed)


def _added(before: FilesPartition, part: FilesPartition) -> FilesPartition:
    return replace(
        part,
        start_offset=before.start_offset,
        records=before.records + part.records,
        files=before.files + part.files,
        size_bytes=before.size_bytes + part.size_bytes,
    )


def _remove(manifest: FilesManifest, *, dry_run: bool) -> int:
    """Delete orphans; return how many there are."""
    paths = find_orphans(manifest)
    for path in () if dry_run else paths:
        manifest.store.delete(path)
    return len(paths)


def _with_limit(options: Mapping[str, str], max_file_bytes: int) -> Mapping[str, str]:
    """Return the options with a limit for a plan, if they have none."""
    if any(name.lower() in _LIMITS for name in options):
        return options
    return {**options, "maxBytesPerTrigger": str(max_file_bytes * BATCH_FILES)}
