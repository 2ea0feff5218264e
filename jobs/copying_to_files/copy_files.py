"""Copy one topic into files, plan by plan.

The rule: before each step the manifest is asked what was done, so nothing that this process
remembers decides. If a plan is under way, its files are written, whichever run planned them; only
then is the next plan put. Two runs at once write the same files under the same names, and one of
them gets the entry that lists them (docs/files.md has the steps, and what a crash at each leaves).
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klog.connector.kafka_dir.stale_listings import retry_stale_listing
from klog.connector.options.read_options import ReadOptions
from klog.connector.source.data_loss import find_loss
from klog.connector.source.load_plan import ResolvedRange
from klog.connector.source.scan_planner import plan_logs
from klog.connector.source.slice_contract import TaskDict
from klog.connector.source.task_reader import make_reader
from klog.errors import OptionError
from klog.jobs.copying_to_files.bucket_writers import COLUMNS
from klog.jobs.copying_to_files.file_ranges import cut_batch
from klog.jobs.copying_to_files.files_report import FilesPartition
from klog.jobs.copying_to_files.write_range import RangeTask, write_range
from klog.jobs.shared.files_manifest import (
    MANIFEST,
    FilePlan,
    FileRange,
    FilesEntry,
    FilesManifest,
    WrittenFile,
)
from klog.jobs.shared.job_tasks import LazyTasks, run_tasks
from klog.jobs.shared.topic_batches import CopiedOffsets, TopicReader
from klog.logformat.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How files are written.

    Attributes:
        max_bytes: The largest size of a file, counted in bytes of the log.
        partition_by: `hour`, `day` or `none`.
        compression: The compression of Parquet.
    """

    max_bytes: int
    partition_by: str
    compression: str


class FilesCopy:
    """The copy of one topic in one directory."""

    def __init__(
        self,
        spark: SparkSession | None,
        topic: str,
        reader: TopicReader,
        paths: Sequence[str],
        manifest: FilesManifest,
        target: str,
        options: FileOptions,
    ) -> None:
        """Take what reads the topic and where its files go; nothing is looked at yet."""
        self._spark, self._topic, self._reader, self._paths = spark, topic, reader, paths
        self._manifest, self._target, self._options = manifest, target, options

    def plan(self) -> tuple[FilesPartition, ...]:
        """Return what would be copied now, the plan that is under way included."""
        newest = self._newest()
        copied = None if newest is None else CopiedOffsets(newest.end)
        batch = self._reader.next_batch(self._topic, copied, is_limited=False)
        starts = {**batch.starts, **newest.starts} if isinstance(newest, FilePlan) else batch.starts
        return self._partitions(starts, batch.end.next_offsets, ())

    def copy(self) -> tuple[FilesPartition, ...]:
        """Copy what the topic has now.

        Raises:
            DataLossError: Records that were not copied are gone.
            CommitStateUnknownError: The store did not say whether an entry landed.
        """
        until = self._reader.log_ends(self._topic).offsets
        starts: dict[TopicPartition, int] = {}
        files: list[WrittenFile] = []
        while True:
            newest = self._newest()
            if isinstance(newest, FilePlan):
                starts = {**newest.starts, **starts}
                files += self._finish(newest)
                continue
            copied = None if newest is None else CopiedOffsets(newest.end)
            batch = self._reader.next_batch(self._topic, copied, until)
            starts = {**batch.starts, **starts}
            if newest is not None and batch.is_empty:
                return self._partitions(starts, batch.end.next_offsets, files)
            self._manifest.put(
                FilePlan(
                    self._topic,
                    secrets.token_hex(8),
                    self._options.partition_by,
                    self._options.compression,
                    batch.starts,
                    replace(batch.end, batch_start={}),
                    cut_batch(batch, batch.logs, self._options.max_bytes),
                )
            )

    def _newest(self) -> FilePlan | FilesEntry | None:
        """Return the newest entry; refuse a directory that this copy must not continue."""
        newest = self._manifest.newest()
        if newest is None and self._has_files():
            newest = self._manifest.newest()  # Another run may have begun meanwhile.
            if newest is None:
                raise OptionError(
                    f"{self._target} has files and no manifest, which would say what they have. "
                    "Give an empty directory, or restore its folder _manifest from a copy"
                )
        if newest is None:
            return None
        if newest.topic != self._topic:
            raise OptionError(
                f"{self._target} has files of topic {newest.topic}, not of {self._topic}. Give "
                "another directory"
            )
        if newest.partition_by != self._options.partition_by:
            raise OptionError(
                f"--partition-by: {self._target} is laid out by {newest.partition_by}, and readers "
                f"take one layout for all of a directory. Give {newest.partition_by}, or another "
                "directory"
            )
        return newest

    def _has_files(self) -> bool:
        try:
            entries = self._manifest.store.entries(self._manifest.directory)
        except FileNotFoundError:
            return False
        return any(entry.name != MANIFEST for entry in entries)

    def _finish(self, plan: FilePlan) -> tuple[WrittenFile, ...]:
        """Write the files of a plan and list them; return none if another run has listed them."""
        tasks = LazyTasks(self._tasks(plan), len(plan.ranges))
        results = run_tasks(self._spark, write_range, tasks, f"{self._topic} files")
        files = tuple(file for written in results for file in written)
        entry = FilesEntry(
            plan.topic,
            plan.partition_by,
            plan.end,
            plan.number,
            plan.plan_id,
            files,
            entry_id=secrets.token_hex(8),
        )
        return files if self._manifest.put(entry) else ()

    def _tasks(self, plan: FilePlan) -> Iterator[RangeTask]:
        options = replace(self._reader.options_of(self._topic), columns=COLUMNS)
        reader = make_reader(self._paths, options)
        for file_range in plan.ranges:
            yield RangeTask(
                replace(plan, ranges=(), starts={}),
                file_range,
                self._slices(plan, file_range, options),
                reader,
                self._target,
                options.storage,
            )

    def _slices(
        self, plan: FilePlan, file_range: FileRange, options: ReadOptions
    ) -> Sequence[TaskDict]:
        """Plan the read of a range; records that are gone are an error or a warning."""
        planned = ResolvedRange(
            TopicPartition(self._topic, file_range.partition),
            plan.end.topic_ids.get(self._topic, ""),
            file_range.start_offset,
            file_range.end_offset,
            plan.end.seen_restore(self._topic),
        )

        def slices() -> list[TaskDict]:
            logs = self._reader.log_ends(self._topic).logs
            loss = find_loss(logs.get(planned.name), planned)
            if loss is not None:
                self._reader.report_loss(planned.name, loss)
            return plan_logs(logs, [planned], options)

        return retry_stale_listing(slices)

    def _partitions(
        self,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        files: Sequence[WrittenFile],
    ) -> tuple[FilesPartition, ...]:
        records, sizes = Counter[int](), Counter[int]()
        for file in files:
            records[file.partition] += file.records
            sizes[file.partition] += file.size_bytes
        counts = Counter(file.partition for file in files)
        return tuple(
            FilesPartition(
                name.topic,
                name.partition,
                starts.get(name, end),
                end,
                records[name.partition],
                counts[name.partition],
                sizes[name.partition],
            )
            for name, end in sorted(ends.items())
        )
